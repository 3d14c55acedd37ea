#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::net::TcpListener;
use std::time::Instant;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::super::plan::{Limits, Objects};
use super::super::test_server::{Site, Speaker, page_of_images};
use super::*;
use crate::Trust;

/// A server on loopback that answers until the test ends; its port.
fn serve(site: Site, tls: Option<Arc<ServerConfig>>, plain: HttpVersion) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (site, tls) = (site.clone(), tls.clone());
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let Some(tls) = tls else {
                    return answer(&mut stream, Speaker::new(site, plain));
                };
                let mut session = ServerConnection::new(tls).unwrap();
                while session.is_handshaking() {
                    if session.complete_io(&mut stream).is_err() {
                        return;
                    }
                }
                let version = match session.alpn_protocol() {
                    Some(b"h2") => HttpVersion::Http2,
                    _ => HttpVersion::Http1,
                };
                answer(
                    &mut StreamOwned::new(session, stream),
                    Speaker::new(site, version),
                );
            });
        }
    });
    port
}

fn answer(stream: &mut (impl Read + Write), mut speaker: Speaker) {
    let mut buffer = [0; 4096];
    while !speaker.closed
        && let Ok(count @ 1..) = stream.read(&mut buffer)
    {
        let out = speaker.receive(&buffer[..count]);
        if stream.write_all(&out).is_err() {
            break;
        }
    }
}

/// A server's certificate for localhost, and who believes it.
fn certificate(protocols: &[HttpVersion]) -> (Arc<ServerConfig>, Trust) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let builder = ServerConfig::builder_with_provider(plumb_wire::tls::provider());
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|v| v.name().into()).collect();
    let trust = Trust::authorities(Some(pem(made.cert.der()).as_bytes())).unwrap();
    (Arc::new(config), trust)
}

/// RFC 7468, with the digits of RFC 4648, section 4.
fn pem(der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for (n, three) in der.chunks(3).enumerate() {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        text.extend((0..4).map(|digit| match digit <= three.len() {
            true => DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char,
            false => '=',
        }));
        if n % 16 == 15 {
            text.push('\n');
        }
    }
    text + "\n-----END CERTIFICATE-----\n"
}

fn plan(url: String) -> PagePlan {
    PagePlan {
        url: url.parse().unwrap(),
        objects: Objects::Found,
        version: None,
        gzip: false,
        trust: Trust::anyone().unwrap(),
        ipv6: Some(false),
        outlet: Default::default(),
        limits: Limits {
            time: Duration::from_secs(20),
            ..Limits::default()
        },
    }
}

fn loaded(plan: &PagePlan) -> PageLoadResult {
    load(plan, &AtomicBool::new(false)).unwrap()
}

fn site() -> Site {
    Site::default()
        .with("/", "text/html", page_of_images(9))
        .with_images(9, 100_000)
}

#[test]
fn a_page_comes_over_every_version_with_and_without_tls() {
    let (both, trust) = certificate(&[HttpVersion::Http2, HttpVersion::Http1]);
    let (none, other) = certificate(&[]);
    let plain = |version| serve(site(), None, version);
    // A server this near may have sent every image over the first connection before a second one stands: how many a
    // distant one is given is shown in virtual time (`loader/tests.rs`).
    for (scheme, port, forced, trust, version, connections) in [
        (
            "http",
            plain(HttpVersion::Http1),
            None,
            None,
            HttpVersion::Http1,
            1..=6,
        ),
        (
            "http",
            plain(HttpVersion::Http2),
            Some(HttpVersion::Http2),
            None,
            HttpVersion::Http2,
            1..=1,
        ),
        (
            "https",
            serve(site(), Some(Arc::clone(&both)), HttpVersion::Http1),
            None,
            Some(&trust),
            HttpVersion::Http2,
            1..=1,
        ),
        (
            "https",
            serve(site(), Some(Arc::clone(&both)), HttpVersion::Http1),
            Some(HttpVersion::Http1),
            Some(&trust),
            HttpVersion::Http1,
            1..=6,
        ),
        (
            "https",
            serve(site(), Some(none), HttpVersion::Http1),
            None,
            Some(&other),
            HttpVersion::Http1,
            1..=6,
        ),
    ] {
        let mut plan = plan(format!("{scheme}://localhost:{port}/"));
        plan.version = forced;
        plan.trust = trust.cloned().unwrap_or(plan.trust);
        let result = loaded(&plan);
        assert!(result.complete, "{result:#?}");
        assert_eq!((result.protocol, result.requested), (Some(version), 10));
        assert!(connections.contains(&result.connections), "{result:#?}");
        assert_eq!(
            result.bytes,
            page_of_images(9).len() as u64 + 900_000,
            "{scheme} {version:?}"
        );
        let tls = result.origins[0].tls.as_deref();
        assert_eq!(tls, (scheme == "https").then_some("TLS 1.3"));
        assert_eq!(
            result.tls_s.map(|d| d.count),
            tls.map(|_| result.connections)
        );
        // Its name is looked up, and every part of the first object is there.
        let first = &result.objects[0];
        assert!(first.dns_s.is_some() && first.connect_s.is_some_and(|s| s > 0.0));
        assert!(first.sent_s.is_some() && first.first_byte_s.is_some() && first.body_s.is_some());
        let steps = result
            .critical_path
            .iter()
            .map(|s| s.blocked_s + s.dns_s + s.connect_s + s.tls_s + s.first_byte_s + s.body_s);
        let apart_s = steps.sum::<f64>() - result.load_s.unwrap();
        assert!(apart_s.abs() < 1e-6, "{apart_s}");
    }
}

#[test]
fn what_goes_wrong_is_named() {
    let (config, _) = certificate(&[HttpVersion::Http1]);
    let secured = serve(site(), Some(config), HttpVersion::Http1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap().port();
    drop(listener);
    let error = |plan: &PagePlan| {
        let result = loaded(plan);
        assert!(!result.complete && result.load_s.is_none());
        result.objects[0].error.clone().unwrap()
    };
    let refused = error(&plan(format!("http://127.0.0.1:{closed}/")));
    assert_eq!(refused, format!("127.0.0.1:{closed}: connection refused"));
    let mut unbelieved = plan(format!("https://localhost:{secured}/"));
    unbelieved.trust = certificate(&[]).1;
    let why = error(&unbelieved);
    assert!(
        why.contains("TLS handshake failed") && why.contains("not believed"),
        "{why}"
    );
    let mut forced = plan(format!("https://localhost:{secured}/"));
    forced.version = Some(HttpVersion::Http2);
    let why = error(&forced);
    // Servers say so by an alert (RFC 7301, section 3.2), or by leaving it out.
    assert!(
        why.contains("HTTP/2") || why.contains("NoApplicationProtocol"),
        "{why}"
    );
    let why = error(&plan(format!("http://localhost:{secured}/")));
    assert!(why.contains("not HTTP/1.1"), "{why}");
    let why = error(&plan("http://no-such-name.invalid/".to_owned()));
    assert!(why.starts_with("its name was not found ("), "{why}");
}

/// A body that never ends ends with the time or the bytes that a load may take, and with the request to stop.
#[test]
fn endless_answers_end() {
    let endless = |pause_ms| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                    while stream.write_all(&[b'<'; 1000]).is_ok() {
                        thread::sleep(Duration::from_millis(pause_ms));
                    }
                });
            }
        });
        plan(format!("http://127.0.0.1:{port}/"))
    };
    let mut slow = endless(50);
    slow.limits.time = Duration::from_millis(700);
    let begun = Instant::now();
    let result = loaded(&slow);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(
        result.objects[0].error.as_deref(),
        Some("not complete within 0.7 s")
    );
    assert!(result.bytes > 0 && result.first_byte_s.is_some() && result.html_s.is_none());
    let mut fast = endless(0);
    fast.limits.bytes = 1 << 20;
    let result = loaded(&fast);
    let error = result.objects[0].error.as_deref();
    assert_eq!(error, Some("more than 1048576 bytes came"));
    let stopped = load(&endless(50), &AtomicBool::new(true)).unwrap();
    assert!(
        stopped.objects[0]
            .error
            .as_deref()
            .unwrap()
            .contains("stopped")
    );
}

/// A server that takes nothing while it is asked for much holds up nothing but itself.
#[test]
fn requests_that_do_not_leave_at_once_leave_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let paths: Vec<String> = (0..90)
        .map(|n| format!("/{}{n}", "p".repeat(7000)))
        .collect();
    let objects = paths
        .iter()
        .map(|path| format!("http://127.0.0.1:{port}{path}").parse().unwrap());
    let listed: Vec<_> = objects.collect();
    let mut site = Site::default().with("/", "text/html", "x");
    for path in &paths {
        site = site.with(path, "text/plain", "y");
    }
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut speaker = Speaker::new(site, HttpVersion::Http2);
        let mut buffer = [0; 4096];
        let mut reads = 0;
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            reads += 1;
            if reads == 3 {
                thread::sleep(Duration::from_millis(300));
            }
            stream
                .write_all(&speaker.receive(&buffer[..count]))
                .unwrap();
        }
    });
    let mut plan = plan(format!("http://127.0.0.1:{port}/"));
    plan.version = Some(HttpVersion::Http2);
    plan.objects = Objects::Listed(listed);
    let result = loaded(&plan);
    assert!(result.complete && result.requested == 91, "{result:#?}");
}
