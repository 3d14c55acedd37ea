//! Loads in virtual time: hosts behind a path of a known round trip and rate, whose times follow from arithmetic.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::time::Duration;

use plumb_model::results::page_load::{HttpVersion, ObjectSource, PageLoadResult};
use plumb_net::egress::Outlet;
use plumb_wire::url::Scheme;
use proptest::prelude::*;

use super::super::origin::{Established, Span, TlsDone};
use super::super::plan::{Limits, Objects, PagePlan};
use super::super::test_server::{Site, Speaker, page_of_images};
use super::{Action, Loader};
use crate::Trust;

const RTT_NS: u64 = 100_000_000;
const DNS_NS: u64 = 30_000_000;
const RTT_S: f64 = 0.1;
const DNS_S: f64 = 0.03;

/// What is on the way is in pieces of that size.
const SEGMENT_BYTES: usize = 1448;

#[derive(Clone)]
struct Host {
    address: &'static str,
    /// What it offers over TLS.
    offers: HttpVersion,
    site: Site,
}

/// Hosts by name, behind one line.
#[derive(Clone, Default)]
struct Internet {
    hosts: BTreeMap<&'static str, Host>,
    /// Of the line towards the client, in bits a second; without bound where there is none.
    rate_bps: Option<f64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Resolved(usize),
    Connected(usize),
    AtServer(usize, Vec<u8>),
    AtClient(usize, Vec<u8>),
    Ended(usize),
}

/// What happens when, in the order in which it was foreseen where that is at the same time.
#[derive(Default)]
struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    order: u64,
}

impl Agenda {
    fn push(&mut self, at: u64, happens: Happens) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, happens)));
    }
}

impl Internet {
    fn host(
        mut self,
        name: &'static str,
        address: &'static str,
        offers: HttpVersion,
        site: Site,
    ) -> Self {
        self.hosts.insert(
            name,
            Host {
                address,
                offers,
                site,
            },
        );
        self
    }

    fn one(offers: HttpVersion, site: Site) -> Self {
        Self::default().host("example.net", "192.0.2.1", offers, site)
    }

    fn load(&self, plan: &PagePlan) -> PageLoadResult {
        let mut loader = Loader::new(plan, 0);
        let mut now = 0;
        let mut line_free = 0;
        let mut agenda = Agenda::default();
        let mut servers: BTreeMap<usize, Speaker> = BTreeMap::new();
        loop {
            loop {
                match loader.next_action() {
                    Some(Action::Resolve { server }) => {
                        agenda.push(now + DNS_NS, Happens::Resolved(server))
                    }
                    Some(Action::Connect { connection }) => {
                        let (origin, _) = loader.addresses(connection).unwrap();
                        let trips = 1 + u64::from(origin.scheme == Scheme::Https);
                        agenda.push(now + trips * RTT_NS, Happens::Connected(connection));
                    }
                    Some(Action::Close { connection }) => drop(servers.remove(&connection)),
                    None => break,
                }
            }
            for connection in 0..100 {
                let output = loader.take_output(connection);
                if !output.is_empty() {
                    loader.sent(connection, now);
                    agenda.push(now + RTT_NS / 2, Happens::AtServer(connection, output));
                }
            }
            for server in 0..loader.servers.len() {
                assert!(loader.live(Some(server)) <= plan.limits.connections_per_origin);
            }
            assert!(loader.live(None) <= plan.limits.connections);
            if loader.is_done() {
                return loader.result();
            }
            let Some(Reverse((at, _, happens))) = agenda.heap.pop() else {
                panic!("nothing happens any more: {loader:?}");
            };
            now = at;
            match happens {
                Happens::Resolved(server) => {
                    let origin = loader.origin(server).unwrap();
                    let host = self.hosts.get(origin.host.as_str());
                    let found = host.map(|host| {
                        vec![SocketAddr::new(host.address.parse().unwrap(), origin.port)]
                    });
                    let span = Span {
                        from_ns: now - DNS_NS,
                        to_ns: now,
                    };
                    loader.resolved(server, found.ok_or("no such name".to_owned()), span);
                }
                Happens::Connected(connection) => {
                    let (origin, addresses) = loader.addresses(connection).unwrap();
                    let by_name = self.hosts.get(origin.host.as_str());
                    let Some(host) = by_name else {
                        loader.not_established(connection, "connection refused");
                        continue;
                    };
                    let tls = origin.scheme == Scheme::Https;
                    let version = match (tls, plan.version) {
                        (_, Some(forced)) => forced,
                        (true, None) => host.offers,
                        (false, None) => HttpVersion::Http1,
                    };
                    let secured_ns = if tls { RTT_NS } else { 0 };
                    let connected_ns = now - secured_ns;
                    let span = |from_ns, to_ns| Span { from_ns, to_ns };
                    let established = Established {
                        address: addresses[0],
                        connect: span(connected_ns - RTT_NS, connected_ns),
                        rtt_s: Some(RTT_S),
                        tls: tls.then(|| TlsDone {
                            handshake: span(connected_ns, now),
                            version: "TLS 1.3".to_owned(),
                            round_trips: 1,
                        }),
                        version,
                    };
                    servers.insert(connection, Speaker::new(host.site.clone(), version));
                    loader.established(connection, established);
                }
                Happens::AtServer(connection, bytes) => {
                    let Some(server) = servers.get_mut(&connection) else {
                        continue;
                    };
                    for piece in server.receive(&bytes).chunks(SEGMENT_BYTES) {
                        let takes = self
                            .rate_bps
                            .map_or(0.0, |rate| piece.len() as f64 * 8e9 / rate);
                        line_free = line_free.max(now) + takes as u64;
                        agenda.push(
                            line_free + RTT_NS / 2,
                            Happens::AtClient(connection, piece.to_vec()),
                        );
                    }
                    if server.closed {
                        servers.remove(&connection);
                        agenda.push(line_free.max(now) + RTT_NS / 2, Happens::Ended(connection));
                    }
                }
                Happens::AtClient(connection, bytes) => loader.received(connection, &bytes, now),
                Happens::Ended(connection) => loader.ended(connection, None, now),
            }
        }
    }
}

fn plan(url: &str) -> PagePlan {
    PagePlan {
        url: url.parse().unwrap(),
        objects: Objects::Found,
        version: None,
        gzip: false,
        trust: Trust::anyone().unwrap(),
        ipv6: None,
        outlet: Outlet::default(),
        limits: Limits {
            time: Duration::from_secs(10),
            ..Limits::default()
        },
    }
}

fn html(body: &str) -> Site {
    Site::default().with("/", "text/html; charset=utf-8", body)
}

/// Within a microsecond: what rates round to.
fn close(found: Option<f64>, wanted: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() < 1e-6, "{found} instead of {wanted}");
}

/// What holds of every load.
fn consistent(result: &PageLoadResult) {
    if let Some(load_s) = result.load_s {
        let steps = result.critical_path.iter().map(|step| {
            step.blocked_s
                + step.dns_s
                + step.connect_s
                + step.tls_s
                + step.first_byte_s
                + step.body_s
        });
        assert!((steps.sum::<f64>() - load_s).abs() < 1e-6, "{result:#?}");
        // Nothing here is faster than its round trips, but for slow start, which is not simulated.
        assert!(result.html_s.unwrap() <= load_s);
        assert!(
            result
                .critical_path
                .iter()
                .all(|step| step.blocked_s > -1e-9)
        );
    }
    assert_eq!(result.requested, result.objects.len() as u64);
    let failed = result
        .objects
        .iter()
        .filter(|object| object.error.is_some());
    assert_eq!(result.failed, failed.count() as u64);
    for origin in &result.origins {
        assert!(
            origin.protocol != Some(HttpVersion::Http2) || origin.connections == 1,
            "{origin:?}"
        );
    }
}

#[test]
fn a_page_takes_the_round_trips_of_its_parts() {
    for (url, version, trips) in [
        ("http://example.net/", None, 2.0),
        ("http://example.net/", Some(HttpVersion::Http2), 2.0),
        ("https://example.net/", None, 3.0),
        ("https://example.net/", Some(HttpVersion::Http1), 3.0),
    ] {
        let net = Internet::one(HttpVersion::Http2, html("hello"));
        let result = net.load(&PagePlan {
            version,
            ..plan(url)
        });
        consistent(&result);
        close(result.first_byte_s, DNS_S + trips * RTT_S);
        close(result.load_s, DNS_S + trips * RTT_S);
        let trip = result.round_trips.unwrap();
        assert_eq!(trip.count, trips as u64);
        let step = result.critical_path[0];
        close(Some(step.dns_s), DNS_S);
        close(Some(step.first_byte_s), RTT_S);
        assert_eq!(
            (result.requested, result.failed, result.complete),
            (1, 0, true)
        );
        assert_eq!(
            (result.bytes, result.status, result.connections),
            (5, Some(200), 1)
        );
        let default = if url.starts_with("https") {
            HttpVersion::Http2
        } else {
            HttpVersion::Http1
        };
        assert_eq!(result.protocol, Some(version.unwrap_or(default)));
    }
}

/// Twelve images: HTTP/1.1 has one connection and opens five more; HTTP/2 asks for all at once.
#[test]
fn objects_take_the_round_trips_of_their_protocol() {
    let site = || html(&page_of_images(12)).with_images(12, 500);
    for (offers, load, connections, trips) in [
        (HttpVersion::Http1, 7.0, 6, 7),
        (HttpVersion::Http2, 4.0, 1, 4),
    ] {
        let result = Internet::one(offers, site()).load(&plan("https://example.net/"));
        consistent(&result);
        close(result.html_s, DNS_S + 3.0 * RTT_S);
        // Of HTTP/1.1 the five connections take two round trips, in which the first one brings two images; six more come in
        // the third and four in the fourth.
        close(result.load_s, DNS_S + load * RTT_S);
        assert_eq!(
            (result.connections, result.requested, result.complete),
            (connections, 13, true)
        );
        assert_eq!(result.bytes, page_of_images(12).len() as u64 + 12 * 500);
        let reused = result
            .objects
            .iter()
            .filter(|object| object.reused_connection == Some(true));
        assert_eq!(reused.count() as u64, 13 - connections);
        assert!(result.round_trips.unwrap().count <= trips);
        assert_eq!(result.origins[0].objects, 13);
    }
}

#[test]
fn bytes_take_the_time_of_the_line() {
    let site = html(&page_of_images(4)).with_images(4, 250_000);
    let mut net = Internet::one(HttpVersion::Http2, site);
    net.rate_bps = Some(8e6);
    let result = net.load(&plan("https://example.net/"));
    consistent(&result);
    // 1 MB at 8 Mbit/s, beside what frames and heads take.
    let bytes_s = 1.0;
    let load_s = result.load_s.unwrap() - DNS_S - 4.0 * RTT_S;
    assert!((bytes_s..bytes_s + 0.01).contains(&load_s), "{load_s}");
    // The last image is long behind its siblings, whose bytes its own wait for.
    assert_eq!(result.critical_path.len(), 2);
    assert!(result.object_body_s.unwrap().max > 0.2);
}

#[test]
fn what_names_what_is_on_the_critical_path() {
    let site = html("<link rel=stylesheet href=/a.css><img src=/small.png>")
        .with(
            "/a.css",
            "text/css",
            "@import 'b.css'; a { background: url(deep.png) }",
        )
        .with("/b.css", "text/css", "a { background: url(deeper.png) }")
        .with("/deep.png", "image/png", [0; 10])
        .with("/small.png", "image/png", [0; 10]);
    let result = Internet::one(HttpVersion::Http2, site).load(&plan("https://example.net/"));
    consistent(&result);
    let urls: Vec<&str> = result
        .objects
        .iter()
        .map(|o| o.url.rsplit('/').next().unwrap())
        .collect();
    // Of style sheets that are imported nothing is looked for: one level.
    assert_eq!(urls, ["", "a.css", "small.png", "b.css", "deep.png"]);
    close(result.load_s, DNS_S + 5.0 * RTT_S);
    let path: Vec<_> = result
        .critical_path
        .iter()
        .map(|step| urls[step.object as usize])
        .collect();
    assert_eq!(path[..2], ["", "a.css"]);
    assert_eq!(path.len(), 3);
    assert_eq!(result.round_trips.unwrap().count, 5);
    close(Some(result.round_trips.unwrap().time_s), 5.0 * RTT_S);
}

#[test]
fn redirects_and_other_origins_cost_what_they_cost() {
    let net = Internet::default()
        .host(
            "example.net",
            "192.0.2.1",
            HttpVersion::Http1,
            Site::default().with_redirect("/", 301, "https://www.example.net/x"),
        )
        .host(
            "www.example.net",
            "192.0.2.2",
            HttpVersion::Http2,
            Site::default().with(
                "/x",
                "text/html",
                "<img src=//img.example/a><img src=/none><img src=https://nobody.example/>",
            ),
        )
        .host(
            "img.example",
            "192.0.2.3",
            HttpVersion::Http2,
            Site::default().with("/a", "image/png", "x"),
        );
    let result = net.load(&plan("http://example.net/"));
    consistent(&result);
    assert_eq!(
        result.page_url.as_deref(),
        Some("https://www.example.net/x")
    );
    assert_eq!(
        (result.redirects, result.url.as_str()),
        (1, "http://example.net/")
    );
    close(result.first_byte_s, 2.0 * DNS_S + 5.0 * RTT_S);
    close(result.load_s, 3.0 * DNS_S + 8.0 * RTT_S);
    assert_eq!(result.critical_path.len(), 3);
    // What went wrong is named, and makes the load incomplete.
    let errors: Vec<_> = result
        .objects
        .iter()
        .filter_map(|object| object.error.as_deref())
        .collect();
    assert_eq!(
        errors,
        ["HTTP status 404", "its name was not found (no such name)"]
    );
    assert_eq!((result.failed, result.complete), (2, false));
    assert_eq!(result.dns_s.unwrap().count, 4);
    assert_eq!(result.origins.len(), 4);
}

#[test]
fn what_an_edge_adds_is_kept_of_the_page_and_not_of_its_objects() {
    for version in [HttpVersion::Http1, HttpVersion::Http2] {
        let site = html("<img src=/0.png>").with_images(1, 10);
        let site = site
            .with_field("/", "via", "1.1 edge")
            .with_field("/0.png", "age", "9");
        let result = Internet::one(version, site).load(&plan("https://example.net/"));
        let kept: Vec<_> = result.cache_fields.into_iter().collect();
        assert_eq!(kept, [("via".to_owned(), "1.1 edge".to_owned())]);
    }
}

#[test]
fn redirects_end() {
    let around = Site::default()
        .with_redirect("/", 302, "/b")
        .with_redirect("/b", 302, "/");
    let result = Internet::one(HttpVersion::Http2, around).load(&plan("https://example.net/"));
    consistent(&result);
    assert_eq!((result.requested, result.load_s), (21, None));
    assert_eq!(
        result.objects[20].error.as_deref(),
        Some("more than 20 redirects")
    );
    for (to, why) in [
        (
            "file:///etc/passwd",
            "only http and https are fetched, and this is file:",
        ),
        ("http://example.net:25/", "port 25"),
        ("http://", "it names no host"),
    ] {
        let away = Site::default().with_redirect("/", 307, to);
        let result = Internet::one(HttpVersion::Http1, away).load(&plan("http://example.net/"));
        let error = result.objects[0].error.as_deref().unwrap();
        assert!(error.contains(why) && result.requested == 1, "{error}");
    }
}

/// A public page may not make this host ask its own network.
#[test]
fn pages_do_not_lead_into_networks_less_public_than_theirs() {
    let page = "<img src=http://10.0.0.1/a><img src=http://router.example/b><img src=http://[::1]/c><img src=/d>";
    let net = |address| {
        Internet::default()
            .host(
                "example.net",
                address,
                HttpVersion::Http1,
                html(page).with("/d", "image/png", "x"),
            )
            .host(
                "router.example",
                "192.168.1.1",
                HttpVersion::Http1,
                Site::default().with("/b", "image/png", "x"),
            )
    };
    let result = net("192.0.2.1").load(&plan("http://example.net/"));
    consistent(&result);
    let failed: Vec<_> = result
        .objects
        .iter()
        .filter(|o| o.error.is_some())
        .map(|o| o.url.as_str())
        .collect();
    assert_eq!(
        failed,
        [
            "http://10.0.0.1/a",
            "http://router.example/b",
            "http://[::1]/c"
        ]
    );
    assert!(
        result.objects[1]
            .error
            .as_deref()
            .unwrap()
            .contains("pages do not lead there")
    );
    assert_eq!(result.connections, 1);
    // One of a private network may name its neighbours, and none names this host.
    let result = net("192.168.1.2").load(&plan("http://example.net/"));
    assert_eq!(result.objects[2].error, None);
    assert!(result.objects[3].error.is_some());
    // What the user lists is the user's affair.
    let listed = vec!["http://router.example/b".parse().unwrap()];
    let result = net("192.0.2.1").load(&PagePlan {
        objects: Objects::Listed(listed),
        ..plan("http://example.net/")
    });
    assert!(result.complete);
}

#[test]
fn a_list_is_loaded_when_the_page_is_complete() {
    let net = Internet::one(
        HttpVersion::Http2,
        html(&page_of_images(3)).with_images(5, 10),
    );
    let listed = [4, 4, 1].map(|n| format!("https://example.net/{n}.png").parse().unwrap());
    let objects = Objects::Listed(listed.to_vec());
    let result = net.load(&PagePlan {
        objects,
        gzip: true,
        ..plan("https://example.net/")
    });
    consistent(&result);
    assert_eq!(
        (result.requested, result.objects_from, result.gzip_allowed),
        (3, ObjectSource::List, true)
    );
    close(result.load_s, DNS_S + 4.0 * RTT_S);
    let only = net.load(&PagePlan {
        objects: Objects::None,
        ..plan("https://example.net/")
    });
    assert_eq!((only.requested, only.load_s), (1, only.html_s));
}

/// Whether a server says beforehand that it closes or not, each object comes, over as many connections as that takes.
#[test]
fn connections_that_the_server_closes_are_opened_again() {
    for silent_close in [false, true] {
        for answers in [1, 2] {
            let mut site = html(&page_of_images(8)).with_images(8, 10);
            (site.answers, site.silent_close) = (Some(answers), silent_close);
            let result = Internet::one(HttpVersion::Http1, site).load(&plan("http://example.net/"));
            assert!(result.complete, "{result:#?}");
            assert!(result.connections >= 9 / answers, "{}", result.connections);
        }
    }
    // One that never answers is asked three times.
    let mut site = html("x");
    (site.answers, site.silent_close) = (Some(0), true);
    let result = Internet::one(HttpVersion::Http1, site).load(&plan("http://example.net/"));
    assert_eq!((result.connections, result.failed), (3, 1));
    assert!(
        result.objects[0]
            .error
            .as_deref()
            .unwrap()
            .contains("ended before")
    );
}

#[test]
fn bounds_are_kept_and_named() {
    let site = || html(&page_of_images(50)).with_images(50, 10_000);
    let limits = Limits {
        objects: 20,
        ..Limits::default()
    };
    let result = Internet::one(HttpVersion::Http2, site()).load(&PagePlan {
        limits,
        ..plan("https://example.net/")
    });
    consistent(&result);
    assert_eq!(
        (result.requested, result.failed, result.complete),
        (20, 0, false)
    );
    assert_eq!(
        result.left_out,
        ["31 objects are left out: no more than 20 are fetched."]
    );
    let limits = Limits {
        bytes: 100_000,
        ..Limits::default()
    };
    let result = Internet::one(HttpVersion::Http2, site()).load(&PagePlan {
        limits,
        ..plan("https://example.net/")
    });
    consistent(&result);
    assert!(result.failed > 30 && result.bytes <= 100_000);
    assert!(
        result.objects[50]
            .error
            .as_deref()
            .unwrap()
            .contains("more than 100000 bytes")
    );
    // Connections of other origins make room.
    let pages: String = (0..9)
        .map(|n| format!("<img src=http://h{n}.example/>"))
        .collect();
    let names = [
        "h0.example",
        "h1.example",
        "h2.example",
        "h3.example",
        "h4.example",
        "h5.example",
        "h6.example",
        "h7.example",
        "h8.example",
    ];
    let net = names.iter().fold(
        Internet::one(HttpVersion::Http1, html(&pages)),
        |net, name| {
            net.host(
                name,
                "192.0.2.9",
                HttpVersion::Http1,
                Site::default().with("/", "image/png", "x"),
            )
        },
    );
    let limits = Limits {
        connections: 2,
        origins: 9,
        ..Limits::default()
    };
    let result = net.load(&PagePlan {
        limits,
        ..plan("http://example.net/")
    });
    assert_eq!(
        (result.requested, result.failed, result.connections),
        (9, 0, 9)
    );
    assert_eq!(
        result.left_out,
        ["1 object is left out: no more than 9 servers are asked."]
    );
}

proptest! {
    /// Any page of any host: the load ends, and its times add up.
    #[test]
    fn any_page_is_loaded_consistently(
        body in "(<img src=|<script src=|<link rel=stylesheet href=|<base href=|/a.css|/b|//other.example/|https://10.0.0.1/|b.css|['\"> ]){0,40}",
        sheet in "(@import |url\\(|\\)|'|/b|c.css|;| ){0,20}",
        to in "(/|https?://|example.net|other.example|:[0-9]{1,3}|b|\\.\\.){0,6}",
        offers in prop::bool::ANY, answers in prop::option::of(1..4_u64), silent_close: bool,
    ) {
        let offers = if offers { HttpVersion::Http2 } else { HttpVersion::Http1 };
        let mut site = html(&body).with("/a.css", "text/css", &sheet).with_redirect("/b", 302, &to);
        (site.answers, site.silent_close) = (answers, silent_close);
        let mut net = Internet::one(offers, site.clone()).host("other.example", "192.0.2.7", HttpVersion::Http1, site);
        net.rate_bps = Some(1e6);
        let limits = Limits { objects: 40, ..Limits::default() };
        for url in ["http://example.net/", "https://example.net/b"] {
            consistent(&net.load(&PagePlan { limits, ..plan(url) }));
        }
    }
}
