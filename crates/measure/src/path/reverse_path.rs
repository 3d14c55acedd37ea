//! The reverse path: asked of a responder at the target while the forward path is traced, and compared with it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use plumb_load::{Caller, Client, ClientError};
use plumb_model::protocol::Protocol;
use plumb_model::results::path::WayBack;
use plumb_probe::path::Target;
use plumb_probe::path::remote_trace::read;
use plumb_wire::native::control::trace::{TraceAccess, TraceReport, TraceRequest};
use plumb_wire::native::spec::{MAX_TRACE_CYCLES, MAX_TRACE_HOPS, TRACE_TIME};

use super::wanted::{Back, Wanted};

/// How long a responder that must be there may take to be reached and to greet, each.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where none need be there; it is left alone sooner ([`Asking::learn`]).
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// A responder that is there has been reached and has greeted after two round trips; half of one more is
/// for the machines, and so is this.
const MACHINES: Duration = Duration::from_millis(100);
const ROUND_TRIPS: f64 = 2.5;
/// How often the request to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a responder reported.
#[derive(Debug)]
pub(super) struct Heard {
    /// The reverse path, without names.
    pub(super) way_back: WayBack,
    /// What must be known to read it.
    pub(super) notes: Vec<String>,
}

/// What the thread that asks has come to.
enum Step {
    /// A responder is there.
    Greeted,
    /// Its report, and the address of our end of its connection.
    Told(Box<Result<(TraceReport, Option<IpAddr>), ClientError>>),
}

/// A responder that is being asked.
pub(super) struct Asking {
    steps: Receiver<Step>,
    begun: Instant,
    request: TraceRequest,
    from: IpAddr,
    back: Back,
}

impl Asking {
    /// Asks in a thread of its own, which ends once it has a report, or after three times the patience and the time
    /// that a trace takes. `None` where nothing is wanted.
    pub(super) fn begin(wanted: &Wanted) -> Option<Self> {
        let port = wanted.back.port()?;
        let protocol = wanted.protocol.map(|protocol| protocol.named().0);
        let protocol = protocol.filter(|protocol| *protocol != Protocol::Tcp);
        let cycles = wanted.plan.cycles.unwrap_or(u32::MAX);
        let request = TraceRequest {
            id: 1,
            protocol,
            max_hops: wanted.plan.last_hop.min(MAX_TRACE_HOPS),
            cycles: u8::try_from(cycles)
                .unwrap_or(u8::MAX)
                .min(MAX_TRACE_CYCLES),
        };
        let mut address = wanted.target.address;
        address.set_port(port);
        let target = Target {
            address,
            ..wanted.target.clone()
        };
        let patience = match wanted.back {
            Back::Required(_) => PATIENCE,
            Back::No | Back::IfAnswered(_) => SHORT_PATIENCE,
        };
        let (telling, steps) = mpsc::channel();
        let asks = move || {
            let told = ask(&target, patience, &request, &|| {
                let _ = telling.send(Step::Greeted);
            });
            // The receiver is gone where the report comes too late.
            let _ = telling.send(Step::Told(Box::new(told)));
        };
        // Without a thread there is no report, which shows as no responder.
        let _ = Builder::new().name("plumb-way-back".to_owned()).spawn(asks);
        Some(Self {
            steps,
            begun: Instant::now(),
            request,
            from: wanted.target.address.ip(),
            back: wanted.back,
        })
    }

    /// What the responder reported; `None` where none is there, and none need be. One that has not greeted after two
    /// and a half of the path's round trips is not waited for, unless it must be there.
    pub(super) fn learn(
        &self,
        round_trip: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<Heard>, ClientError> {
        let required = matches!(self.back, Back::Required(_));
        let whole = 3 * PATIENCE + TRACE_TIME + PATIENCE;
        let mut until = match required {
            true => self.begun + whole,
            false => self.begun + round_trip.mul_f64(ROUND_TRIPS) + MACHINES,
        };
        let mut greeted = required;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.steps.recv_timeout(left.min(LOOK_EVERY)) {
                Ok(Step::Greeted) => {
                    greeted = true;
                    until = self.begun + whole;
                }
                Ok(Step::Told(told)) => {
                    return match *told {
                        Ok((report, here)) => Ok(Some(self.heard(&report, here))),
                        Err(error) if greeted || is_another_version(&error) => Err(error),
                        Err(_) => Ok(None),
                    };
                }
                Err(RecvTimeoutError::Timeout)
                    if !left.is_zero() && !stop.load(Ordering::Relaxed) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    fn heard(&self, report: &TraceReport, here: Option<IpAddr>) -> Heard {
        let (protocol, log) = read(&self.request, report);
        let result = log.result(protocol);
        let mut notes = Vec::new();
        if report.access == TraceAccess::Unprivileged {
            notes.push(
                "The responder traces the reverse path with unprivileged sockets, without CAP_NET_RAW.".to_owned(),
            );
        }
        match here {
            Some(here) if here != report.towards => notes.push(format!(
                "The responder sees this host as {}, which calls itself {here}: addresses are translated on the \
                 way (NAT), and the reverse path is shown as far as that address.",
                report.towards
            )),
            _ => {}
        }
        Heard {
            way_back: WayBack {
                from: self.from.to_string(),
                address: result.address,
                protocol: result.protocol,
                port: result.port,
                reached: result.reached,
                cycles: result.cycles,
                hops: result.hops,
                loss: result.loss,
            },
            notes,
        }
    }
}

/// A responder is there, and cannot be understood.
fn is_another_version(error: &ClientError) -> bool {
    matches!(error, ClientError::Ended { .. })
}

fn ask(
    target: &Target,
    patience: Duration,
    request: &TraceRequest,
    greeted: &dyn Fn(),
) -> Result<(TraceReport, Option<IpAddr>), ClientError> {
    let caller = Caller {
        longest: patience,
        ..Caller::PLAIN
    };
    let (outlet, name) = (&target.outlet, &target.name);
    let client = Client::connect_in_turn(outlet, name, target.address, patience, caller)?;
    greeted();
    let report = client.trace_back(request, TRACE_TIME + PATIENCE)?;
    let here = client.local_address().ok().map(|here| here.ip());
    Ok((report, here))
}
