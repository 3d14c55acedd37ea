//! A tunnel of this machine limits the rate: one processor has no time left to encrypt, or its packets are cut up.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::results::host::Interface;
use plumb_model::units::si;

use super::tunnel_in_path;
use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Carried, Counted};
use crate::signs::percent;

/// A processor that is busy for so much of a phase has hardly any time left: what begins the phase and ends it is not full.
const BUSY_RATIO: f64 = 0.95;

/// plumb's own threads, where they use less of a processor than this each, are not what fills it.
const OWN_RATIO: f64 = 0.9;

/// From so many fragments for each packet of the tunnel on, what it carries is cut up by rule: each packet gives two.
const CUT_RATIO: f64 = 1.0;

/// Packets of the tunnel, so that they are the load's.
const ENOUGH_PACKETS: u64 = 100;

/// Another program may have filled that processor, or the line may be full as well.
const BUSY_CONFIDENCE: f64 = 0.7;

/// The kernel counts each of them.
const CUT_CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "without the tunnel, with a cheaper cipher or one that uses several processors, or with a smaller MTU of the tunnel, the rate is higher",
    needs: &[
        Need::Machine,
        Need::Upload,
        Need::Download,
        Need::CounterRates,
    ],
    resembles: &[
        (
            Cause::ProcessorBusy,
            "there plumb's own threads fill the processor, or all processors are full",
        ),
        (
            Cause::TunnelInPath,
            "a tunnel whose processor is free costs delay and some bytes of each packet alone",
        ),
        (
            Cause::TunnelOverhead,
            "smaller packets that pass whole cost a few percent",
        ),
    ],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    // The first of the directions that shows it; the tunnel is the same.
    let directions = [Direction::Up, Direction::Down].into_iter();
    let loads = directions.filter_map(|direction| case.full_load(direction));
    let mut loads = loads.filter_map(|carried| {
        let phase = carried.measurement.context.phase;
        let mut beside = case.counted();
        let counted = beside.find(|counted| counted.measurement.context.phase == phase)?;
        let tunnel = tunnel_in_path::of(case, counted)?;
        Some((carried, counted, tunnel))
    });
    loads.find_map(|(carried, counted, tunnel)| {
        cut(carried, counted, tunnel).or_else(|| busy(case, carried, counted, tunnel))
    })
}

/// A processor that is full while the tunnel carries the load.
fn busy(
    case: &Case<'_>,
    carried: Carried<'_>,
    counted: Counted<'_>,
    tunnel: &Interface,
) -> Option<Finding> {
    // Processors are the machine's; in a part of it others' work counts as well.
    case.is_whole_machine().filter(|whole| *whole)?;
    let streams = carried.result.streams.len().max(1) as f64;
    if carried
        .result
        .cpu
        .local_ratio
        .is_some_and(|ratio| ratio >= OWN_RATIO * streams)
    {
        return None;
    }
    let (ratio, processor) = busiest(counted)?;
    let name = &tunnel.name;
    (ratio >= BUSY_RATIO).then(|| Finding {
        summary: format!(
            "The tunnel {name} ends the rate at {}: one processor ({processor}) of this machine is busy for {} of the time {}, and plumb's own threads do not fill it.",
            si(carried.bps(), "bit/s"),
            percent(ratio),
            counted.during(),
        ),
        evidence: vec![evidence(
            counted,
            format!("processor.{processor}.ticks"),
            ratio,
            "share of the time in which the busiest processor was not idle, while the tunnel carried nearly all that any interface did",
            BUSY_RATIO,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Compare the rate without the tunnel (`plumb compare`) and time the ciphers (`plumb host cipher`). A tunnel in the kernel (WireGuard, OpenVPN's data channel offload) or a cipher that the processor has instructions for carries several times as much.",
            "No processor is full, or the line is.",
        )],
        ..finding(BUSY_CONFIDENCE)
    })
}

/// Packets of the tunnel that this machine cuts up, because the line below takes only smaller ones.
fn cut(carried: Carried<'_>, counted: Counted<'_>, tunnel: &Interface) -> Option<Finding> {
    let name = &tunnel.name;
    let packets = counted.of(name, "tx_packets");
    let fragments = counted.sum(["IpFragCreates", "Ip6FragCreates"]);
    let each = fragments as f64 / packets.max(1) as f64;
    (packets >= ENOUGH_PACKETS && each >= CUT_RATIO).then(|| Finding {
        summary: format!(
            "Packets of the tunnel {name} are too large for the line: this machine cuts them up ({fragments} fragments for {packets} packets {}), and each that loses one is lost whole; {} were carried.",
            counted.during(),
            si(carried.bps(), "bit/s"),
        ),
        evidence: vec![evidence(
            counted,
            "IpFragCreates".to_owned(),
            fragments as f64,
            "fragments that this machine made of its own packets, against those that the tunnel sent",
            CUT_RATIO * packets as f64,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            format!(
                "Lower the MTU of {name}, which is {} bytes, by what the tunnel adds to each packet (WireGuard 60 bytes over IPv4 and 80 over IPv6): `plumb mtu` of the tunnel's other end says what the line takes.",
                tunnel.mtu_bytes
            ),
            "No fragments are made while the tunnel carries a load.",
        )],
        ..finding(CUT_CONFIDENCE)
    })
}

fn finding(confidence: f64) -> Finding {
    Finding {
        cause: Cause::VpnLimited,
        place: Place::ThisHost,
        severity: Severity::Warning,
        confidence,
        matters_for: Vec::new(),
        summary: String::new(),
        evidence: Vec::new(),
        fixes: Vec::new(),
        kb: "host".to_owned(),
    }
}

fn evidence(
    counted: Counted<'_>,
    counter: String,
    value: f64,
    rule: &str,
    threshold: f64,
) -> Evidence {
    Evidence {
        measurement: counted.measurement.id.clone(),
        field: format!("result.grown.{counter}"),
        value: value.into(),
        rule: rule.to_owned(),
        threshold: threshold.into(),
    }
}

/// The processor that was idle least, with the share of its time in which it was not.
fn busiest(counted: Counted<'_>) -> Option<(f64, &str)> {
    let names = counted.result.grown.keys();
    let processors = names.filter_map(|name| {
        let processor = name.strip_prefix("processor.")?.strip_suffix(".ticks")?;
        let all = counted.grown(name);
        let idle = counted.grown(&format!("processor.{processor}.idle_ticks"));
        (all > 0).then(|| (1.0 - idle as f64 / all as f64, processor))
    });
    let any_idle = counted.grown("processor.idle_ticks") > 0;
    // Runs of versions that did not count each processor's idle time have no growth of any.
    let each_is_known = counted
        .result
        .grown
        .keys()
        .any(|name| name.starts_with("processor.cpu") && name.ends_with(".idle_ticks"));
    processors
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|_| each_is_known || !any_idle)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{carrying, counting, found_in, measurement};
    use plumb_model::results::Outcome;
    use plumb_model::results::host::HostResult;

    /// The summaries where an upload leaves through a device of that kind, the second processor is idle so long of 1500 ticks,
    /// and so many fragments were made.
    fn found(kind: &str, idle: u64, fragments: u64) -> Vec<String> {
        let mut host = HostResult::default();
        host.machine.first_network_namespace = true;
        host.interfaces = vec![Interface {
            name: "wg0".to_owned(),
            kind: Some(kind.to_owned()),
            mtu_bytes: 1500,
            ..Interface::default()
        }];
        let counted = counting(&[
            ("processor.ticks", 3000),
            ("processor.idle_ticks", 1400 + idle),
            ("processor.cpu0.ticks", 1500),
            ("processor.cpu0.idle_ticks", 1400),
            ("processor.cpu1.ticks", 1500),
            ("processor.cpu1.idle_ticks", idle),
            ("IpFragCreates", fragments),
            ("wg0.tx_packets", 10_000),
            ("wg0.tx_bytes", 14_000_000),
            ("eth0.tx_packets", 10_000),
            ("eth0.tx_bytes", 14_800_000),
        ]);
        let measured = [
            measurement(Outcome::Host(Box::new(host))),
            carrying(Direction::Up, 300e6),
            counted,
        ];
        let found = found_in(CAUSE.examine, &measured).into_iter();
        found.map(|finding| finding.summary).collect()
    }

    #[test]
    fn a_tunnel_limits_where_its_processor_is_full_or_its_packets_are_cut_up() {
        let [full] = found("wireguard", 30, 0).try_into().unwrap();
        assert!(full.contains("(cpu1)"), "{full}");
        let [cut] = found("wireguard", 900, 20_000).try_into().unwrap();
        assert!(cut.contains("20000 fragments"), "{cut}");
        let none: [String; 0] = [];
        assert_eq!(found("wireguard", 900, 0), none, "the line is the limit");
        assert_eq!(found("wireguard", 900, 40), none, "others' fragments");
        assert_eq!(found("veth", 30, 20_000), none, "no tunnel");
    }
}
