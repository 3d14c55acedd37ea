//! `plumb ping` over HTTPS against a TLS server in a laboratory: the parts of a request, and whose
//! certificates are believed.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::common::network::Network;
use crate::common::{stderr, stdout};
use plumb_model::results::{Outcome, PingResult};
use plumb_model::run::Run;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

/// Tells the ignored test that it is a program: the folder of its certificate and key.
const INSIDE: &str = "PLUMB_TEST_TLS";

/// A certificate for a name in a folder, as the server and as the client wants it.
pub(crate) fn certificate(folder: &Path, file: &str, name: &str) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let write = |suffix: &str, bytes: &[u8]| {
        std::fs::write(folder.join(format!("{file}.{suffix}")), bytes).unwrap();
    };
    write("der", made.cert.der());
    write("key", &made.signing_key.serialize_der());
    let text = format!(
        "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n",
        base64(made.cert.der())
    );
    write("pem", text.as_bytes());
}

/// RFC 4648, section 4, in lines of 64 characters.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for (n, three) in bytes.chunks(3).enumerate() {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            text.push(match digit <= three.len() {
                true => DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char,
                false => '=',
            });
        }
        if n % 16 == 15 {
            text.push('\n');
        }
    }
    text + "\n"
}

/// A server with the certificate `server` of a folder.
pub(crate) fn of_server(folder: &Path) -> Arc<ServerConfig> {
    let read = |suffix: &str| std::fs::read(folder.join(format!("server.{suffix}"))).unwrap();
    let key = PrivatePkcs8KeyDer::from(read("key"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(read("der"))], key.into());
    Arc::new(config.unwrap())
}

/// A program in the laboratory: answers every request over TLS.
#[test]
#[ignore = "a program that the other test starts in a laboratory"]
fn program_tls_server() {
    let Some(folder) = std::env::var_os(INSIDE) else {
        return;
    };
    let config = of_server(Path::new(&folder));
    let listener = TcpListener::bind(("0.0.0.0", 443)).unwrap();
    // It ends with the laboratory.
    for stream in listener.incoming() {
        let (mut stream, config) = (stream.unwrap(), Arc::clone(&config));
        // What follows the handshake must not wait for its acknowledgement (RFC 896).
        stream.set_nodelay(true).unwrap();
        thread::spawn(move || {
            let mut session = ServerConnection::new(config).unwrap();
            let mut tls = rustls::Stream::new(&mut session, &mut stream);
            // What does not believe the certificate, or only looks whether somebody is there, asks nothing.
            if tls.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                let _ = tls.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
                let _ = tls.read(&mut [0; 1]);
            }
        });
    }
}

fn ping(run: &Run) -> &PingResult {
    match &run.measurements[0].outcome {
        Outcome::Ping(ping) => ping,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_parts_of_a_request_are_apart_and_certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "server", "server");
    certificate(folder.path(), "other", "server");
    let inside = folder.path().to_str().unwrap();
    let this = std::env::current_exe().unwrap();
    let service = [
        "env",
        &format!("{INSIDE}={inside}"),
        this.to_str().unwrap(),
        "--ignored",
        "--exact",
        "https::program_tls_server",
    ];
    let delay = r#"{ type = "delay", delay = "20ms" }"#;
    let mut network = Network::line(delay, delay);
    let script = format!(
        "export SSL_CERT_FILE={inside}/other.pem
         https='plumb ping --protocol https -i 50ms -W 2'
         $https server -c 6 --ca {inside}/server.pem --json
         $https server -c 2 --insecure --json
         SSL_CERT_FILE={inside}/server.pem $https server -c 2 --json
         $https server 10.0.0.2 -c 2 --pps 20 --ca {inside}/server.pem --json
         $https server -c 1 -q 2>&1; echo status $?
         $https 10.0.0.2 -c 1 -q --ca {inside}/server.pem 2>&1; echo status $?
         $https server -c 1 --ca {inside}/server.key 2>&1; echo status $?
         plumb ping server -c 1 --insecure 2>&1; echo status $?
         $https server --port 9 -c 2 --insecure 2>&1; echo closed $?
         $https server 10.0.0.2 --port 9 -c 1 --pps 20 --insecure 2>&1; echo closed $?"
    );
    let output = network
        .service("server", &service, 443)
        .run(&["bash", "-c", &script]);
    let text = stdout(&output);
    let (documents, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('{'));
    assert_eq!(documents.len(), 4, "{text}{}", stderr(&output));
    let runs: Vec<Run> = documents
        .iter()
        .map(|line| Run::from_json(line).unwrap())
        .collect();
    let checked = ping(&runs[0]);
    assert_eq!(
        (checked.received, checked.answers.get("HTTP 204")),
        (6, Some(&6)),
        "{checked:?}"
    );
    let phases = checked.phases.as_deref().unwrap();
    let parts = [phases.connect_s, phases.tls_s, phases.first_byte_s].map(Option::unwrap);
    for part in parts {
        // A round trip of 40 ms each (TLS 1.3), and a packet's time on the line.
        assert!((0.040..0.042).contains(&part.min), "{parts:?}");
    }
    assert_eq!(checked.rtt_s.unwrap().p50, parts[2].p50);
    let believed = |run: &Run| run.measurements[0].settings["certificates_checked"].clone();
    assert_eq!(
        [0, 1, 2].map(|n| believed(&runs[n])),
        [true, false, true].map(serde_json::Value::from)
    );
    assert_eq!([1, 2].map(|n| ping(&runs[n]).received), [2, 2]);
    let Outcome::Pings(many) = &runs[3].measurements[0].outcome else {
        panic!("{:?}", runs[3]);
    };
    let [by_name, by_address] = many.targets.as_slice() else {
        panic!("{many:?}");
    };
    assert_eq!(
        (by_name.received, by_name.answer.as_deref()),
        (2, Some("HTTP 204"))
    );
    assert_eq!(by_address.received, 0);
    assert!(
        by_address.error.as_ref().unwrap().contains("another name"),
        "{by_address:?}"
    );
    let rest = rest.join("\n");
    let words = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    for why in [
        "the one whom it names did not sign it",
        "it is for another name",
        "there is no certificate in it",
        "over HTTPS alone",
    ] {
        assert!(words.contains(why), "{why}: {rest}");
    }
    assert!(words.contains("refused: nothing listens"), "{rest}");
    assert_eq!(rest.matches("closed 1").count(), 2, "{rest}");
    assert!(!rest.contains("bytes from"), "{rest}");
    assert_eq!(rest.matches("status 1").count(), 3, "{rest}");
    assert_eq!(rest.matches("status 2").count(), 1, "{rest}");
}
