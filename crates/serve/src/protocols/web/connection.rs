//! One connection, from its first byte to its end.

use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Parts};
use hyper::{Request, Response};
use plumb_load::UnsentLimit;
use plumb_load::life::Life;
use plumb_load::tls::{Identity, TlsSession};
use plumb_load::web::{Channel, Driver, Tasks, Wire};
use plumb_net::tcp;
use plumb_wire::native::spec::GREETING_TIMEOUT;

use super::activity::Activity;
use super::body::Answer;
use super::routes::{Becomes, Client, Site};
use super::{echo, ndt7};
use crate::gate::Entrance;
use crate::shared::STOP_INTERVAL;

/// After which a connection on which nothing moves is closed: a client that has vanished is gone then, and one between two
/// requests connects again, as with the usual servers (Apache's `KeepAliveTimeout`).
const SILENCE: Duration = Duration::from_secs(5);

/// How long the last answer of a connection has to leave.
const FAREWELL: Duration = Duration::from_secs(1);

/// The most of a request's head, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// Streams at once of a connection: networkQuality has one that loads, and its probes.
const STREAMS: u32 = 32;

/// The first byte of a TLS record with a handshake (RFC 8446, section 5.1); no HTTP begins with it.
const TLS_HANDSHAKE: u8 = 22;

/// What the connection becomes by a WebSocket that was agreed to.
type Agreed = Arc<Mutex<Option<(OnUpgrade, Becomes)>>>;

/// Serves a connection until it ends, nothing moves on it for [`SILENCE`], or the gate is closed.
pub(super) fn serve(socket: TcpStream, peer: SocketAddr, site: &Arc<Site>, identity: &Identity) {
    let socket = Arc::new(socket);
    let ip = peer.ip().to_canonical();
    let place = site.gate.greet(ip, &socket);
    let Some((tls, is_secure)) = begin(&socket, identity) else {
        return;
    };
    // A client that must first prove that it has the key keeps its place among the connections that have not said what
    // they are: others may take it. All others get a place that makes room in the same manner: a load has a client's
    // place beside it, and a connection that asks for little, or never stops asking, must keep no other client out.
    let (_greeting, _place) = match site.gate.entrance(ip) {
        Entrance::Closed => return,
        Entrance::Locked(_) => (Some(place), None),
        Entrance::Open => {
            drop(place);
            (None, Some(site.gate.web(ip, &socket)))
        }
    };
    // Small answers are not kept back behind large ones.
    let _ = socket.set_nodelay(true);
    let is_http2 = tls
        .as_ref()
        .is_some_and(|tls| tls.protocol() == Some(b"h2"));
    let Ok((wire, driver)) = Wire::new(Arc::clone(&socket), tls) else {
        return;
    };
    let client = Client {
        activity: Activity::begin(),
        peer: ip,
        port: peer.port(),
        socket: Arc::clone(&socket),
        is_secure,
    };
    match is_http2 {
        true => serve_http2(wire, &driver, &client, site),
        false => serve_http1(wire, &driver, &client, site, &socket),
    }
}

/// Waits for the first byte, and shakes hands where it is TLS.
fn begin(socket: &TcpStream, identity: &Identity) -> Option<(Option<TlsSession>, bool)> {
    let deadline = Instant::now() + GREETING_TIMEOUT;
    socket.set_nonblocking(false).ok()?;
    socket.set_read_timeout(Some(GREETING_TIMEOUT)).ok()?;
    let mut first = [0];
    let is_tls = socket.peek(&mut first).ok()? == 1 && first == [TLS_HANDSHAKE];
    if !is_tls {
        return Some((None, false));
    }
    let tls = TlsSession::accept(socket, identity, deadline).ok()?;
    Some((Some(tls), true))
}

fn serve_http2(wire: Wire, driver: &Driver, client: &Client, site: &Arc<Site>) {
    let tasks = Tasks::default();
    let service = service_fn(|request| Arc::clone(site).answer(client.clone(), request));
    let connection = http2::Builder::new(tasks.clone())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES as u32)
        .adaptive_window(true)
        .serve_connection(wire, service);
    let mut connection = pin!(connection);
    let mut unsent = UnsentLimit::of_server();
    watch(driver, site, &client.activity, |context| {
        // Small answers between large ones must not wait behind a full buffer. A socket that takes no limit has broken.
        if let Ok(bytes) = unsent.follow(driver.socket()) {
            driver.limit_unsent(bytes);
            client.activity.set_piece(bytes);
        }
        if client.activity.is_over() {
            connection.as_mut().graceful_shutdown();
        }
        let polled = connection.as_mut().poll(context);
        tasks.poll(context);
        polled.map(|_| ())
    });
}

fn serve_http1(
    wire: Wire,
    driver: &Driver,
    client: &Client,
    site: &Arc<Site>,
    socket: &Arc<TcpStream>,
) {
    let agreed = Agreed::default();
    let service = service_fn(|mut request: Request<Incoming>| {
        let (site, client, agreed) = (Arc::clone(site), client.clone(), Arc::clone(&agreed));
        async move {
            let upgrade = hyper::upgrade::on(&mut request);
            let answer: Result<Response<Answer>, _> = site.answer(client, request).await;
            answer.inspect(|answer| {
                if let Some(becomes) = answer.extensions().get::<Becomes>() {
                    let mut agreed = agreed.lock().unwrap_or_else(PoisonError::into_inner);
                    *agreed = Some((upgrade, becomes.clone()));
                }
            })
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(HEAD_BYTES * 4)
        .serve_connection(wire, service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let is_over = watch(driver, site, &client.activity, |context| {
        connection.as_mut().poll(context).map(|_| ())
    });
    let agreed = agreed.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((upgrade, becomes)) = agreed.filter(|_| is_over) else {
        return;
    };
    let Ok(Some(Ok(upgraded))) = driver.run(STOP_INTERVAL, upgrade) else {
        return;
    };
    if let Ok(Parts { io, read_buf, .. }) = upgraded.downcast::<Wire>() {
        let (_, tls) = io.into_parts();
        if let Ok(channel) = Channel::new(Arc::clone(socket), tls, STOP_INTERVAL) {
            match becomes {
                Becomes::Test(asked, test) => {
                    ndt7::run(channel, &read_buf, asked, &test, site, client);
                }
                Becomes::Echoes(visited) => echo::run(channel, &read_buf, &visited, site),
            }
        }
    }
}

/// Polls until it is over, which gives true; or nothing moves or is asked for in [`SILENCE`], a request takes longer than it
/// may, whatever the client does meanwhile, or the gate is closed.
fn watch(
    driver: &Driver,
    site: &Site,
    activity: &Activity,
    mut poll: impl FnMut(&mut std::task::Context<'_>) -> Poll<()>,
) -> bool {
    let life = Life::begin();
    let begun = Instant::now();
    loop {
        match driver.poll(STOP_INTERVAL, &mut poll) {
            Ok(None) => {}
            Ok(Some(())) => return true,
            Err(_) => return false,
        }
        let Ok(info) = tcp::tcp_info(driver.socket()) else {
            return false;
        };
        activity.look(driver.socket());
        let moved = info.bytes_acked.wrapping_add(info.bytes_received);
        life.carried(moved);
        if activity.is_overdue(Instant::now(), moved) {
            return false;
        }
        let is_over = activity.over_for() >= Some(FAREWELL);
        let is_silent =
            activity.idle() >= SILENCE || life.silent_at(begun, SILENCE) <= Instant::now();
        if site.gate.is_closed() || is_silent || is_over {
            return false;
        }
    }
}
