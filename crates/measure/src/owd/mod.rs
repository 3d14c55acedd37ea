//! `plumb owd`: delay, loss and order of each way, by the native echo, STAMP or irtt.

mod ways;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::formula::clocks::Comparison;
use plumb_model::order::sort_few;
use plumb_model::results::Outcome;
use plumb_model::results::owd::{ClockMethod, ClockState, OwdClocks, OwdResult, OwdWay};
use plumb_model::results::udp::{OneWayDelay, UdpReceiver};
use plumb_model::series::{Series, Unit};
use plumb_net::clock::{apart_ns, discipline};
use plumb_probe::{Exchange, FarClock, Plan, ProbeLog, Probing};

use crate::clocks::by_probes;
use crate::error::MeasureError;
use crate::progress::Watcher;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How often the watcher is shown how it goes.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What the times of both ends are off by where both read one clock, in seconds: the far end's time of
/// sending is its program's, which the kernel takes up to so much later.
const SAME_CLOCK_ERROR_S: f64 = 100e-6;

/// What the delays are to rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// A comparison over the path, or both hosts' own word where that is better.
    Judge,
    /// The user says that both ends read the same clock.
    Same,
}

/// Delay, loss and order of each direction of a path.
pub struct OneWay {
    pub plan: Plan,
    /// How the clocks are compared.
    pub clocks: Clocks,
}

impl Step for OneWay {
    fn name(&self) -> String {
        format!("the one-way delay to {}", self.plan.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        probe(
            self.plan.clone(),
            self.clocks,
            session.watcher,
            &session.stop,
        )
    }
}

fn probe(
    plan: Plan,
    clocks: Clocks,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Yield, MeasureError> {
    let mut out = Yield::default();
    let (interval, timeout) = (plan.interval, plan.timeout);
    let (size_bytes, dscp) = (plan.sizes.of(0), plan.dscp);
    let (name, port) = (plan.name.clone(), plan.target.port());
    let authenticated = plan.key.is_some();
    watcher.step(
        &format!("probing {name}"),
        plan.duration.unwrap_or_default(),
    );
    let probing = Probing::start(plan, Arc::clone(stop))?;
    let progress = probing.progress();
    while !probing.is_finished() {
        sleep(TELL_EVERY);
        let now = progress.read();
        watcher.update(&format!("{} of {} answered", now.received, now.sent));
    }
    let log = probing.join();
    if log.samples.iter().all(|sample| sample.exchange.is_none()) {
        return Err(MeasureError::Silence {
            name,
            tried: format!("{} probes", log.protocol.name().to_uppercase()),
            notes: log.notes.join(" "),
        });
    }
    out.notes(&log.notes);
    let measured = measure(&log, clocks, &mut out);
    let mut result = measured.result;
    (result.port, result.authenticated) = (port, authenticated);
    let series = [
        ("delay_up".to_owned(), measured.up),
        ("delay_down".to_owned(), measured.down),
    ];
    let outcome = Outcome::Owd(Box::new(result));
    let mut measured = Measured::of(log.started_monotonic_ns, log.duration_s, outcome)
        .set("interval_s", interval.as_secs_f64())
        .set("timeout_s", timeout.as_secs_f64())
        .set("size_bytes", size_bytes)
        .set("session", log.id)
        .with_series(series.into());
    if let Some(dscp) = dscp {
        measured = measured.set("dscp", dscp);
    }
    out.add(measured);
    Ok(out)
}

struct WaysMeasured {
    result: OwdResult,
    up: Series,
    down: Series,
}

/// What the log says of both ways.
fn measure(log: &ProbeLog, clocks: Clocks, out: &mut Yield) -> WaysMeasured {
    let exchanges: Vec<Exchange> = log.samples.iter().filter_map(|s| s.exchange).collect();
    let judged = judge(&exchanges, log.far_clock, clocks, out);
    let (mut up, mut down) = (OwdWay::default(), OwdWay::default());
    let counted = ways::count(log);
    let far_counts = counted.is_some();
    let mut lost_unplaced = log.samples.len().saturating_sub(exchanges.len()) as u64;
    if let Some(counted) = counted {
        lost_unplaced = counted.unplaced;
        counted.up.fill(&mut up);
        counted.down.fill(&mut down);
    } else if lost_unplaced > 0 {
        out.note(
            "The reflector does not count what it receives, so it is not known in which direction packets were lost.",
        );
    }
    let [of_up, of_down] = ways::analyse(log, |ns| judged.offset_at(ns));
    fill(&mut up, of_up, &judged);
    fill(&mut down, of_down, &judged);
    let hops = exchanges.iter().filter_map(|e| e.far.hop_limit);
    up.hop_limits = hops
        .clone()
        .min()
        .zip(hops.max())
        .map(|(low, high)| [low, high]);
    let hops = log.samples.iter().filter_map(|s| s.hop_limit);
    down.hop_limits = hops
        .clone()
        .min()
        .zip(hops.max())
        .map(|(low, high)| [low, high]);
    let ping = log.result(0.0, f64::INFINITY);
    let (series_up, series_down) = series(log, &judged);
    let result = OwdResult {
        protocol: log.protocol,
        address: log.address.to_string(),
        port: 0,
        authenticated: false,
        sent: log.samples.len() as u64,
        answered: exchanges.len() as u64,
        send_errors: ping.send_errors,
        dropped_here: ping.dropped_here,
        corrupted: ping.corrupted,
        rtt_s: Distribution::of(exchanges.iter().map(round_trip_s)),
        timestamps: ping.timestamps,
        up,
        down,
        lost_unplaced,
        far_counts,
        clocks: judged.clocks,
    };
    WaysMeasured {
        result,
        up: series_up,
        down: series_down,
    }
}

fn round_trip_s(exchange: &Exchange) -> f64 {
    let there = exchange.arrived_ns.saturating_sub(exchange.departed_ns);
    let kept = exchange
        .far
        .sent_ns
        .saturating_sub(exchange.far.received_ns);
    there.saturating_sub(kept) as f64 / 1e9
}

/// What the delays rest on.
struct Judged {
    compared: Option<Comparison>,
    /// Far clock less our monotonic one, ns, where it is not compared.
    fixed_ns: i64,
    clocks: OwdClocks,
    drift_s: Option<f64>,
}

impl Judged {
    fn offset_at(&self, ns: i64) -> i64 {
        self.compared
            .map_or(self.fixed_ns, |compared| compared.offset_at(ns))
    }
}

/// Chooses what the delays rest on.
fn judge(exchanges: &[Exchange], far: Option<FarClock>, clocks: Clocks, out: &mut Yield) -> Judged {
    let here = discipline().map(|clock| ClockState {
        synchronised: clock.synchronised,
        max_error_s: Some(clock.max_error.as_secs_f64()),
    });
    let far_state = far.map(|far| ClockState {
        synchronised: far.synchronised,
        max_error_s: far.error_s,
    });
    let apart = apart_ns();
    let compared = by_probes(exchanges);
    let mut told = OwdClocks {
        method: ClockMethod::None,
        offset_s: None,
        uncertainty_s: None,
        skew_ratio: None,
        skew_uncertainty_ratio: None,
        here,
        far: far_state,
        ptp_devices: ptp_devices(),
    };
    if clocks == Clocks::Same {
        told.method = ClockMethod::Same;
        told.offset_s = Some(0.0);
        told.uncertainty_s = Some(SAME_CLOCK_ERROR_S);
        return Judged {
            compared: None,
            fixed_ns: apart,
            clocks: told,
            drift_s: None,
        };
    }
    let compared = match compared {
        Ok(compared) => compared,
        Err(why) => {
            out.note(format!("There are no one-way delays: {why}."));
            return Judged {
                compared: None,
                fixed_ns: apart,
                clocks: told,
                drift_s: None,
            };
        }
    };
    let offset_s = compared.offset_ns.saturating_sub(apart) as f64 / 1e9;
    told.offset_s = Some(offset_s);
    told.skew_ratio = (compared.skew != 0.0).then_some(compared.skew);
    told.skew_uncertainty_ratio = compared.skew_error;
    // A clock of TAI is right and does not agree with one of UTC.
    let own = own_error(here, far_state).filter(|_| far.is_some_and(|far| !far.ptp));
    if let Some(error_s) = own.filter(|error_s| *error_s < compared.uncertainty_s) {
        if offset_s.abs() <= compared.uncertainty_s + error_s {
            told.method = ClockMethod::Synchronised;
            told.uncertainty_s = Some(error_s);
            return Judged {
                compared: None,
                fixed_ns: apart,
                clocks: told,
                drift_s: None,
            };
        }
        out.note(format!(
            "Both hosts say that their clocks are synchronised, and they are {offset_s:.3} s apart: one of them is wrong, and neither is used."
        ));
    }
    if here.is_none_or(|c| !c.synchronised) || far_state.is_none_or(|c| !c.synchronised) {
        out.note(
            "The clocks are not known to be synchronised: delays rest on a comparison over the path itself, which cannot show how a constant difference is shared between the two directions. Their variation does not depend on it.",
        );
    }
    told.method = ClockMethod::Compared;
    told.uncertainty_s = Some(compared.uncertainty_s);
    let span_s = exchanges
        .first()
        .zip(exchanges.last())
        .map(|(a, b)| b.departed_ns.saturating_sub(a.departed_ns) as f64 / 1e9);
    Judged {
        compared: Some(compared),
        fixed_ns: 0,
        drift_s: told.skew_ratio.zip(span_s).map(|(skew, span)| skew * span),
        clocks: told,
    }
}

/// What both clocks together may be off by, where both are synchronised and say so.
fn own_error(here: Option<ClockState>, far: Option<ClockState>) -> Option<f64> {
    let error = |state: Option<ClockState>| state.filter(|state| state.synchronised)?.max_error_s;
    Some(error(here)? + error(far)?)
}

fn ptp_devices() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/dev") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut devices: Vec<String> = names
        .filter(|name| {
            name.strip_prefix("ptp").is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
            })
        })
        .collect();
    sort_few(&mut devices, Ord::cmp);
    devices
}

/// Puts order, variation and delay into a result.
fn fill(way: &mut OwdWay, (receiver, min_ns): (UdpReceiver, Option<i64>), judged: &Judged) {
    way.reordering = receiver.reordering;
    if judged.clocks.method == ClockMethod::None {
        return;
    }
    way.ipdv_s = receiver.ipdv_s;
    way.pdv_s = receiver.pdv_s;
    way.jitter_s = receiver.jitter_s;
    way.delay = min_ns
        .zip(receiver.pdv_s)
        .zip(judged.clocks.uncertainty_s)
        .map(|((min_ns, pdv), uncertainty_s)| OneWayDelay {
            delay_s: pdv.shifted(min_ns as f64 / 1e9),
            uncertainty_s,
            clock_offset_s: judged.clocks.offset_s.unwrap_or(0.0),
            clock_drift_s: judged.drift_s,
        });
}

/// The delays of both ways by when their probes were sent.
fn series(log: &ProbeLog, judged: &Judged) -> (Series, Series) {
    let mut up = Series::new(Unit::Seconds);
    let mut down = Series::new(Unit::Seconds);
    let known = judged.clocks.method != ClockMethod::None;
    for sample in &log.samples {
        let exchange = sample.exchange.filter(|_| known);
        let delay = |from_ns: i64, to_ns: i64| to_ns.saturating_sub(from_ns) as f64 / 1e9;
        up.push(
            sample.sent_s,
            exchange.map(|e| {
                let received = e
                    .far
                    .received_ns
                    .saturating_sub(judged.offset_at(e.departed_ns));
                delay(e.departed_ns, received)
            }),
        );
        down.push(
            sample.sent_s,
            exchange.map(|e| {
                let sent = e.far.sent_ns.saturating_sub(judged.offset_at(e.arrived_ns));
                delay(sent, e.arrived_ns)
            }),
        );
    }
    (up, down)
}
