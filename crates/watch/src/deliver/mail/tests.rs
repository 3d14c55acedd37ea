use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use super::*;
use crate::alarm::record::Alarm;
use crate::deliver::message::message;

const WHOLE: &str = "server = \"127.0.0.1\"\nfrom = \"plumb@example.net\"\n\
                     to = [\"a@example.net\", \"later@example.net\", \"nobody@example.net\"]\n";

fn mail(text: &str) -> Result<Mail, String> {
    Mail::read(text.parse().unwrap())
}

/// A server for so many clients, one after the other. It takes `later` only when that is the only recipient, and never
/// the recipient that it answers with 550. Returns what the clients sent.
fn sink(clients: usize) -> (u16, JoinHandle<Vec<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut seen, mut is_letter, mut named) = (Vec::new(), false, 0);
        stream.write_all(b"220 sink\r\n").unwrap();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 || line.starts_with("QUIT") {
                return seen;
            }
            let line = line.trim_end_matches("\r\n").to_owned();
            seen.push(line.clone());
            if is_letter && line != "." {
                continue;
            }
            named += usize::from(line.starts_with("RCPT"));
            let reply = match line.as_str() {
                "DATA" => "354 go",
                "RCPT TO:<nobody@example.net>" => "550 no such user",
                "RCPT TO:<later@example.net>" if named > 1 => "451 later",
                _ => "250 ok",
            };
            is_letter = line == "DATA";
            stream.write_all(format!("{reply}\r\n").as_bytes()).unwrap();
        }
    };
    (
        port,
        thread::spawn(move || (0..clients).map(|_| served()).collect()),
    )
}

fn changed() -> String {
    let alarm = |target: &str| Alarm {
        rule: "loss".to_owned(),
        target: target.to_owned(),
        since_s: 540,
        raised_s: 600,
        cleared_s: None,
        words: "loss of 4.0 %".to_owned(),
        behind: Vec::new(),
    };
    message(&[alarm("gateway"), alarm("Büro")], 600)
}

#[test]
fn a_message_goes_to_those_who_are_taken_and_once_to_each() {
    let (port, served) = sink(2);
    let mail = mail(&format!("{WHOLE}port = {port}\n")).unwrap();
    let first = mail.send(&changed()).unwrap_err();
    assert!(first.again && first.why.contains("451 later"), "{first:?}");
    assert!(
        first.why.contains("nobody@example.net (550 no such user)"),
        "{first:?}"
    );
    // Only who was put off is tried again.
    assert_eq!(mail.send(&changed()), Ok(()));
    let seen = served.join().unwrap();
    let named = |seen: &[String]| -> Vec<String> {
        let named = seen.iter().filter(|line| line.starts_with("RCPT"));
        named.cloned().collect()
    };
    assert_eq!(named(&seen[0]).len(), 3);
    assert_eq!(named(&seen[1]), ["RCPT TO:<later@example.net>"]);
    for field in [
        "From: plumb@example.net",
        "Date: Thu, 1 Jan 1970 00:10:00 +0000",
        "Subject: gateway: loss of 4.0 % since 00:09 UTC (loss), and 1 more",
        "Content-Transfer-Encoding: base64",
    ] {
        assert!(
            seen[0].iter().any(|line| line == field),
            "{field}: {:?}",
            seen[0]
        );
    }
    // The same letter, by which a server knows that it has it.
    let id = |seen: &[String]| {
        seen.iter()
            .find(|line| line.starts_with("Message-ID"))
            .cloned()
    };
    assert!(id(&seen[0]).is_some() && id(&seen[0]) == id(&seen[1]));
}

#[test]
fn whom_nobody_takes_is_given_up_when_others_have_it() {
    let (port, served) = sink(1);
    let text = WHOLE.replace("\"later@example.net\", ", "");
    let mail = mail(&format!("{text}port = {port}\n")).unwrap();
    let refused = mail.send(&changed()).unwrap_err();
    assert!(
        !refused.again && refused.why.contains("the others have it"),
        "{refused:?}"
    );
    served.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_tried_again() {
    // Discard (RFC 863), where nothing listens and which no program gets that asks for any port.
    let mail = mail(&format!("{WHOLE}port = 9\n")).unwrap();
    let refused = mail.send(&changed()).unwrap_err();
    assert!(
        refused.again && refused.why.contains("no connection to 127.0.0.1"),
        "{refused:?}"
    );
}

#[test]
fn a_password_is_read_when_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    let text = format!(
        "{WHOLE}user = \"u\"\npassword_file = \"{}\"\n",
        file.display()
    );
    let mail = mail(&text).unwrap();
    assert!(
        mail.send(&changed())
            .unwrap_err()
            .why
            .contains("cannot read")
    );
    std::fs::write(&file, "\n").unwrap();
    assert!(
        mail.send(&changed())
            .unwrap_err()
            .why
            .contains("has no password")
    );
    std::fs::write(&file, "se cret\n").unwrap();
    let login = mail.login().unwrap().unwrap();
    assert_eq!(login.password, "se cret");
    assert!(!format!("{login:?}").contains("cret"));
}

#[test]
fn settings_that_are_wrong_are_refused_in_words() {
    assert!(mail(WHOLE).is_ok());
    assert_eq!(mail(WHOLE).unwrap().server.port, 587);
    assert_eq!(
        mail(&format!("{WHOLE}tls = \"always\""))
            .unwrap()
            .server
            .port,
        465
    );
    for (text, words) in [
        (String::new(), "missing field `server`"),
        (format!("{WHOLE}sever = \"x\""), "unknown field `sever`"),
        (format!("{WHOLE}tls = \"maybe\""), "unknown variant `maybe`"),
        (WHOLE.replace("127.0.0.1", "h:25"), "its port is port = 587"),
        (WHOLE.replace("plumb@", "plumb"), "is no address of mail"),
        (WHOLE.replace("a@", "<a>@"), "is no address of mail"),
        (format!("{WHOLE}user = \"u\""), "belong together"),
        (
            format!("{WHOLE}user = \"u\"\npassword_file = \"p\""),
            "the whole path of a file",
        ),
        (
            format!("{WHOLE}tls = \"never\"\nuser = \"u\"\npassword_file = \"/p\""),
            "a password goes by TLS alone",
        ),
        (
            format!("{WHOLE}tls = \"never\"\ninsecure = true"),
            "for TLS alone",
        ),
        (format!("{WHOLE}within = \"0s\""), "within is a time"),
        (
            "server = \"h\"\nfrom = \"a@b\"\nto = []".to_owned(),
            "to has 1 to 100 addresses",
        ),
    ] {
        let why = mail(&text).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
}
