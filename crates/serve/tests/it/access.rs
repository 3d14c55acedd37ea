//! Who is served: clients on the Internet with the key alone, within what they may carry in a day.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use plumb_load::{Caller, Client, ClientError, EndedEarly};
use plumb_net::egress::Outlet;
use plumb_net::namespace::Namespaces;
use plumb_net::netlink::{Netlink, interface_index};
use plumb_serve::{Config, Policy, PolicyCell, StrangersLimits, Wanted, protocols};
use plumb_wire::native::control::{ErrorCode, Hex};
use plumb_wire::native::key::{Key, NONCE_BYTES, Purpose};
use plumb_wire::stamp::{ErrorEstimate, Request};

use crate::common::{Responder, TIMEOUT, plan, run, stamp_at};

/// An address of the Internet, which only this test's own network has.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9));

/// Runs it in a network where this host has that address.
fn as_stranger(name: &str, runs: impl FnOnce() + Send) {
    let network = Namespaces::create(name, || Ok::<_, io::Error>(())).unwrap();
    let ran = network.in_network(|| {
        let mut netlink = Netlink::open().unwrap();
        let loopback = interface_index("lo")?;
        netlink.set_up(loopback, None).unwrap();
        netlink.add_address(loopback, STRANGER, 32).unwrap();
        runs();
        Ok::<_, io::Error>(())
    });
    ran.unwrap();
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn with(policy: Policy) -> (Responder, Arc<PolicyCell>) {
    let policy = Arc::new(PolicyCell::new(policy));
    let responder = Responder::with(Config {
        policy: Arc::clone(&policy),
        protocols: vec![stamp_at(0, true)],
        ..Config::default()
    });
    (responder, policy)
}

/// Connects as the stranger.
fn client(responder: &Responder, key: Option<Key>) -> Result<Client, ClientError> {
    let address = SocketAddr::new(STRANGER, responder.address.port());
    let caller = Caller {
        key,
        ..Caller::PLAIN
    };
    Client::connect_in_turn(&Outlet::default(), "box", address, TIMEOUT, caller)
}

/// Whether the reflector answers the stranger.
fn is_reflected(responder: &Responder) -> bool {
    let socket = UdpSocket::bind((STRANGER, 0)).unwrap();
    let to = SocketAddr::new(STRANGER, responder.stamp_port.unwrap());
    socket.connect(to).unwrap();
    let patience = Duration::from_millis(300);
    socket.set_read_timeout(Some(patience)).unwrap();
    let request = Request {
        sequence: 0,
        sent_ns: 1,
        error: ErrorEstimate::new(false, Duration::from_secs(1)),
        session: 1,
    };
    socket.send(&request.write(None, &[], 0)).unwrap();
    socket.recv(&mut [0; 2000]).is_ok()
}

fn is_denied(client: Result<Client, ClientError>) -> bool {
    matches!(
        client,
        Err(ClientError::Ended {
            code: ErrorCode::Denied,
            ..
        })
    )
}

#[test]
fn a_stranger_needs_the_key_and_a_neighbour_none() {
    as_stranger("key", || {
        let (responder, policy) = with(Policy {
            key: Some(key("the right one")),
            ..Policy::default()
        });
        assert!(matches!(
            client(&responder, None),
            Err(ClientError::NeedsKey { .. })
        ));
        assert!(is_denied(client(&responder, Some(key("the wrong one")))));
        assert!(!is_reflected(&responder));
        // After a wrong key none of that address is looked at for a second.
        assert!(is_denied(client(&responder, Some(key("the right one")))));
        std::thread::sleep(Duration::from_millis(1100));
        let stranger = client(&responder, Some(key("the right one"))).unwrap();
        // Its datagrams are answered as long as its session lives.
        assert!(is_reflected(&responder));
        drop(stranger);
        drop(responder.client());
        // What is in force may change while it runs.
        policy.set(Policy {
            deny: vec!["9.0.0.0/8".parse().unwrap()],
            ..Policy::default()
        });
        assert!(is_denied(client(&responder, Some(key("the right one")))));
        policy.set(Policy {
            is_public: true,
            ..Policy::default()
        });
        drop(client(&responder, None).unwrap());
        assert!(is_reflected(&responder));
    });
}

#[test]
fn strangers_carry_no_more_than_they_may_in_a_day() {
    as_stranger("day", || {
        let (responder, _) = with(Policy {
            is_public: true,
            limits: StrangersLimits {
                bytes_a_day: 30_000_000,
                rate_bps: 160_000_000,
            },
            ..Policy::default()
        });
        let mut stranger = client(&responder, None).unwrap();
        // A second at that rate.
        let first = run(&mut stranger, &plan(1, 0, 1000)).unwrap();
        assert_eq!(first.ended_early, Some(EndedEarly::Budget), "{first:?}");
        let bytes = first.down.unwrap().result.bytes;
        assert!((18_000_000..=22_000_000).contains(&bytes), "{bytes}");
        assert!(
            first.notes.iter().any(|note| note.contains("20.0 MB")),
            "{:?}",
            first.notes
        );
        // The rest of the day.
        let second = run(&mut stranger, &plan(1, 0, 1000)).unwrap();
        let bytes = second.down.unwrap().result.bytes;
        assert!((8_000_000..=12_000_000).contains(&bytes), "{bytes}");
        let third = run(&mut stranger, &plan(1, 0, 1000))
            .unwrap_err()
            .to_string();
        assert!(third.contains("30.0 MB"), "{third}");
        // A neighbour has no such limit.
        let mut neighbour = responder.client();
        let unlimited = run(&mut neighbour, &plan(1, 0, 300)).unwrap();
        assert_eq!(unlimited.ended_early, None);
    });
}

/// The status and the body of what the web server answers the stranger; nothing where it answers nothing.
fn asked(responder: &Responder, method: &str, path: &str, body: &str) -> Option<(String, String)> {
    let mut socket = TcpStream::connect((STRANGER, responder.port_of("web")?)).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: box\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // One that is not served is gone.
    let _ = socket.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.to_owned(), body.to_owned()))
}

/// What a page posts that has that key and asked for a challenge.
fn answer(responder: &Responder, key: &Key) -> String {
    let (status, json) = asked(responder, "GET", "/__key", "").unwrap();
    assert_eq!(status, "200", "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let challenge = serde_json::from_value(json["challenge"].clone()).unwrap();
    let nonce = Hex([5; NONCE_BYTES]);
    let code = key.prove(Purpose::Page, challenge, nonce);
    serde_json::json!({ "challenge": challenge, "nonce": nonce, "code": code }).to_string()
}

#[test]
fn a_stranger_with_a_browser_proves_that_he_has_the_key() {
    as_stranger("webkey", || {
        let web = Wanted {
            entry: protocols::named("web").unwrap(),
            port: 0,
            is_required: true,
        };
        let right = key("the right one");
        let policy = Arc::new(PolicyCell::new(Policy {
            key: Some(right.clone()),
            ..Policy::default()
        }));
        let responder = Responder::with(Config {
            policy: Arc::clone(&policy),
            protocols: vec![stamp_at(0, true), web],
            ..Config::default()
        });
        let status = |path| asked(&responder, "GET", path, "").map(|(status, _)| status);
        let (first, page) = asked(&responder, "GET", "/", "").unwrap();
        assert_eq!(first, "403");
        assert!(page.contains("/key.js"), "{page}");
        assert_eq!(status("/key.js").unwrap(), "200");
        for path in [
            "/__down?bytes=10",
            "/page.js",
            "/status",
            "/metrics",
            "/.well-known/nq",
        ] {
            assert_eq!(status(path).unwrap(), "403", "{path}");
        }
        let post = |body: &str| asked(&responder, "POST", "/__key", body).unwrap().0;
        assert_eq!(post("{}"), "400");
        assert_eq!(post(&"[".repeat(400)), "400");
        // Made-up challenges are no attempts, whatever key they are answered with.
        for _ in 0..100 {
            let mut made_up: serde_json::Value =
                serde_json::from_str(&answer(&responder, &right)).unwrap();
            made_up["challenge"] = "00".repeat(NONCE_BYTES).into();
            assert_eq!(post(&made_up.to_string()), "400");
        }
        assert_eq!(post(&answer(&responder, &key("the wrong one"))), "403");
        let proof = answer(&responder, &right);
        assert_eq!(post(&proof), "429", "a second after a wrong one");
        std::thread::sleep(Duration::from_millis(1100));
        assert!(!is_reflected(&responder));
        assert_eq!(post(&proof), "200");
        // Protocols that have no key serve it as well.
        assert!(is_reflected(&responder));
        assert_eq!(status("/__down?bytes=10").unwrap(), "200");
        assert!(
            asked(&responder, "GET", "/", "")
                .unwrap()
                .1
                .contains("/page.js")
        );
        // One that is open when the policy changes is not served either.
        let kept = TcpStream::connect((STRANGER, responder.port_of("web").unwrap())).unwrap();
        kept.set_read_timeout(Some(TIMEOUT)).unwrap();
        let says = |mut socket: &TcpStream| {
            socket
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: box\r\n\r\n")
                .unwrap();
            let mut answer = [0; 12];
            socket.read_exact(&mut answer).unwrap();
            let status = String::from_utf8_lossy(&answer).into_owned();
            // What follows is in the way of the next answer.
            socket.set_nonblocking(true).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            while matches!(socket.read(&mut [0; 4096]), Ok(1..)) {}
            socket.set_nonblocking(false).unwrap();
            status
        };
        assert_eq!(says(&kept), "HTTP/1.1 200");
        policy.set(Policy {
            key: Some(key("yet another one")),
            ..Policy::default()
        });
        assert_eq!(
            status("/__down?bytes=10").unwrap(),
            "403",
            "the key is another"
        );
        assert_eq!(says(&kept), "HTTP/1.1 403");
        policy.set(Policy::default());
        assert_eq!(says(&kept), "HTTP/1.1 403");
        assert_eq!(status("/"), None, "nothing lets it in");
    });
}
