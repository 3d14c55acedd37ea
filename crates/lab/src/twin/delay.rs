//! The delay of the idle path, and how it varies.

use plumb_model::direction::OneDirection;
use plumb_model::finding::Cause;

use super::draft::{Draft, Link, Order};
use super::measured::Measured;
use super::write;

/// What a round trip takes in a lab of this shape without any delay, in seconds: five hosts and two emulated links on two
/// processors (measured: 0.25 ms to 0.35 ms).
const LAB_S: f64 = 0.000_3;

/// What a probe has of IP, in bytes: an echo request of 56 bytes of data, as ping(8) sends it.
const PROBE_BYTES: f64 = 84.0;

/// Round trips that differ by less than this, in seconds, differ by less than a busy machine makes them.
const STEADY_S: f64 = 0.001;

/// The same as a share of the round trip.
const STEADY_RATIO: f64 = 0.1;

/// So many samples show how round trips are spread, up to their 97th percentile.
const SAMPLES: usize = 32;

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    let rtt = measured.idle.rtt_s;
    let spread_s = rtt.p95 - rtt.p5;
    let interrupted = [Cause::Handover, Cause::Outage];
    let interrupted = interrupted
        .iter()
        .any(|cause| measured.finding(*cause).is_some());
    let varies = spread_s > STEADY_S.max(STEADY_RATIO * rtt.p50) && !interrupted;
    let base_s = match varies {
        true => rtt.min,
        false => rtt.p50,
    };
    let sent_s: f64 = measured
        .directions()
        .map(|directed| PROBE_BYTES * 8.0 / directed.ip_bps(directed.most_bps))
        .iter()
        .sum();
    let one_way_s = (base_s - LAB_S - sent_s).max(0.0) / 2.0;
    let why = format!(
        "Half of a round trip of {} on the idle path, less what the lab and sending a probe take.",
        write::time(base_s)
    );
    let toml = format!(
        "{{ type = \"delay\", delay = \"{}\" }}",
        write::time(one_way_s)
    );
    draft.put_both(Order::Delay, &toml, &why);
    draft.unknown("how the delay is divided between the directions: each has half of it");
    if base_s < LAB_S {
        draft.unknown(format!(
            "delays below {}: the lab itself takes as long",
            write::time(LAB_S)
        ));
    }
    if !varies {
        return;
    }
    let samples: Vec<String> = samples(measured)
        .into_iter()
        .map(|late_s| format!("\"{}\"", write::time(late_s)))
        .collect();
    let toml = format!(
        "{{ type = \"delay\", name = \"varies\", delay = \"0s\", distribution = {{ samples = [{}] }} }}",
        samples.join(", ")
    );
    draft.put(
        Link::Line,
        OneDirection::Up,
        Order::Delay,
        toml,
        "How much later than the fastest the probes of the idle path came.",
    );
    draft.unknown(
        "in which direction the delay varies, and whether one packet's delay follows from the delay before it: here uploads vary, and each packet by itself",
    );
}

/// How much longer than the fastest round trips took: as many of them as show their spread.
fn samples(measured: &Measured<'_>) -> Vec<f64> {
    let rtt = measured.idle.rtt_s;
    let points = measured.idle.series.into_iter();
    let points = points.flat_map(|series| series.points().map(|(_, rtt_s)| rtt_s));
    let mut all: Vec<f64> = points
        .filter(|rtt_s| rtt_s.is_finite() && (rtt.min..=rtt.max).contains(rtt_s))
        .collect();
    if all.len() < SAMPLES {
        all = vec![rtt.min, rtt.p25, rtt.p50, rtt.p75];
    }
    all.sort_by(f64::total_cmp);
    let chosen = (0..SAMPLES).map(|number| number * all.len() / SAMPLES);
    let chosen = chosen.filter_map(|at| all.get(at));
    chosen.map(|rtt_s| rtt_s - rtt.min).collect()
}
