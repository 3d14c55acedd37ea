use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use data_encoding::BASE64;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

/// A server for one client: it refuses some recipients by the beginning of their name, and takes everything else.
struct Sink {
    server: Server,
    /// All lines that it was sent.
    seen: JoinHandle<Vec<String>>,
}

/// How the server behaves, and what it offers.
#[derive(Clone, Default)]
struct Manners {
    /// With TLS after STARTTLS, or from the beginning.
    tls: Option<Arc<ServerConfig>>,
    wrapped: bool,
    /// What it offers after EHLO, beside STARTTLS.
    offers: &'static [&'static str],
}

fn sink(manners: Manners) -> Sink {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().unwrap().port(),
    };
    let seen = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        match (&manners.tls, manners.wrapped) {
            (Some(tls), true) => served(encrypted(stream, tls), &manners, true, &mut seen),
            _ => {
                let again = stream.try_clone().unwrap();
                if served(stream, &manners, false, &mut seen) {
                    let tls = manners.tls.as_ref().unwrap();
                    served(encrypted(again, tls), &manners, true, &mut seen)
                } else {
                    false
                }
            }
        };
        seen
    });
    Sink { server, seen }
}

fn encrypted(
    stream: TcpStream,
    tls: &Arc<ServerConfig>,
) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(Arc::clone(tls)).unwrap(), stream)
}

/// Talks until the client goes, or begins TLS.
fn served<S: Read + Write>(
    stream: S,
    manners: &Manners,
    is_encrypted: bool,
    seen: &mut Vec<String>,
) -> bool {
    let mut stream = BufReader::new(stream);
    let greets = !is_encrypted || manners.wrapped;
    if greets && stream.get_mut().write_all(b"220 sink\r\n").is_err() {
        return false;
    }
    let mut is_letter = false;
    loop {
        let mut line = String::new();
        // A client that resets the connection is one that goes.
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        let line = line.trim_end_matches("\r\n").to_owned();
        seen.push(line.clone());
        let reply = match (is_letter, line.split([' ', ':']).next().unwrap()) {
            (true, ".") => {
                is_letter = false;
                "250 queued".to_owned()
            }
            (true, _) => continue,
            (_, "EHLO") => {
                let mut lines = vec!["sink"];
                if manners.tls.is_some() && !is_encrypted {
                    lines.push("STARTTLS");
                }
                lines.extend(manners.offers);
                let (last, first) = lines.split_last().unwrap();
                let first: String = first.iter().map(|line| format!("250-{line}\r\n")).collect();
                format!("{first}250 {last}")
            }
            (_, "STARTTLS") => "220 go".to_owned(),
            (_, "AUTH") if line.ends_with(" LOGIN") => "334 VXNlcm5hbWU6".to_owned(),
            (_, "AUTH") => "235 in".to_owned(),
            (_, "dXNlcg==") => "334 UGFzc3dvcmQ6".to_owned(),
            (_, "c2VjcmV0") => "235 in".to_owned(),
            (_, "RCPT") if line.contains("<nobody") => "550 5.1.1 no such user".to_owned(),
            (_, "DATA") => {
                is_letter = true;
                "354 go".to_owned()
            }
            (_, "QUIT") => return false,
            _ => "250 ok".to_owned(),
        };
        let reply = format!("{reply}\r\n");
        if stream.get_mut().write_all(reply.as_bytes()).is_err() {
            return false;
        }
        stream.get_mut().flush().unwrap();
        if line == "STARTTLS" {
            return true;
        }
    }
}

/// A self-signed certificate for that name: a server with it, and a client's trust in it.
pub(crate) fn certified(name: &str) -> (Arc<ServerConfig>, Trust) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(plumb_wire::tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let pem = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        BASE64.encode(made.cert.der())
    );
    let trust = Trust::authorities(Some(pem.as_bytes())).unwrap();
    (Arc::new(config), trust)
}

fn outgoing(security: Security, trust: &Trust, login: bool, to: &[&str]) -> Outgoing {
    Outgoing {
        submission: Submission {
            client: String::new(),
            security,
            login: login.then(|| Login {
                user: "user".to_owned(),
                password: "secret".to_owned(),
            }),
            from: "plumb@example.net".parse().unwrap(),
            to: to.iter().map(|to| to.parse().unwrap()).collect(),
            letter: b"Subject: x\r\n\r\ntext\r\n.\r\n".to_vec(),
        },
        trust: trust.clone(),
    }
}

const LONG: Duration = Duration::from_secs(10);
const TO: &[&str] = &["a@example.net", "nobody@example.net", "b@example.net"];

#[test]
fn a_letter_goes_to_those_who_are_taken() {
    let sink = sink(Manners::default());
    let trust = Trust::nobody().unwrap();
    let outgoing = outgoing(Security::WhereOffered, &trust, false, TO);
    let refused = sink.server.hand(outgoing, LONG).unwrap();
    let refused: Vec<_> = refused
        .iter()
        .map(|refusal| (refusal.to.to_string(), refusal.reply.to_string()))
        .collect();
    assert_eq!(
        refused,
        [(
            "nobody@example.net".to_owned(),
            "550 5.1.1 no such user".to_owned()
        )]
    );
    let seen = sink.seen.join().unwrap();
    assert_eq!(seen[0], "EHLO [127.0.0.1]");
    assert_eq!(seen[5..], ["DATA", "Subject: x", "", "text", ".", "QUIT"]);
}

#[test]
fn passwords_go_by_tls_that_is_believed() {
    let (tls, trust) = certified("127.0.0.1");
    for (wrapped, offers, login) in [
        (
            false,
            &["AUTH PLAIN LOGIN"][..],
            &["AUTH PLAIN AHVzZXIAc2VjcmV0"][..],
        ),
        (
            true,
            &["AUTH LOGIN"],
            &["AUTH LOGIN", "dXNlcg==", "c2VjcmV0"],
        ),
    ] {
        let security = match wrapped {
            true => Security::Wrapped,
            false => Security::Required,
        };
        let sink = sink(Manners {
            tls: Some(Arc::clone(&tls)),
            wrapped,
            offers,
        });
        let outgoing = outgoing(security, &trust, true, &["a@example.net"]);
        assert_eq!(sink.server.hand(outgoing, LONG), Ok(Vec::new()));
        let seen = sink.seen.join().unwrap();
        let begin = seen.iter().position(|line| line == login[0]).unwrap();
        assert_eq!(seen[begin..begin + login.len()], *login);
    }
}

#[test]
fn a_certificate_that_nobody_signed_is_refused() {
    let (tls, _) = certified("127.0.0.1");
    let (_, other) = certified("127.0.0.1");
    let sink = sink(Manners {
        tls: Some(tls),
        ..Manners::default()
    });
    let outgoing = outgoing(Security::WhereOffered, &other, true, &["a@example.net"]);
    let why = sink.server.hand(outgoing, LONG).unwrap_err();
    assert!(why.contains("the certificate is not believed"), "{why}");
    assert!(
        why.contains("ca = \"/FILE\"") && !why.contains("--ca"),
        "{why}"
    );
    let seen = sink.seen.join().unwrap();
    assert!(
        seen.iter()
            .all(|line| !line.contains("AUTH") && !line.contains("MAIL")),
        "{seen:?}"
    );
}

/// A server that says so, and then keeps the connection open for a while or, without anything to say, without end.
fn saying(pieces: &'static [&'static str]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for piece in pieces.iter().cycle() {
            if stream.write_all(piece.as_bytes()).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let _ = stream.read(&mut [0; 1]);
        thread::sleep(LONG);
    });
    Server {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

#[test]
fn servers_that_are_slow_or_say_nothing_are_given_up_in_time() {
    let trust = Trust::nobody().unwrap();
    let within = Duration::from_millis(400);
    for (pieces, words) in [
        // Never a reply, one byte of it at a time, and always another line.
        (&[][..], "no answer in time"),
        (&["2"], "no answer in time"),
        (&["220-x\r\n"], "no answer in time"),
        (&["HTTP/1.1 400 Bad Request\r\n\r\n"], "no mail server's"),
        (&["421 too busy\r\n"], "greets with 421 too busy"),
    ] {
        let begun = Instant::now();
        let outgoing = outgoing(Security::WhereOffered, &trust, false, TO);
        let why = saying(pieces).hand(outgoing, within).unwrap_err();
        assert!(
            why.contains(words) || why.contains("time is up"),
            "{pieces:?}: {why}"
        );
        assert!(begun.elapsed() < within * 5, "{:?}", begun.elapsed());
    }
}

#[test]
fn what_comes_before_tls_is_nobodys() {
    let trust = Trust::anyone().unwrap();
    let server = saying(&["220 hi\r\n250-x\r\n250 STARTTLS\r\n220 go\r\n250 injected\r\n"]);
    let outgoing = outgoing(Security::WhereOffered, &trust, false, TO);
    let why = server.hand(outgoing, LONG).unwrap_err();
    assert!(why.contains("says more before TLS"), "{why}");
}
