//! Debian's FreeRADIUS, asked whether it is there and whether it lets a user in.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plumb_watch::store::Store;
use plumb_watch::watching::{self, Asked};

/// Ten times what the server takes to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One with a client, this host, and a user.
fn begin(folder: &Path) -> (Server, u16) {
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let users = folder.join("users");
    fs::write(&users, "bob Cleartext-Password := \"hello\"\n").unwrap();
    let dictionary = "$INCLUDE /usr/share/freeradius/dictionary\n";
    fs::write(folder.join("dictionary"), dictionary).unwrap();
    let file = format!(
        "libdir = /usr/lib/freeradius\n\
         security {{\n reject_delay = 0\n status_server = yes\n}}\n\
         client here {{\n ipaddr = 127.0.0.1\n secret = testing123\n}}\n\
         modules {{\n pap {{\n }}\n files {{\n filename = {}\n }}\n}}\n\
         server default {{\n\
         listen {{\n type = auth\n ipaddr = 127.0.0.1\n port = {port}\n }}\n\
         authorize {{\n files\n pap\n }}\n\
         authenticate {{\n Auth-Type PAP {{\n pap\n }}\n }}\n}}\n",
        users.display()
    );
    fs::write(folder.join("radiusd.conf"), file).unwrap();
    let process = Command::new("freeradius")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(["-f", "-l", "stdout", "-n", "radiusd", "-d"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("freeradius is missing: tests/tools.sh installs it");
    (Server(process), port)
}

#[test]
fn freeradius_is_there_and_knows_its_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (_server, port) = begin(path);
    let mut text = "[store]\npath = \"w.db\"\n[page]\nlisten = \"127.0.0.1:0\"\n".to_owned();
    for (file, secret) in [
        ("secret", "testing123\n"),
        ("other", "testing124\n"),
        ("hello", "hello\n"),
        ("wrong", "a password of more than sixteen bytes\n"),
    ] {
        fs::write(path.join(file), secret).unwrap();
    }
    for (name, secret, password) in [
        ("status", "secret", None),
        ("accepted", "secret", Some("hello")),
        ("rejected", "secret", Some("wrong")),
        ("silent", "other", None),
    ] {
        let file = |name: &str| path.join(name).display().to_string();
        text += &format!(
            "[[target]]\nname = \"{name}\"\nhost = \"127.0.0.1\"\nprobe = \"radius\"\nport = {port}\nevery = \"1s\"\nsecret_file = \"{}\"\n",
            file(secret)
        );
        if let Some(password) = password {
            text += &format!("user = \"bob\"\npassword_file = \"{}\"\n", file(password));
        }
    }
    fs::write(path.join("w.toml"), text).unwrap();
    let asked = Asked::default();
    let (stop, file) = (Arc::clone(&asked.stop), path.join("w.toml"));
    let said = Arc::new(Mutex::new(Vec::new()));
    let words = Arc::clone(&said);
    let watching = thread::spawn(move || {
        let say = |line: &str| words.lock().unwrap().push(line.to_owned());
        watching::run(&file, &asked, &say).unwrap();
    });
    let seen = || {
        let store = Store::open_to_read(&path.join("w.db")).ok()?;
        let answered = |name: &str| {
            let samples = store.samples(name, 0).unwrap_or_default();
            samples.iter().any(|sample| sample.value.is_some())
        };
        let lost = !store.samples("silent", 0).ok()?.is_empty();
        let all = ["status", "accepted", "rejected"].map(answered);
        (all == [true; 3] && lost).then_some(())
    };
    let begun = Instant::now();
    while seen().is_none() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", said.lock().unwrap());
        thread::sleep(Duration::from_millis(200));
    }
    stop.store(true, Ordering::Relaxed);
    watching.join().unwrap();
    let store = Store::open_to_read(&path.join("w.db")).unwrap();
    for name in ["accepted", "rejected"] {
        assert_eq!(store.state(name).unwrap().as_deref(), Some(name));
    }
    assert_eq!(store.state("status").unwrap(), None);
    let rejected = store.samples("rejected rejected", 0).unwrap();
    assert!(rejected.iter().all(|sample| sample.value == Some(1.0)));
    assert!(!rejected.is_empty());
    let silent = store.samples("silent", 0).unwrap();
    assert!(silent.iter().all(|sample| sample.value.is_none()));
}
