//! A document of a web server, as a whole.

use std::io;
use std::ops::ControlFlow;
use std::task::ready;
use std::time::{Duration, Instant};

use hyper::header;
use plumb_net::tcp::TcpOptions;

use super::exchange::{Exchange, Feed, answered, next_bytes};
use super::site::{HTTP1, HTTP2, Site};
use crate::control_client::ClientError;
use crate::tls::TlsSession;
use crate::transactions::log::Timing;

/// How long a document may take.
const LONGEST: Duration = Duration::from_secs(10);

/// The most bytes of one.
const MOST_BYTES: usize = 256 * 1024;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Fetches a path with its query; takes 20 s at most.
///
/// # Errors
/// When the server is not reached, is no web server, or sends more than a document.
pub fn fetch(site: &Site, path: &str) -> Result<Fetched, ClientError> {
    let (socket, tls) = site.connect(&TcpOptions::default(), &[HTTP2, HTTP1])?;
    let broken = |error: io::Error| site.broken(&error.to_string());
    let until = Instant::now() + LONGEST;
    let exchange = Exchange::begin(socket, tls, LONGEST).map_err(broken)?;
    fetch_on(exchange, site, path, until)
}

/// Fetches a path on a connection of its own, within that time; what that took.
///
/// # Errors
/// As [`fetch`], and when the server does not answer with it.
pub(super) fn timed(site: &Site, path: &str, within: Duration) -> Result<Timing, ClientError> {
    let began = Instant::now();
    let until = began + within;
    let (socket, tls) = site.connect(&TcpOptions::default(), &[HTTP2, HTTP1])?;
    let connected = began.elapsed();
    let handshake = tls.as_ref().map(TlsSession::handshake);
    let broken = |error: io::Error| site.broken(&error.to_string());
    let left = until.saturating_duration_since(Instant::now());
    let exchange = Exchange::begin(socket, tls, left).map_err(broken)?;
    let asked = Instant::now();
    let fetched = fetch_on(exchange, site, path, until)?;
    match fetched.status {
        200 => Ok(Timing {
            total: began.elapsed(),
            connect: Some(connected.saturating_sub(handshake.unwrap_or_default())),
            handshake,
            response: asked.elapsed(),
        }),
        status => Err(site.broken(&format!("the server answered HTTP {status}"))),
    }
}

fn fetch_on(
    mut exchange: Exchange,
    site: &Site,
    path: &str,
    until: Instant,
) -> Result<Fetched, ClientError> {
    let broken = |error: io::Error| site.broken(&error.to_string());
    let left = || until.saturating_duration_since(Instant::now());
    let mut request = Some(get(site, path)?);
    let mut answering = None;
    let late = || site.broken("the server did not answer in time");
    let answer = exchange.poll(left(), |sender, context| {
        let answering = match &mut answering {
            Some(answering) => answering,
            None => {
                let make = || request.take().unwrap_or_default();
                answering.insert(ready!(sender.poll_request(context, make))?)
            }
        };
        answered(answering, context)
    });
    let answer = answer.map_err(broken)?.ok_or_else(late)?;
    let status = answer.status().as_u16();
    let (mut from, mut body) = (answer.into_body(), Vec::new());
    let mut take = |bytes: Option<hyper::body::Bytes>| match bytes {
        None => ControlFlow::Break(Ok(())),
        Some(bytes) if body.len() + bytes.len() > MOST_BYTES => {
            ControlFlow::Break(Err(site.broken("the server's document is too long")))
        }
        Some(bytes) => {
            body.extend_from_slice(&bytes);
            ControlFlow::Continue(())
        }
    };
    loop {
        let bytes = exchange.poll(left(), |_, context| next_bytes(&mut from, context));
        if let ControlFlow::Break(done) = take(bytes.map_err(broken)?.ok_or_else(late)?) {
            done?;
            break;
        }
    }
    Ok(Fetched { status, body })
}

/// A request for a path.
pub(super) fn get(site: &Site, path: &str) -> Result<hyper::Request<Feed>, ClientError> {
    request(site, "GET", path, Feed::default())
}

/// A request with a body.
pub(super) fn request(
    site: &Site,
    method: &str,
    path: &str,
    body: Feed,
) -> Result<hyper::Request<Feed>, ClientError> {
    let uri = format!("{}://{}{path}", site.scheme(), site.authority);
    hyper::Request::builder()
        .method(method)
        .uri(uri)
        .header(header::HOST, &site.authority)
        .header(
            header::USER_AGENT,
            concat!("plumb/", env!("CARGO_PKG_VERSION")),
        )
        // What is compressed shows no rate.
        .header(header::ACCEPT_ENCODING, "identity")
        .body(body)
        .map_err(|error| site.broken(&error.to_string()))
}
