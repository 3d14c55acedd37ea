//! A cloud's allowance of bandwidth, packets or connections of this machine is used up.
//!
//! Amazon's ena driver counts what was queued or dropped because the instance was above what its type allows
//! (bw_in_allowance_exceeded and its kind, "Monitor network performance for your EC2 instance"). A virtio device may count the
//! bytes that a limit of its rate held up or dropped (ratelimit_bytes of each queue, Linux drivers/net/virtio_net.c, from VIRTIO's
//! device statistics). Google's gve has no such counter (gve_ethtool.c).

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::Counted;
use crate::facts::count;

/// How the counters end, whatever is limited.
const ENDING: &str = "_allowance_exceeded";

/// Packets that were queued or dropped, from which on it is no single burst.
const LEAST_PACKETS: u64 = 10;

/// How the counters of a virtio device's queues end.
const OF_QUEUE: &str = "_ratelimit_bytes";

/// They count bytes: so many are a full packet.
const PACKET_BYTES: u64 = 1500;

const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "on a larger instance, or after a pause that fills the allowance again, the driver's counters stand still",
    needs: &[Need::CounterRates],
    resembles: &[
        (
            Cause::Policer,
            "there the driver's counters of the allowance stand still",
        ),
        (
            Cause::TokenBucket,
            "an allowance is a token bucket too; the counters say whose",
        ),
    ],
    examine: |case| worst(case).into_iter().collect(),
    explains: |_, sign| crate::signs::Kind::Window != sign.kind,
    ..Entry::PLAIN
};

fn worst(case: &Case<'_>) -> Option<Finding> {
    let all = case.counted().flat_map(|counted| {
        let grown = counted.result.grown.iter();
        grown
            .filter_map(move |(name, grown)| Some((packets(name, *grown)?, name.as_str(), counted)))
    });
    let facts = case.facts(None);
    let most = all.max_by_key(|(packets, _, _)| *packets);
    let most = facts.known("a driver's counters of exceeded allowances", most);
    let (packets, name, counted) = most?;
    let name_of = "packets beyond an allowance in a phase";
    let exceeded = facts.at_least(name_of, count(packets), LEAST_PACKETS as f64);
    exceeded.then(|| finding(packets, name, counted))
}

/// Packets that a counter of an allowance is about; none where it is another counter.
fn packets(name: &str, grown: u64) -> Option<u64> {
    match (name.ends_with(ENDING), name.ends_with(OF_QUEUE)) {
        (true, _) => Some(grown),
        (_, true) => Some(grown / PACKET_BYTES),
        _ => None,
    }
}

fn finding(packets: u64, name: &str, counted: Counted<'_>) -> Finding {
    let (interface, counter) = name.rsplit_once('.').unwrap_or(("", name));
    let what = match counter.trim_end_matches(ENDING) {
        "bw_in" => "bandwidth that it may receive",
        "bw_out" => "bandwidth that it may send",
        "pps" => "packets a second",
        "conntrack" => "connections that are tracked",
        "linklocal" => "packets to the provider's own services (DNS, metadata, time)",
        queue if queue.ends_with(OF_QUEUE) && queue.starts_with("rx") => {
            "bandwidth that it may receive"
        }
        queue if queue.ends_with(OF_QUEUE) && queue.starts_with("tx") => {
            "bandwidth that it may send"
        }
        _ => "traffic",
    };
    Finding {
        cause: Cause::AllowanceExceeded,
        place: Place::ThisHost,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "This instance is above its provider's allowance of {what}: {packets} packets at {interface} were held up or dropped for it {}.",
            counted.during()
        ),
        evidence: vec![Evidence {
            measurement: counted.measurement.id.clone(),
            field: format!("result.grown.{name}"),
            value: (packets as f64).into(),
            rule: "packets that the driver counts as above the instance's allowance, against the packets of a single burst"
                .to_owned(),
            threshold: (LEAST_PACKETS as f64).into(),
        }],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Take an instance type with a higher baseline, spread the load over several, or spread it over time: burst credits fill again while little is sent.",
            "The counter stands still under the same load.",
        )],
        kb: "host".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::counted;

    #[test]
    fn the_allowance_that_was_exceeded_most_is_named() {
        let grown = [
            ("eth0.bw_in_allowance_exceeded", 9),
            ("eth0.pps_allowance_exceeded", 400),
        ];
        let found = counted(CAUSE.examine, &grown);
        assert!(
            matches!(&found[..], [one] if one.summary.contains("packets a second: 400 packets at eth0")),
            "{found:?}"
        );
        assert_eq!(counted(CAUSE.examine, &grown[..1]), []);
    }

    #[test]
    fn a_queue_that_the_device_limits_counts_bytes() {
        let found = |bytes| counted(CAUSE.examine, &[("eth0.tx0_hw_ratelimit_bytes", bytes)]);
        let one = found(3_000_000);
        assert!(
            matches!(&one[..], [one] if one.summary.contains("may send: 2000 packets at eth0")),
            "{one:?}"
        );
        assert_eq!(found(3000), [], "a single burst");
    }
}
