//! Web servers as far ends: where they are, and what of them carries load.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::Context as _;
use plumb_load::web::{HttpServer, Ndt7, Security, Site, fetch};
use plumb_wire::url::{Origin, Scheme, Url};
use plumb_wire::web::{self, locate, nq};

use super::sought::Sought;

/// Ports on which a server is looked for where none is typed: the ports of HTTPS, and of the web in `plumb serve`.
pub(super) const PORTS: [u16; 2] = [443, web::PORT];

/// How long one of several ports may take to answer: a lost SYN is retransmitted after 1 s.
const LOOKING: Duration = Duration::from_secs(2);

/// Bytes of an object, and of a body, where a server limits them: about the most that Cloudflare's takes. On a line of
/// 1 Gbit/s and 20 ms the time between two is a fortieth.
const OBJECT_BYTES: u64 = 100_000_000;
const BODY_BYTES: u64 = 50_000_000;

/// A server of NDT7. A URL with a path is the URL of M-Lab's locate service, which names one.
pub(crate) fn ndt7(sought: Sought<'_>) -> anyhow::Result<Ndt7> {
    let first = site(sought)?;
    match path(sought.host) {
        None => Ok(Ndt7::at(first)),
        Some(path) => nearest(sought, &first, &path),
    }
}

/// The nearest of the servers that a locate service names, of those that can be found.
fn nearest(sought: Sought<'_>, service: &Site, path: &str) -> anyhow::Result<Ndt7> {
    let name = &sought.target.name;
    let answer = fetch(service, path)?;
    anyhow::ensure!(
        answer.status == 200,
        "{name} names no NDT7 server now: it answers HTTP {} for {path}",
        answer.status
    );
    let places = locate::parse(&answer.body)
        .with_context(|| format!("{name} is no locate service: {path} is not understood"))?;
    let mut why = anyhow::anyhow!("{name} names no NDT7 server with TLS");
    for place in places {
        match at_place(sought, &place) {
            Ok(server) => return Ok(server),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn at_place(sought: Sought<'_>, place: &locate::Place) -> anyhow::Result<Ndt7> {
    let read = |url: &str| {
        let secure = url.replacen("wss://", "https://", 1);
        let parsed: Result<Url, _> = secure.parse();
        parsed.with_context(|| format!("{} has a URL that is none: {url}", place.machine))
    };
    let (down, up) = (read(&place.download)?, read(&place.upload)?);
    anyhow::ensure!(
        down.origin == up.origin,
        "{} has its tests on several hosts",
        place.machine
    );
    let address = looked_up(sought, &down.origin)?;
    Ok(Ndt7 {
        site: at(sought, &down.origin, address)?,
        download: down.target,
        upload: up.target,
    })
}

/// A server of networkQuality, by the document that it has.
pub(crate) fn network_quality(sought: Sought<'_>) -> anyhow::Result<HttpServer> {
    let first = site(sought)?;
    let path = path(sought.host).unwrap_or_else(|| nq::PATH.to_owned());
    let document = fetch(&first, &path)?;
    let name = &sought.target.name;
    anyhow::ensure!(
        document.status == 200,
        "{name} is no server of networkQuality: it answers HTTP {} for {path}",
        document.status
    );
    let document = nq::parse(&document.body).with_context(|| {
        format!("{name} is no server of networkQuality: {path} is not understood")
    })?;
    let read = |url: &str| {
        let parsed: Result<Url, _> = url.parse();
        parsed.with_context(|| format!("{name} names a URL that is none: {url}"))
    };
    let down = read(&document.urls.large_https_download_url)?;
    let up = read(&document.urls.https_upload_url)?;
    let small = read(&document.urls.small_https_download_url)?;
    if let Some(other) = [&up, &small]
        .into_iter()
        .find(|url| url.origin != down.origin)
    {
        anyhow::bail!(
            "{name} has its objects on several hosts: {} and {}",
            down.origin,
            other.origin
        );
    }
    let mut edge = down.origin.clone();
    if let Some(host) = document.test_endpoint {
        edge.host = host;
    }
    let address = match edge.host == host_of(sought) {
        true => with_port(first.address, edge.port),
        false => looked_up(sought, &edge)?,
    };
    Ok(HttpServer {
        site: at(sought, &down.origin, address)?,
        protocol: "networkQuality",
        down: Some(down.target),
        up: Some(up.target),
        small: Some(small.target),
        body_bytes: None,
    })
}

/// A web server: the file at a URL, or what Cloudflare's speed test has.
pub(crate) fn http(sought: Sought<'_>) -> anyhow::Result<HttpServer> {
    let site = site(sought)?;
    let (down, up, small) = match path(sought.host) {
        Some(file) => (file, None, None),
        None => (
            format!("{}?bytes={OBJECT_BYTES}", web::DOWN),
            Some(web::UP.to_owned()),
            Some(format!("{}?bytes=1", web::DOWN)),
        ),
    };
    Ok(HttpServer {
        site,
        protocol: "HTTP",
        down: Some(down),
        up,
        small,
        body_bytes: Some(BODY_BYTES),
    })
}

/// What was typed, where it is a URL.
fn url(typed: &str) -> Option<Url> {
    typed.parse().ok()
}

/// Path and query of what was typed, where it is a URL that has one.
fn path(typed: &str) -> Option<String> {
    let target = url(typed).map(|url| url.target);
    target.filter(|path| path != "/")
}

/// The host that was typed.
fn host_of(sought: Sought<'_>) -> String {
    let typed = url(sought.host).map(|url| url.origin.host);
    typed.unwrap_or_else(|| sought.target.host().to_owned())
}

/// The port of a URL.
pub(super) fn port(typed: &str) -> Option<u16> {
    url(typed).map(|url| url.origin.port)
}

/// An address of a host that a document named, of the version of IP that the document came by where there is one.
fn looked_up(sought: Sought<'_>, origin: &Origin) -> anyhow::Result<SocketAddr> {
    let Origin { host, port, .. } = origin;
    let found = (host.as_str(), *port).to_socket_addrs();
    let found = found
        .with_context(|| format!("cannot find '{host}', which {} names", sought.target.name))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    addresses.sort_by_key(|address| address.is_ipv4() != sought.target.address.is_ipv4());
    addresses
        .first()
        .copied()
        .context("a name without addresses")
}

/// The host, and the port where one was typed, of a URL; nothing of what is none.
pub(crate) fn authority(typed: &str) -> Option<String> {
    url(typed).map(|url| url.origin.authority())
}

/// The server that was typed: over HTTPS where it is not said otherwise.
fn site(sought: Sought<'_>) -> anyhow::Result<Site> {
    let origin = match url(sought.host) {
        Some(url) => url.origin,
        None => Origin {
            scheme: Scheme::Https,
            host: sought.target.host().to_owned(),
            port: sought
                .port()
                .unwrap_or_else(|| open_port(sought.target.address)),
        },
    };
    let address = with_port(sought.target.address, origin.port);
    at(sought, &origin, address)
}

/// The first port on which something answers.
fn open_port(address: SocketAddr) -> u16 {
    let answers =
        |port: &u16| TcpStream::connect_timeout(&with_port(address, *port), LOOKING).is_ok();
    let [first, ..] = PORTS;
    PORTS.into_iter().find(answers).unwrap_or(first)
}

fn at(sought: Sought<'_>, origin: &Origin, address: SocketAddr) -> anyhow::Result<Site> {
    let security = match origin.scheme {
        Scheme::Http => None,
        Scheme::Https => Some(Security {
            config: sought.trust.trust()?.config(),
            server: origin.host.clone().try_into().with_context(|| {
                format!("'{}' is no name that a certificate may be for", origin.host)
            })?,
        }),
    };
    Ok(Site {
        name: sought.target.name.clone(),
        address,
        authority: origin.authority(),
        security,
    })
}

fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}
