//! `plumb page` in a laboratory, from servers that others wrote: nginx (HTTP/1.1, HTTP/2) and nghttp2's nghttpd (HTTP/2), over
//! lines of known delay and rate.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::network::Network;
use crate::common::slots::{self, Weight};
use crate::common::{late_s, stderr, stdout};
use crate::https::base64;
use plumb_model::results::Outcome;
use plumb_model::results::page_load::{HttpVersion, PageLoadResult, PageObject};
use plumb_model::run::Run;

/// The images of the page. nginx sends each in a segment of its own, and ten segments leave a server at once
/// (RFC 6928).
const IMAGES: usize = 9;
const LARGE_BYTES: usize = 1_250_000;
const IMAGE_BYTES: usize = 800;
const MEDIUM_BYTES: usize = 80_000;

const RTT_S: f64 = 0.2;

/// A folder with the pages, a certificate and the configuration of nginx.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let mut html = "<!DOCTYPE html><title>A page</title>".to_owned();
    for number in 0..IMAGES {
        write(&format!("{number}.png"), &vec![b'x'; IMAGE_BYTES]);
        write!(html, "<img src=\"{number}.png\">").unwrap();
    }
    write("index.html", html.as_bytes());
    write("medium.html", b"<img src=/medium.png>");
    write("medium.png", &vec![b'x'; MEDIUM_BYTES]);
    write("large.html", b"<img src=/large.png>");
    write("large.png", &vec![b'x'; LARGE_BYTES]);
    let certificate = || rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
    write(
        "other.pem",
        pem("CERTIFICATE", certificate().cert.der()).as_bytes(),
    );
    let made = certificate();
    write("cert.pem", pem("CERTIFICATE", made.cert.der()).as_bytes());
    write(
        "key.pem",
        pem("PRIVATE KEY", &made.signing_key.serialize_der()).as_bytes(),
    );
    let at = folder.path().display();
    write(
        "nginx.conf",
        format!(
            "daemon off; master_process off; pid {at}/pid; error_log stderr; events {{ }}
             http {{
               types {{ text/html html; image/png png; }}
               access_log off; root {at};
               client_body_temp_path {at}/1; proxy_temp_path {at}/2; fastcgi_temp_path {at}/3;
               uwsgi_temp_path {at}/4; scgi_temp_path {at}/5;
               ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; ssl_protocols TLSv1.3;
               server {{ listen 80; location /moved {{ return 301 https://server/; }} }}
               server {{ listen 443 ssl http2; }}
               server {{ listen 8444 ssl http2; ssl_protocols TLSv1.2; }}
             }}"
        )
        .as_bytes(),
    );
    folder
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {label}-----\n{}-----END {label}-----\n",
        base64(der)
    )
}

/// Both servers behind a line: nginx at 80, 443 and, with TLS 1.2, 8444; nghttpd at 8443 with TLS and at 8080 without.
fn network(folder: &Path, line: [&str; 2]) -> Network {
    let mut network = Network::line(line[0], line[1]);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let at = folder.to_str().unwrap();
    let (key, cert, nginx) = (file("key.pem"), file("cert.pem"), file("nginx.conf"));
    network
        .service(
            "server",
            &["nginx", "-e", "stderr", "-p", at, "-c", &nginx],
            443,
        )
        .service("server", &["nghttpd", "-d", at, "8443", &key, &cert], 8443)
        .service("server", &["nghttpd", "--no-tls", "-d", at, "8080"], 8080);
    network
}

/// Loads pages, each with its options, three times; the fastest load of each, because a machine that stalls only adds to its time,
/// and by how much the laboratory was late meanwhile.
fn loads(network: &Network, ca: &str, pages: &[&str]) -> (Vec<PageLoadResult>, f64) {
    let script = pages
        .iter()
        .map(|page| format!("plumb page {page} --count 3 --ca {ca} -4 --json\n"));
    let output = network.run(&["bash", "-c", &script.collect::<String>()]);
    let text = stdout(&output);
    let runs = text.lines().map(|line| Run::from_json(line).unwrap());
    let loads = runs.map(|run| {
        let late_s = late_s(&run);
        let each = run.measurements.into_iter().map(|m| match m.outcome {
            Outcome::PageLoad(load) => *load,
            other => panic!("{other:?}"),
        });
        let seconds = |load: &PageLoadResult| load.load_s.unwrap_or(f64::INFINITY);
        let fastest = each.min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        (fastest.unwrap(), late_s)
    });
    let (results, late): (Vec<_>, Vec<_>) = loads.unzip();
    assert_eq!(results.len(), pages.len(), "{text}{}", stderr(&output));
    (results, late.into_iter().fold(0.0, f64::max))
}

/// Nothing is faster than so many round trips, and nothing that takes another one is as fast as half a trip more.
fn takes(what: &str, found: Option<f64>, trips: f64) {
    let found = found.unwrap();
    let range = trips * RTT_S - 0.001..(trips + 0.5) * RTT_S;
    assert!(
        range.contains(&found),
        "{what}: {found} s is not {trips} round trips of {RTT_S} s"
    );
}

#[test]
fn a_page_takes_the_round_trips_of_its_protocols() {
    let folder = site();
    let ca = folder.path().join("cert.pem").display().to_string();
    let delay = r#"{ type = "delay", delay = "100ms" }"#;
    let network = network(folder.path(), [delay, delay]);
    // What is loaded; what is spoken, round trips to the first byte and to the last, connections, redirects. With HTTP/1.1 the
    // images take three round trips and with TLS four: five connections are opened, while the first brings one image in each.
    let cases = [
        ("http://server/", HttpVersion::Http1, [2.0, 5.0], 6, 0),
        ("https://server/", HttpVersion::Http2, [3.0, 4.0], 1, 0),
        (
            "https://server/ --protocol http/1.1",
            HttpVersion::Http1,
            [3.0, 7.0],
            6,
            0,
        ),
        ("https://server:8444/", HttpVersion::Http2, [4.0, 5.0], 1, 0),
        // nghttpd asks for a key of another group than the one sent (HelloRetryRequest, RFC 8446, section 4.1.4).
        ("https://server:8443/", HttpVersion::Http2, [4.0, 5.0], 1, 0),
        (
            "http://server:8080/ --protocol h2",
            HttpVersion::Http2,
            [2.0, 3.0],
            1,
            0,
        ),
        // A connection on which nothing but the redirect comes, and one to where it leads.
        ("http://server/moved", HttpVersion::Http2, [5.0, 6.0], 2, 1),
        // 56 segments: slow start sends 10, 20 and 40.
        (
            "https://server:8443/medium.html",
            HttpVersion::Http2,
            [4.0, 7.0],
            1,
            0,
        ),
    ];
    let pages: Vec<&str> = cases.iter().map(|(page, ..)| *page).collect();
    let (results, late_s) = loads(&network, &ca, &pages);
    for ((url, version, [first, all], connections, redirects), result) in cases.iter().zip(&results)
    {
        assert!(result.complete, "{url}: {result:#?}");
        assert_eq!(
            (result.protocol, result.redirects),
            (Some(*version), *redirects),
            "{url}"
        );
        assert_eq!(result.connections, *connections, "{url}");
        let size = |object: &PageObject| {
            let path = object.url.rsplit('/').next().unwrap();
            let file = if path.is_empty() { "index.html" } else { path };
            std::fs::metadata(folder.path().join(file)).map(|file| file.len())
        };
        let answers = result
            .objects
            .iter()
            .filter(|object| object.status == Some(200));
        for object in answers {
            assert_eq!(object.bytes, size(object).unwrap(), "{}", object.url);
        }
        if !url.contains("medium") {
            assert_eq!(result.requested, 1 + IMAGES as u64 + redirects, "{url}");
        }
        takes(url, result.first_byte_s, *first);
        takes(url, result.load_s, *all);
        // TCP's handshake, timed by the kernel, is one round trip; TLS 1.3's is another, or two with HelloRetryRequest, as
        // TLS 1.2's is.
        let connect = result.connect_s.unwrap();
        assert!(
            connect.min >= RTT_S - 0.001 && connect.max < RTT_S + 0.01 + late_s,
            "{url}: {connect:?}"
        );
        if let Some(tls) = result.tls_s {
            let trips = if url.contains(":844") { 2.0 } else { 1.0 };
            takes(url, Some(tls.p50), trips);
        }
        let trips = result.round_trips.unwrap();
        assert!(
            trips.count as f64 <= *all && trips.load_ratio <= 1.001,
            "{url}: {trips:?}"
        );
        if *version == HttpVersion::Http2 {
            assert_eq!(
                trips.count as f64, *all,
                "{url}: {:?}",
                result.critical_path
            );
        }
    }
}

/// 1.25 MB at 10 Mbit/s: a second, beside what headers take, and what slow start leaves unused at first.
#[test]
fn a_large_object_takes_the_time_of_the_line() {
    let folder = site();
    let ca = folder.path().join("cert.pem").display().to_string();
    let delay = r#"{ type = "delay", delay = "20ms" }"#;
    let down = format!(r#"{{ type = "shaper", rate = "10mbit" }}, {delay}"#);
    let network = network(folder.path(), [delay, &down]);
    let pages = [
        "https://server/large.html",
        "https://server:8443/large.html",
        "http://server/large.html",
    ];
    let _slot = slots::take(Weight::Slow);
    let (results, _) = loads(&network, &ca, &pages);
    for (url, result) in pages.iter().zip(&results) {
        assert!(result.complete, "{url}: {result:#?}");
        let body_s = result.objects[1].body_s.unwrap();
        let bytes_s = LARGE_BYTES as f64 * 8.0 / 10e6;
        // Headers of Ethernet, IP, TCP and TLS are some 5 %; three round trips of 40 ms pass before the window is as large as
        // the path.
        assert!(
            (bytes_s * 0.98..bytes_s * 1.05 + 0.12).contains(&body_s),
            "{url}: {body_s}"
        );
        let steps = &result.critical_path;
        assert_eq!(steps.len(), 2, "{url}");
        assert!((steps[1].body_s - body_s).abs() < 1e-6);
    }
}

#[test]
fn a_check_for_the_web_loads_a_page_before_any_load() {
    let folder = site();
    let ca = folder.path().join("cert.pem").display().to_string();
    let delay = r#"{ type = "shaper", rate = "20mbit" }, { type = "delay", delay = "10ms" }"#;
    let mut network = network(folder.path(), [delay, delay]);
    network.serves("server");
    let command = [
        "check",
        "server",
        "--for",
        "web",
        "--ca",
        &ca,
        "--duration",
        "2s",
    ];
    let run = network.measured(&command).run;
    let at = |kind: fn(&Outcome) -> bool| run.measurements.iter().position(|m| kind(&m.outcome));
    let idle = at(|outcome| outcome.ping().is_some());
    let page = at(|outcome| matches!(outcome, Outcome::PageLoad(_)));
    let load = at(|outcome| outcome.throughput().is_some());
    assert!(
        idle < page && page < load && idle.is_some(),
        "{idle:?} {page:?} {load:?}"
    );
    let Outcome::PageLoad(result) = &run.measurements[page.unwrap()].outcome else {
        unreachable!()
    };
    assert!(
        result.complete && result.url == "https://server/",
        "{result:#?}"
    );

    // Without a responder too; and what goes with no page is refused.
    let script = format!(
        "plumb check server --port 9 --for web --page http://server/large.html --json
         plumb check server --ca {ca}; echo exit $?"
    );
    let text = stdout(&network.run(&["bash", "-c", &script]));
    let (run, rest) = text.split_once('\n').unwrap();
    let run = Run::from_json(run).unwrap();
    let pages = run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::PageLoad(result) => Some((&*result.url, result.complete)),
        _ => None,
    });
    let pages: Vec<_> = pages.collect();
    assert_eq!(pages, [("http://server/large.html", true)]);
    assert_eq!(rest.trim(), "exit 2");
}

#[test]
fn what_cannot_be_loaded_is_said() {
    let folder = site();
    let ca = folder.path().join("cert.pem").display().to_string();
    let network = network(folder.path(), ["", ""]);
    let other = folder.path().join("other.pem").display().to_string();
    let list = folder.path().join("list");
    std::fs::write(
        &list,
        "# images\nhttps://server/1.png\n\nhttps://server:8443/none\n",
    )
    .unwrap();
    let script = format!(
        "export SSL_CERT_FILE={other}
         plumb page https://server/ 2>&1; echo exit $?
         plumb page http://server:9/ -4 2>&1; echo exit $?
         plumb page ftp://server/ 2>&1; echo exit $?
         plumb page https://server/ --gzip 2>&1; echo exit $?
         plumb page https://server/ --ca {ca} --objects {} --gzip; echo exit $?
         export SSL_CERT_FILE=/dev/null SSL_CERT_DIR=/dev/null
         plumb page https://server/ 2>&1; echo exit $?
         plumb page http://server/large.html; echo exit $?
         plumb page http://server/moved 2>&1; echo exit $?",
        list.display()
    );
    let text = stdout(&network.run(&["bash", "-c", &script]));
    let parts: Vec<&str> = text.split("exit ").collect();
    for (part, words) in parts.iter().zip([
        ["TLS handshake failed", "not believed"],
        ["10.0.0.2:9", "connection refused"],
        ["only http and https", "--help"],
        ["searched", "--objects"],
        ["HTTP status 404", "page load time"],
        ["no certificate of anybody", "ca-certificates"],
        ["page load time", "large.png"],
        ["TLS handshake failed", "not believed"],
    ]) {
        assert!(
            words.iter().all(|word| part.contains(word)),
            "{words:?} in {part}"
        );
    }
    let statuses: Vec<_> = parts[1..]
        .iter()
        .map(|part| part.chars().next().unwrap())
        .collect();
    assert_eq!(statuses, ['1', '1', '2', '2', '0', '1', '0', '1'], "{text}");
}
