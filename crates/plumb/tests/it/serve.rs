//! `plumb serve`: its configuration, SIGHUP, and SIGTERM whatever runs.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common::responder::Responder;
use crate::common::slots::Weight;
use crate::common::{PLUMB, refused, stderr};
use plumb_load::{Client, PhasePlan};
use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows};

/// What a browser says of a visit in which 50 kB went up, and nothing down.
const VISIT: &str = r#"{"id":"0123456789abcdef","server":"s","agent":"B","resolution_s":1e-4,"idle":{"began_s":0,
    "duration_s":3,"sent_s":[0.1],"rtt_s":[0.02]},"down":null,"up":null}"#;

/// For what takes two seconds at most on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends it by SIGTERM.
fn terminate(responder: &mut Responder) {
    let id = responder.child.id().to_string();
    let begun = Instant::now();
    let killed = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(killed.unwrap().success());
    while responder.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE, "it never ends");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_termination_ends_it_whatever_runs() {
    let mut responder = Responder::start_for(Weight::Heavy, &["--without", "stamp"]);
    let address = SocketAddr::from(([127, 0, 0, 1], responder.port));
    // One that says nothing, one that says half of what it is, and one that closes neither way.
    let half_open: Vec<_> = [b"".as_slice(), &[0, 0], b"plumbDAT"]
        .iter()
        .map(|said| {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.write_all(said).unwrap();
            socket
        })
        .collect();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut client = Client::connect("box", address, PATIENCE).unwrap();
            let plan = PhasePlan {
                flows: vec![Flows {
                    count: 2,
                    role: OneDirection::Down,
                    flow: Flow::Udp(UdpFlow::new(64, Pattern::Constant { pps: 1e9 })),
                }],
                duration: Duration::from_secs(20),
                byte_limit: None,
                until_steady: false,
                from: None,
                to: None,
            };
            client.run_phase(&plan, &|_| (), &AtomicBool::new(false))
        });
        std::thread::sleep(Duration::from_secs(1));
        terminate(&mut responder);
        // What was measured until then is kept.
        assert!(client.join().unwrap().unwrap().lost.is_some());
    });
    drop(half_open);
}

#[test]
fn a_configuration_is_checked_read_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("serve.toml");
    let path = file.to_str().unwrap();
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let check = || {
        let output = refused(&["serve", "--config", path, "--check-config"]);
        (output.status.code(), stderr(&output))
    };
    write(
        "[access]\ndeny = []\n[limits]\nduration = \"60s\"\nrate = \"100Mbit/s\"\n[protocols]\nstamp = false\n",
    );
    assert_eq!(check().0, Some(0));
    for (text, named) in [
        ("prot = 7586", "prot"),
        ("[access]\nallow = [\"10.0.0.0/99\"]", "10.0.0.0/99"),
        ("[limits]\nbytes_a_day = \"some\"", "some"),
        ("[protocols]\nntpp = 1", "ntpp"),
        ("[protocols]\nstamp = \"no\"", "a port, or false"),
        ("[access]\nkey = \"elevenchars\"", "12 to 256 bytes"),
        (
            "[access]\ndeny = [\"::ffff:10.0.0.0/80\"]",
            "::ffff:10.0.0.0/80",
        ),
        // What the next start would refuse.
        ("[limits]\nclients = 0", "--max-clients 0"),
        ("[limits]\nclients = 100000000", "open files"),
        ("[limits]\nloads = 0", "1 or more"),
        ("[limits]\nstreams = 0", "--max-streams 0"),
        ("[limits]\nduration = \"0s\"", "--max-duration 0s"),
        ("disk = \"/no/such/folder\"", "cannot lend /no/such/folder"),
        (
            "[web]\nhost_names = [\"http://a.example\"]",
            "no name of a host",
        ),
        ("[web]\nruns = \"/no/such/folder\"", "/no/such/folder"),
        ("[access]\nkey = \"@/dev/zero\"", "has to be a file"),
    ] {
        write(text);
        let (status, said) = check();
        assert_ne!(status, Some(0), "{text}");
        assert!(said.contains(named), "{text}: {said}");
    }
    let (status, said) = {
        let output = refused(&["serve", "--config", "/dev/null", "--check-config"]);
        assert!(stderr(&output).contains("has to be a file"));
        let output = refused(&["serve", "--config", "/none.toml", "--check-config"]);
        (output.status.code(), stderr(&output))
    };
    assert!(status == Some(1) && said.contains("/none.toml"), "{said}");

    write("[protocols]\nstamp = false\n");
    let mut responder = Responder::start_for(Weight::Light, &["--config", path]);
    let address = SocketAddr::from(([127, 0, 0, 1], responder.port));
    let connect = || Client::connect("box", address, PATIENCE);
    drop(connect().unwrap());
    let id = responder.child.id().to_string();
    let hangup = || {
        let sent = Command::new("kill").args(["-s", "HUP", &id]).status();
        assert!(sent.unwrap().success());
    };
    // What is wrong changes nothing, and neither does what the next start would refuse.
    for wrong in ["", "[limits]\nclients = 0\n"] {
        let denny = if wrong.is_empty() { "denny" } else { "deny" };
        write(&format!("[access]\n{denny} = [\"127.0.0.0/8\"]\n{wrong}"));
        hangup();
        std::thread::sleep(Duration::from_millis(200));
        drop(connect().unwrap());
    }
    // A pipe is not waited for.
    std::fs::remove_file(&file).unwrap();
    let made = Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    hangup();
    std::thread::sleep(Duration::from_millis(200));
    drop(connect().unwrap());
    std::fs::remove_file(&file).unwrap();
    // IPv4 as IPv6 writes it is IPv4.
    write("[access]\ndeny = [\"::ffff:127.0.0.0/104\"]\n");
    hangup();
    let begun = Instant::now();
    let denied = loop {
        match connect() {
            Err(error) => break error.to_string(),
            Ok(_) => assert!(begun.elapsed() < PATIENCE, "nobody is denied"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(denied.contains("does not serve 127.0.0.1"), "{denied}");
    // The thread that waits for SIGHUP keeps no SIGTERM from the one that ends the program.
    terminate(&mut responder);
    let status = responder.child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn it_becomes_another_user_once_its_ports_are_bound() {
    // A port that only root may bind, and that no other test uses.
    let options = ["--user", "nobody", "--port-of", "stamp=863"];
    let responder = Responder::start_for(Weight::Light, &options);
    let path = format!("/proc/{}/status", responder.child.id());
    let read = || std::fs::read_to_string(&path).unwrap();
    // Its ports are bound before, and a client may come between the two.
    let begun = Instant::now();
    while read().contains("\nUid:\t0\t") && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = read();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    // Debian's nobody, and none of root's groups.
    assert_eq!(field("Uid:"), "65534 65534 65534 65534");
    assert_eq!(field("Gid:"), "65534 65534 65534 65534");
    assert_eq!(field("Groups:"), "65534");
    assert_eq!(field("CapEff:"), "0000000000000000");
    let address = SocketAddr::from(([127, 0, 0, 1], responder.port));
    drop(Client::connect("box", address, PATIENCE).unwrap());
    // Streams of datagrams share the responder's port, which the kernel grants to sockets of one user alone.
    let output = refused(&[
        "rate",
        &address.to_string(),
        "-u",
        "-b",
        "1M",
        "-t",
        "1",
        "--up",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));

    let output = refused(&["serve", "--port", "0", "--user", "no-such-user"]);
    let said = stderr(&output);
    assert!(
        said.contains("'no-such-user'") && said.contains("no such user"),
        "{said}"
    );
}

/// Opens a listener as systemd does for a `.socket` unit, and one that nothing is served on, says their ports and becomes plumb.
const ACTIVATES: &str = r"
import os, socket, sys
listeners = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]
ports = [listener.getsockname()[1] for listener in listeners]
print(*ports, flush=True)
copies = [os.dup(listener.fileno()) for listener in listeners]
for fd, copy in zip((3, 4), copies):
    os.dup2(copy, fd)
os.set_inheritable(3, True)
os.set_inheritable(4, True)
os.environ.update(LISTEN_FDS='2', LISTEN_PID=str(os.getpid()))
none = [word for name in ('stamp', 'iperf3', 'web', 'irtt') for word in ('--without', name)]
os.execv(sys.argv[1], [sys.argv[1], 'serve', '--listen', '127.0.0.1', '--port', str(ports[0]), *none])
";

#[test]
fn a_socket_that_the_service_manager_opened_is_served() {
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", ACTIVATES, PLUMB])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ports = String::new();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    printed.read_line(&mut ports).unwrap();
    let ports: Vec<u16> = ports
        .split_whitespace()
        .map(|p| p.parse().unwrap())
        .collect();
    // It comes before there is a responder, as the client does that makes systemd start one.
    let address = SocketAddr::from(([127, 0, 0, 1], ports[0]));
    let client = Client::connect("box", address, Duration::from_secs(10));
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    client.unwrap_or_else(|error| panic!("{error}: {said}"));
    let unused = format!("the service manager listens on 127.0.0.1:{}", ports[1]);
    assert!(said.contains(&unused), "{said}");
}

/// The answer to a POST, and all of its body.
fn post(address: SocketAddr, path: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(socket, "POST {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    std::io::read_to_string(socket).unwrap()
}

#[test]
fn no_visitor_learns_how_the_responder_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().to_str().unwrap();
    let secrets = ["s3cret-key-abc", runs, "198.51.100.0"];
    let options = [
        "--key",
        secrets[0],
        "--runs",
        runs,
        "--deny",
        "198.51.100.0/24",
        "--port-of",
        "web=0",
    ];
    let responder = Responder::start_for(Weight::Light, &options);
    let web = responder.serves("web");
    post(
        web,
        "/__up?visit=0123456789abcdef&stream=1",
        &"x".repeat(50_000),
    );
    let shown = post(web, "/__check", VISIT);
    assert!(shown.contains(r#""command":["serve"]"#), "{shown}");
    // The page shows these, and judges nothing itself.
    for part in [
        r#""shown":{"headline":"#,
        r#""outcomes":["#,
        r#""not_excluded":["#,
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let files: Vec<_> = std::fs::read_dir(runs).unwrap().collect();
    assert_eq!(files.len(), 1);
    let kept = std::fs::read_to_string(files[0].as_ref().unwrap().path()).unwrap();
    for secret in secrets {
        assert!(
            !shown.contains(secret) && !kept.contains(secret),
            "{secret}"
        );
    }
}
