//! Web servers as far ends: where they are, and what of them carries load.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::Context as _;
use plumb_load::web::{HttpServer, Ndt7, Security, Site, fetch};
use plumb_wire::url::{Origin, Scheme, Url};
use plumb_wire::web::{self, nq};

use super::sought::Sought;

/// Ports on which one is looked for where none is typed: HTTPS's, and that of `plumb serve`.
const PORTS: [u16; 2] = [443, web::PORT];

/// How long one of several ports may take to answer: a lost SYN is sent again after 1 s.
const LOOKING: Duration = Duration::from_secs(2);

/// Bytes of an object, and of a body, where a server limits them: about the most that Cloudflare's takes. On a line of
/// 1 Gbit/s and 20 ms the time between two is a fortieth.
const OBJECT_BYTES: u64 = 100_000_000;
const BODY_BYTES: u64 = 50_000_000;

/// A server of NDT7.
pub(crate) fn ndt7(sought: Sought<'_>) -> anyhow::Result<Ndt7> {
    Ok(Ndt7::at(site(sought)?))
}

/// A server of networkQuality, by the document that it has.
pub(crate) fn network_quality(sought: Sought<'_>) -> anyhow::Result<HttpServer> {
    let first = site(sought)?;
    let typed = url(sought.host).map(|url| url.target);
    let path = typed.filter(|path| path != "/");
    let path = path.unwrap_or_else(|| nq::PATH.to_owned());
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
    anyhow::ensure!(
        down.origin == up.origin,
        "{name} has its objects on several hosts: {} and {}",
        down.origin,
        up.origin
    );
    let host = match &document.test_endpoint {
        Some(edge) => edge,
        None => &down.origin.host,
    };
    let typed = url(sought.host).map(|url| url.origin.host);
    let typed = typed.unwrap_or_else(|| sought.target.host().to_owned());
    let address = match *host == typed {
        true => with_port(first.address, down.origin.port),
        false => {
            let mut addresses = (host.as_str(), down.origin.port)
                .to_socket_addrs()
                .with_context(|| format!("cannot find '{host}', where {name} has its objects"))?;
            addresses.next().context("a name without addresses")?
        }
    };
    Ok(HttpServer {
        site: at(sought, &down.origin, address)?,
        protocol: "networkQuality",
        down: Some(down.target),
        up: Some(up.target),
        body_bytes: None,
    })
}

/// A web server: the file at a URL, or what Cloudflare's speed test has.
pub(crate) fn http(sought: Sought<'_>) -> anyhow::Result<HttpServer> {
    let site = site(sought)?;
    let file = url(sought.host)
        .map(|url| url.target)
        .filter(|path| path != "/");
    let (down, up) = match file {
        Some(file) => (file, None),
        None => (
            format!("{}?bytes={OBJECT_BYTES}", web::DOWN),
            Some(web::UP.to_owned()),
        ),
    };
    Ok(HttpServer {
        site,
        protocol: "HTTP",
        down: Some(down),
        up,
        body_bytes: Some(BODY_BYTES),
    })
}

/// What was typed, where it is a URL.
fn url(typed: &str) -> Option<Url> {
    typed.parse().ok()
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
