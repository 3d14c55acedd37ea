//! Web servers as far ends: large objects down, and large bodies up, by HTTP/2 or HTTP/1.1.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow::TcpFlow;

use super::exchange::{Exchange, Feed};
use super::fetch::{get, request, timed};
use super::http_load::HttpLoad;
use super::in_band::InBand;
use super::site::{HTTP1, HTTP2, Site};
use crate::asked::{Asked, Has, cannot};
use crate::control_client::ClientError;
use crate::one_ended::{Looks, carry, conclude};
use crate::outcome::PhaseOutcome;
use crate::peer::{Carries, Peer};
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_state::Stage;
use crate::phase_watch::Progress;
use crate::responsiveness_probes::{FOREIGN_WITHIN, Foreign};
use crate::streams::{Stream, Streams};
use crate::tcp::TcpLoad;
use crate::tcp::options::options;
use crate::transactions::Broken;
use crate::transactions::log::Timing;

/// How long a server has to begin to speak HTTP.
const BEGINNING: Duration = Duration::from_secs(5);

/// What load a web server carries.
#[derive(Debug, Clone)]
pub struct HttpServer {
    pub site: Site,
    /// The protocol's name in messages.
    pub protocol: &'static str,
    /// Path and query of a large object.
    pub down: Option<String>,
    /// Path and query that takes large bodies.
    pub up: Option<String>,
    /// Path and query of an object of a byte or none, where the server has one.
    pub small: Option<String>,
    /// The most bytes of one body; without it a body ends with the test.
    pub body_bytes: Option<u64>,
}

impl HttpServer {
    /// A stream. Where requests are to be made beside its load, `probed` says when that begins.
    fn open(
        &self,
        role: OneDirection,
        number: u32,
        flow: &TcpFlow,
        probed: Option<Duration>,
    ) -> Result<Stream, ClientError> {
        let (socket, tls) = self.site.connect(&options(flow), &[HTTP2, HTTP1])?;
        let kept = socket.try_clone().map_err(|error| ClientError::Local {
            name: self.site.name.clone(),
            why: error.to_string(),
        })?;
        let exchange = Exchange::begin(socket, tls, BEGINNING)
            .map_err(|error| self.site.broken(&error.to_string()))?;
        let site = Arc::new(self.site.clone());
        let lacks = |what| cannot(&self.site.name, self.protocol, what);
        let in_band = match probed {
            None => None,
            Some(_) if !exchange.is_http2() => {
                return Err(lacks(
                    "requests beside a load on this server, which speaks no HTTP/2",
                ));
            }
            Some(starts_after) => {
                let path = self.small.as_deref();
                let path = path.ok_or_else(|| {
                    lacks("small object on this server, for round trips a minute")
                })?;
                let first = get(&site, path)?;
                let make = again(first, |()| Feed::default());
                Some(InBand::new(starts_after, make))
            }
        };
        let load = match role {
            OneDirection::Down => {
                let path = self.down.clone().ok_or_else(|| lacks("download"))?;
                // Once it could be built, it can be again.
                let first = get(&site, &path)?;
                HttpLoad::new(exchange, again(first, |()| Feed::default()), in_band)
            }
            OneDirection::Up => {
                let path = self.up.clone().ok_or_else(|| lacks("upload"))?;
                let body = self.body_bytes;
                let feed = move || Feed::of(body.unwrap_or(u64::MAX), body.is_some());
                let first = request(&site, "POST", &path, feed())?;
                HttpLoad::new(exchange, again(first, move |()| feed()), in_band)
            }
        };
        Ok(Stream::Tcp(TcpLoad {
            number,
            flow: flow.clone(),
            socket: kept,
            tls: None,
            framing: Some(Box::new(load)),
            file: None,
        }))
    }
}

/// A small object, each time on a connection of its own.
#[derive(Debug)]
struct Small {
    site: Site,
    path: String,
}

impl Foreign for Small {
    fn ask(&self, stage: &Stage) -> Result<Timing, Broken> {
        timed(&self.site, &self.path, FOREIGN_WITHIN).map_err(|error| match stage.is_over() {
            true => Broken::Over,
            false => Broken::Failed(error.to_string()),
        })
    }
}

/// Makes the same request each time, with a body of its own.
fn again(
    first: hyper::Request<Feed>,
    body: impl Fn(()) -> Feed + Send + 'static,
) -> Box<dyn Fn() -> hyper::Request<Feed> + Send> {
    let (parts, _) = first.into_parts();
    Box::new(move || hyper::Request::from_parts(parts.clone(), body(())))
}

impl Peer for HttpServer {
    /// Only HTTP/2 over TLS is probed, which is what the draft has.
    fn rpm_method(&self) -> &'static str {
        "ietf"
    }

    fn carries(&self) -> Carries {
        let (down, up) = (self.down.is_some(), self.up.is_some());
        Carries {
            down,
            up,
            both: down && up,
            datagrams: false,
            ..Carries::EVERYTHING
        }
    }

    fn run_phase(
        &mut self,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError> {
        let has = match self.site.security {
            Some(_) => Has::Requests,
            None => Has::Loads,
        };
        let asked = Asked::of(plan, &self.site.name, self.protocol, has)?;
        let mut starts = asked.probed.iter().flatten().copied();
        let open = |role, count| (0..count).map(move |number| (role, number));
        let mut streams = Streams::default();
        for (role, number) in
            open(OneDirection::Down, asked.down).chain(open(OneDirection::Up, asked.up))
        {
            let stream = self.open(role, number, &asked.flow, starts.next())?;
            match role {
                OneDirection::Down => streams.incoming.push(stream),
                OneDirection::Up => streams.outgoing.push(stream),
            }
        }
        let wait = |within| {
            std::thread::sleep(within);
            Ok(())
        };
        let name = &self.site.name;
        let looks = Looks {
            conductor,
            progress,
            cancel,
        };
        let foreign = match (&asked.probed, &self.small) {
            (Some(_), Some(path)) => {
                let (site, path) = (self.site.clone(), path.clone());
                let foreign: Arc<dyn Foreign> = Arc::new(Small { site, path });
                Some(foreign)
            }
            _ => None,
        };
        let carried = carry(name, streams, foreign, plan, looks, || (), wait)?;
        let mut outcome = conclude(name, plan, carried, None)?;
        outcome.notes.push(
            "The far end is a web server: of an upload it is known what its TCP acknowledged, framing and encryption (0.2 % of it) \
             included, and of a download what arrived, but not what limited it."
                .to_owned(),
        );
        Ok(outcome)
    }
}
