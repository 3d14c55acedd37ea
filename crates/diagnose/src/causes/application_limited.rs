//! The program that sends has nothing to send for much of the time.
//!
//! Linux counts how long a connection had data that was not acknowledged (tcpi_busy_time); for the rest of the time its
//! program had given it none (net/ipv4/tcp_output.c, tcp_chrono_start).

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::captured;
use crate::entry::{Entry, Family};
use crate::evidence::{Carried, fact};
use crate::facts::ratio as share;
use crate::signs::{percent, queue_stands};
use crate::{Case, reading};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a transfer from memory (`plumb rate` without --from) is faster",
    needs: &[Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::DiskSlow,
            "there the sender waits for a file, and for no program",
        ),
        (
            Cause::ProcessorBusy,
            "there the sender's processor has no time left",
        ),
        (
            Cause::SendBufferSmall,
            "there the sender has data, and waits for room in its buffer",
        ),
    ],
    yields_to: &[
        Cause::ProcessorBusy,
        Cause::DiskSlow,
        Cause::VmSteal,
        Cause::CpuQuota,
    ],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let loads = directions.filter_map(|direction| case.carried_alone(direction));
        loads
            .filter_map(|carried| limited(case, carried))
            .chain(captured::application(case))
            .collect()
    },
    ..Entry::PLAIN
};

/// With nothing to send for more than half of the time, the program sets the rate.
const APP_RATIO: f64 = 0.5;

/// A sender that uses less than this of a processor for each stream has time to send more.
const FREE_RATIO: f64 = 0.5;

/// The kernel counts it, and plumb's own wait for a program, too.
const OF_PROGRAM_CONFIDENCE: f64 = 0.95;

/// Plumb sends from memory: what then keeps it from sending is not seen.
const OF_MEMORY_CONFIDENCE: f64 = 0.6;

fn limited(case: &Case<'_>, carried: Carried<'_>) -> Option<Finding> {
    let result = carried.result;
    let ratio = result.tcp.limited.app_ratio;
    // Without the sender's record the whole time counts as the program's.
    let is_known = result.protocol == Protocol::Tcp && !result.cc.is_empty();
    let is_slow = is_known && carried.shows_rate() && !carried.is_nothing(case);
    let by_program = reading::is_fed_by_program(carried.measurement);
    let of_memory = !reading::is_held_on_purpose(carried.measurement);
    let is_asked_for = reading::is_paced_on_purpose(carried.measurement);
    let facts = case.facts(result.direction);
    facts.known("the sender's own record of a load", is_slow.then_some(()))?;
    if !facts.at_least(
        "time in which the program had nothing to send",
        share(ratio),
        APP_RATIO,
    ) || !facts.is("no rate was asked for", !is_asked_for)
        || !facts.is("no queue of the load's own stands", !queue_stands(carried))
    {
        return None;
    }
    let (place, actor, used) = match result.direction {
        Direction::Up => (Place::ThisHost, Actor::ThisHost, result.cpu.local_ratio?),
        _ => (Place::FarHost, Actor::FarHost, result.cpu.remote_ratio?),
    };
    let free = FREE_RATIO * result.streams.len().max(1) as f64;
    if !facts.below("processor time of the sender", share(used), free) {
        return None;
    }
    let (severity, confidence, what, fix) = match (by_program, of_memory) {
        (true, _) => (
            Severity::Warning,
            OF_PROGRAM_CONFIDENCE,
            "are what the program makes that feeds them",
            "See what that program waits for (its own disk, processor or network); with a transfer from memory (`plumb rate` without --from) the path shows what it carries.",
        ),
        (false, true) => (
            Severity::Info,
            OF_MEMORY_CONFIDENCE,
            "are held back by the sending program, whose processor is free",
            "See what else runs on the sender, and measure again: a machine that is late sends late.",
        ),
        // From a file of its own: the disk and its cache, which have a rule of their own.
        (false, false) => {
            facts.is("what is sent is no file of its own", false);
            return None;
        }
    };
    Some(Finding {
        cause: Cause::ApplicationLimited,
        place,
        severity,
        confidence,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads at {} {what}: the sender had nothing to send {} of the time, and no network makes that faster.",
            capital(result.direction.name()),
            si(carried.bps(), "bit/s"),
            percent(ratio)
        ),
        evidence: vec![fact(
            carried.measurement,
            "tcp.limited.app_ratio",
            ratio,
            "share of the time in which the sender had nothing to send",
            APP_RATIO,
        )],
        fixes: vec![Fix::advice(
            actor,
            fix,
            "The sender always has something to send.",
        )],
        kb: "throughput".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{carrying, found_in};
    use plumb_model::results::Outcome;

    /// What is found where the sender had nothing to send for that share of the time and used so much of a processor.
    fn found(direction: Direction, app: f64, used: f64, from: Option<&str>) -> Vec<Finding> {
        let mut load = carrying(direction, 1e6);
        if let Outcome::Throughput(result) = &mut load.outcome {
            result.tcp.limited.app_ratio = app;
            result.tcp.limited.network_ratio = 1.0 - app;
            result.cpu.local_ratio = Some(used);
            result.cpu.remote_ratio = Some(used);
        }
        load.context.load = from.map(crate::testing::from);
        found_in(CAUSE.examine, &[load])
    }

    #[test]
    fn a_program_that_makes_little_is_named() {
        let stdin = Some(reading::STANDARD_INPUT);
        let one = found(Direction::Up, 0.9, 0.01, stdin);
        assert!(
            matches!(&one[..], [one] if one.severity == Severity::Warning && one.place == Place::ThisHost),
            "{one:?}"
        );
        assert_eq!(found(Direction::Up, 0.1, 0.01, stdin), []);
    }

    #[test]
    fn a_file_and_a_busy_processor_have_rules_of_their_own() {
        assert_eq!(found(Direction::Up, 0.9, 0.01, Some("a.iso")), []);
        assert_eq!(found(Direction::Up, 0.9, 0.9, None), []);
        let far = found(Direction::Down, 0.9, 0.1, None);
        assert!(
            matches!(&far[..], [one] if one.severity == Severity::Info && one.place == Place::FarHost),
            "{far:?}"
        );
    }

    #[test]
    fn without_the_senders_record_nothing_is_known() {
        let mut load = carrying(Direction::Up, 1e6);
        if let Outcome::Throughput(result) = &mut load.outcome {
            result.tcp.limited.app_ratio = 1.0;
            result.cc.clear();
        }
        assert_eq!(found_in(CAUSE.examine, &[load]), []);
    }
}
