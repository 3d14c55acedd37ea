//! Debian's snmpd as a device, by version 2c and by version 3 with authentication and privacy.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plumb_watch::target::device::{Login, look};
use plumb_watch::watching::{self, Asked};
use plumb_wire::snmp::usm::authentication::Authentication;
use plumb_wire::snmp::usm::privacy::Privacy;

/// Ten times what an agent takes to begin, or a page to show a device.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that ends with the test.
struct Agent {
    process: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Agent {
    /// One on a port that is free, with a community and a user, and all that it keeps in a folder of its own.
    fn begin() -> Self {
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let file = format!(
            "agentaddress udp:{free}\nrocommunity public 127.0.0.1\nsysName sw1\n\
             createUser reader SHA-256 \"maplesyrup\" AES \"pancakes!\"\nrouser reader priv\n"
        );
        fs::write(path("snmpd.conf"), file).unwrap();
        for (name, secret) in [
            ("community", "public\n"),
            ("a", "maplesyrup\n"),
            ("p", "pancakes!\n"),
            ("wrong", "waffles!!\n"),
        ] {
            fs::write(path(name), secret).unwrap();
        }
        let process = Command::new("snmpd")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("SNMP_PERSISTENT_DIR", folder.path())
            .env("MIBS", "")
            .args(["-f", "-Lf", "/dev/null", "-C", "-c"])
            .arg(path("snmpd.conf"))
            .arg("-p")
            .arg(path("pid"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("snmpd is missing: tests/tools.sh installs it");
        let agent = Self {
            process,
            address: free,
            folder,
        };
        let community = Login::CommunityFile(agent.path("community"));
        until("snmpd answers", || look(free, &community, &[]).is_ok());
        agent
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn user(&self, authentication: &str, privacy: Option<&str>) -> Login {
        Login::User {
            name: "reader".to_owned(),
            authentication: Some((Authentication::Sha256, self.path(authentication))),
            privacy: privacy.map(|file| (Privacy::Aes128, self.path(file))),
        }
    }
}

/// Waits until something is so.
fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(
            begun.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn an_agent_is_looked_at_by_both_versions() {
    let agent = Agent::begin();
    for login in [
        Login::CommunityFile(agent.path("community")),
        agent.user("a", Some("p")),
    ] {
        let text = look(agent.address, &login, &[]).unwrap().text();
        for words in ["sw1 at 127.0.0.1", "up for", "lo ", "memory"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn what_an_agent_refuses_is_named() {
    let agent = Agent::begin();
    let why = |login: &Login| look(agent.address, login, &[]).unwrap_err().to_string();
    let wrong = why(&agent.user("wrong", Some("p")));
    assert!(wrong.contains("finds the authentication wrong"), "{wrong}");
    let wrong = why(&agent.user("a", Some("wrong")));
    assert!(
        wrong.contains("cannot decrypt the question") || wrong.contains("does not answer"),
        "{wrong}"
    );
    let unknown = Login::User {
        name: "stranger".to_owned(),
        authentication: None,
        privacy: None,
    };
    assert!(why(&unknown).contains("does not know the user"));
    let short = agent.path("short");
    fs::write(&short, "public1\n").unwrap();
    let user = Login::User {
        name: "reader".to_owned(),
        authentication: Some((Authentication::Sha256, short)),
        privacy: None,
    };
    assert!(why(&user).contains("fewer than 8 characters"));
    // A community that is another is no answer at all.
    let other = Login::CommunityFile(agent.path("wrong"));
    assert!(why(&other).contains("does not answer"));
}

/// What the page has at that path.
fn page(at: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.starts_with("HTTP/1.1 200").then_some(text)
}

/// A file that watches the agent as a user each second.
fn file(agent: &Agent, listen: SocketAddr) -> PathBuf {
    let path = |name: &str| agent.path(name).display().to_string();
    let text = format!(
        "[store]\npath = \"w.db\"\n[page]\nlisten = \"{listen}\"\n\
         [[device]]\nname = \"sw1\"\nhost = \"127.0.0.1\"\nport = {}\nevery = \"1s\"\nports = [\"lo\"]\nuser = \"reader\"\n\
         authentication_password_file = \"{}\"\nprivacy_password_file = \"{}\"\n\
         [[alarm]]\nname = \"full\"\nkind = \"threshold\"\nquantity = \"value\"\nabove = 90\nover = \"5m\"\n\
         targets = [\"sw1 port * in use\", \"sw1 memory\"]\n",
        agent.address.port(),
        path("a"),
        path("p"),
    );
    let file = agent.path("watch.toml");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_device_is_watched_and_shown() {
    let agent = Agent::begin();
    let listen = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let file = file(&agent, listen);
    let asked = Arc::new(Asked::default());
    let said = Arc::new(Mutex::new(Vec::new()));
    let (stop, heard) = (Arc::clone(&asked), Arc::clone(&said));
    let run = move |file: &Path| {
        let say = |words: &str| heard.lock().unwrap().push(words.to_owned());
        watching::run(file, &stop, &say).map_err(|error| error.to_string())
    };
    let watching = thread::spawn(move || run(&file));
    let shows =
        |path: &str, words: &str| page(listen, path).is_some_and(|page| page.contains(words));
    // Two looks make a rate.
    until("the device has series", || {
        shows("/target/sw1", "port lo out use")
    });
    for words in ["port lo state", "memory", "uptime", "<td>up</td>"] {
        assert!(shows("/target/sw1", words), "{words}: {:?}", said.lock());
    }
    assert!(shows("/target/sw1%20port%20lo%20in", "port lo in"));
    assert!(shows("/target/sw1%20port%20lo%20state", "Changes"));
    assert!(shows(
        "/metrics",
        "plumb_watch_rate_bits_per_second{target=\"sw1 port lo in\",probe=\"device\""
    ));
    assert!(shows("/", "sw1"));
    assert!(page(listen, "/target/sw1%20port%20lo").is_none());
    asked.stop.store(true, Ordering::Relaxed);
    assert_eq!(watching.join().unwrap(), Ok(()));
}
