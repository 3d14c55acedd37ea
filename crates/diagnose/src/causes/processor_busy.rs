//! A machine at an end has no processor time left to carry more.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Carried, Counted, fact};
use crate::facts::ratio as share;
use crate::signs::{MIN_RTT_S, WINDOW_RATIO, percent, queue_stands};

/// A thread that runs so much of the time waits for nothing else.
const BUSY_RATIO: f64 = 0.9;

/// With less than this of all processors' time unused, there is none left: the kernel's own work is spread unevenly.
const UNUSED_RATIO: f64 = 0.05;

/// What else may hold such a load back is the other end.
const CONFIDENCE: f64 = 0.75;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "on a faster machine, with more streams on other processors, or with offloads on, the rate is higher",
    needs: &[Need::Upload, Need::Download],
    resembles: &[(
        Cause::ReceiveBufferSmall,
        "a program that reads too slowly closes the window, too; there processors are idle",
    )],
    yields_to: &[Cause::VmSteal, Cause::CpuQuota],
    examine,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    let directions = [Direction::Up, Direction::Down].into_iter();
    let loads = directions.filter_map(|direction| {
        let facts = case.facts(direction);
        facts.known(
            "a load as long as a rate takes to become steady",
            case.full_load(direction),
        )
    });
    loads.filter_map(|carried| busy(case, carried)).collect()
}

fn busy(case: &Case<'_>, carried: Carried<'_>) -> Option<Finding> {
    // Where the network limits, an end that is busy would carry no more; where a window or a buffer does, neither.
    let limited = &carried.result.tcp.limited;
    let near = carried
        .result
        .tcp
        .min_rtt_s
        .is_some_and(|rtt_s| rtt_s < MIN_RTT_S);
    let by_windows = match near {
        // There a reader that is too slow closes them.
        true => limited.rwnd_ratio + limited.sndbuf_ratio,
        false => 0.0,
    };
    let facts = case.facts(carried.result.direction);
    let waits = share(limited.app_ratio + by_windows);
    if !facts.at_least(
        "time in which an end held the load back",
        waits,
        WINDOW_RATIO,
    ) || !facts.is("no queue of the load's own stands", !queue_stands(carried))
    {
        return None;
    }
    let streams = carried.result.streams.len().max(1) as f64;
    let cpu = carried.result.cpu;
    let far = cpu
        .remote_ratio
        .filter(|ratio| *ratio >= BUSY_RATIO * streams);
    let here = cpu
        .local_ratio
        .filter(|ratio| *ratio >= BUSY_RATIO * streams);
    let whole = case
        .counted()
        .find(|counted| counted.measurement.context.phase == carried.measurement.context.phase)
        .and_then(unused)
        .filter(|unused| *unused <= UNUSED_RATIO);
    let threads = |ratio: f64| {
        format!(
            "its threads use {} of a processor each",
            percent(ratio / streams)
        )
    };
    let (place, actor, which, how, evidence) = match (here, whole, far) {
        (Some(ratio), _, _) => (
            Place::ThisHost,
            Actor::ThisHost,
            "this machine",
            threads(ratio),
            used(carried, "cpu.local_ratio", ratio, streams),
        ),
        (_, Some(unused), _) => (
            Place::ThisHost,
            Actor::ThisHost,
            "this machine",
            format!(
                "all its processors together are idle for {} of the time",
                percent(unused)
            ),
            fact(
                carried.measurement,
                "cpu.local_ratio",
                cpu.local_ratio?,
                format!(
                    "processors that plumb itself used; of all of them {} of the time was left",
                    percent(unused)
                ),
                BUSY_RATIO,
            ),
        ),
        (_, _, Some(ratio)) => (
            Place::FarHost,
            Actor::FarHost,
            "the far machine",
            threads(ratio),
            used(carried, "cpu.remote_ratio", ratio, streams),
        ),
        (None, None, None) => {
            facts.is(
                "a processor of an end, or all of this host's, are busy",
                false,
            );
            return None;
        }
    };
    Some(Finding {
        cause: Cause::ProcessorBusy,
        place,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{} holds {}loads at {}, and not the network: {how}, while the network has room for more.",
            capital(which),
            carried.result.direction.name(),
            si(carried.bps(), "bit/s")
        ),
        evidence: vec![evidence],
        fixes: vec![Fix::advice(
            actor,
            "See what else runs there, switch offloads on (`plumb host`), use several streams on several processors, or a faster machine.",
            "The rate is higher, or the network limits it.",
        )],
        kb: "throughput".to_owned(),
    })
}

fn used(carried: Carried<'_>, field: &str, ratio: f64, streams: f64) -> Evidence {
    fact(
        carried.measurement,
        field,
        ratio,
        "processors that plumb used at that end, against nearly one for each stream",
        BUSY_RATIO * streams,
    )
}

/// Share of all processors' time that was idle.
fn unused(counted: Counted<'_>) -> Option<f64> {
    let all = counted.grown("processor.ticks") as f64;
    let idle = counted.grown("processor.idle_ticks") as f64;
    (all > 0.0).then(|| idle / all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{found_in, measurement};
    use plumb_model::results::Outcome;
    use serde_json::json;

    /// How often it is found where the sender had nothing to send for a share of the time, or waited for a window over that
    /// round trip, and its one thread used so much of a processor.
    fn found(app: f64, rwnd: f64, rtt_s: f64, used: f64) -> usize {
        at_both(app, rwnd, rtt_s, [used, 0.3]).len()
    }

    /// The findings where the threads of this machine and of the far one used so much of a processor.
    fn at_both(app: f64, rwnd: f64, rtt_s: f64, [here, there]: [f64; 2]) -> Vec<Finding> {
        let result = json!({
            "direction": "up", "protocol": "tcp", "bps": 9e9, "steady_bps": 9e9, "bytes": 16_000_000_000u64, "cc": "cubic",
            "streams": [],
            "tcp": {
                "retransmits": 0, "min_rtt_s": rtt_s, "max_srtt_s": rtt_s, "mss_bytes": 1448,
                "send_buffer_bytes": null, "max_in_flight_bytes": 2_000_000,
                "limited": { "rwnd_ratio": rwnd, "sndbuf_ratio": 0.0, "app_ratio": app, "network_ratio": 1.0 - app - rwnd }
            },
            "tcp_receiver": { "receive_buffer_bytes": null, "max_window_bytes": null },
            "cpu": { "local_ratio": here, "remote_ratio": there }
        });
        let mut load = measurement(Outcome::Throughput(serde_json::from_value(result).unwrap()));
        load.duration_s = 15.0;
        found_in(CAUSE.examine, &[load])
    }

    #[test]
    fn the_machine_whose_processor_is_full_is_named() {
        let places = |used| {
            let found = at_both(0.0, 0.6, 0.0005, used).into_iter();
            found.map(|finding| finding.place).collect::<Vec<_>>()
        };
        assert_eq!(places([0.3, 0.97]), [Place::FarHost]);
        assert_eq!(places([0.97, 0.3]), [Place::ThisHost]);
        assert_eq!(places([0.3, 0.3]), []);
    }

    #[test]
    fn a_full_processor_matters_where_nothing_else_limits() {
        assert_eq!(found(0.6, 0.0, 0.0005, 0.98), 1);
        assert_eq!(
            found(0.0, 0.6, 0.0005, 0.98),
            1,
            "a reader that is too slow"
        );
        assert_eq!(found(0.0, 0.6, 0.15, 0.98), 0, "a window over a long path");
        assert_eq!(found(0.0, 0.0, 0.0005, 0.98), 0, "the network limits");
        assert_eq!(
            found(0.6, 0.0, 0.0005, 0.4),
            0,
            "a program that has nothing to send"
        );
    }
}
