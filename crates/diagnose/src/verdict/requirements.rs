//! What an all-clear needs: everything here must have been measured, for long enough, and with a load
//! that reached the limit of the path.

use plumb_model::context::Experiment;
use plumb_model::finding::{Finding, NotMeasured, Place, Severity};
use plumb_model::goal::Effort;
use plumb_model::loss::at_most_ratio;
use plumb_model::results::Direction;
use plumb_model::run::Measurement;
use plumb_model::units::human_seconds;

use super::budget;
use crate::entry::Amount;
use crate::evidence::{CUT_RATIO, Carried};
use crate::experiment::{hides_loss, shows_no_limit};
use crate::long_queue::WARNING_S;
use crate::loss::{LOSS_WARNING, shows_loss};
use crate::signs::{is_line_known_full, percent};
use crate::{Case, causes, lengths, reading};

/// Loss while idle must be known to be below this: what 188 answered probes show.
const LOSS_BOUND_RATIO: f64 = 0.025;

/// Share of time that something else than the network may hold senders back, and the load still
/// shows what the path does when it is full: the beginning of every phase, and looks between.
const OTHER_LIMITS_RATIO: f64 = 0.3;

/// Congestion controls that fill a queue until it drops. Others may leave it empty.
const LOSS_BASED: [&str; 2] = ["cubic", "reno"];

/// Every load of a check.
const LOADS: [Direction; 3] = [Direction::Up, Direction::Down, Direction::Both];

/// Something that an all-clear needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Round trips and losses of the idle path.
    Idle,
    /// A bound on its loss.
    IdleLoss,
    /// What a direction carries.
    Rate(Direction),
    /// What the sending end recorded of it.
    Record(Direction),
    /// Whether it loses packets below its rate.
    Loss(Direction),
    /// Round trips beside a load.
    Latency(Direction),
}

/// Why it is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reason {
    /// None could be sent, as where a user may not send ICMP.
    NoIdleProbe,
    NoIdleAnswer,
    FewProbes(u64),
    NoLoad,
    NoLoadedAnswer,
    /// The load was never to be so long.
    Asked,
    /// Its share of the budget was used.
    Budget,
    /// It ended for another reason.
    Ended,
    CarriedNothing,
    NoRecord,
    HeldOnPurpose,
    /// Share of time that the ends held it back.
    HeldByEnds(f64),
    Gentle,
    /// Neither a queue nor an end held it back, and what the line carries was not found out.
    LimitUnknown,
    /// Share of probes lost beside the load.
    ProbesLost(f64),
    /// Share lost of small datagrams, twice as many a second as TCP's packets, and no finding says why.
    SmallLost(f64),
    /// The same of datagrams that were slower than TCP.
    SlowerLost(f64),
    /// Share of segments that were retransmitted, and no slower datagrams were counted.
    LossHidden(f64),
}

/// A need that is not met.
#[derive(Debug, Clone, Copy)]
struct Missing {
    need: Need,
    reason: Reason,
    /// How long the phase lasted, and how long it was to last and must last, in seconds; zero where
    /// that is not why.
    lasted_s: f64,
    asked_s: f64,
    needed_s: f64,
}

impl Missing {
    fn new(need: Need, reason: Reason) -> Self {
        Self {
            need,
            reason,
            lasted_s: 0.0,
            asked_s: 0.0,
            needed_s: 0.0,
        }
    }
}

/// Everything that an all-clear needs and that is not known, by the reason; a bound that more probes would lower comes last.
/// What a finding says is not open.
pub(crate) fn missing(case: &Case<'_>, findings: &[Finding]) -> Vec<NotMeasured> {
    let idle = idle(case).into_iter();
    let (bound, mut left): (Vec<_>, Vec<_>) = idle.partition(|m| m.need == Need::IdleLoss);
    for direction in [Direction::Up, Direction::Down] {
        let explained = is_loss_explained(findings, direction);
        let of_loss = |missing: &Missing| {
            let is_loss = matches!(
                missing.reason,
                Reason::SmallLost(_) | Reason::SlowerLost(_) | Reason::LossHidden(_)
            );
            !(explained && is_loss)
        };
        let hidden = hides_loss(case, direction).map(Reason::LossHidden);
        let hidden = hidden.map(|reason| Missing::new(Need::Loss(direction), reason));
        left.extend(
            rate(case, direction)
                .into_iter()
                .chain(hidden)
                .filter(of_loss),
        );
    }
    for direction in LOADS {
        left.extend(latency(case, direction));
    }
    left.extend(bound);
    let mut groups = Vec::new();
    while !left.is_empty() {
        let first = left.remove(0);
        let (mut group, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|one| one.reason == first.reason);
        group.insert(0, first);
        groups.push(not_measured(case, first.reason, &group));
        left = rest;
    }
    groups
}

/// Whether a finding says that the path itself loses packets in that direction.
fn is_loss_explained(findings: &[Finding], direction: Direction) -> bool {
    findings.iter().any(|finding| {
        causes::entry(finding.cause).amount == Amount::Losses
            && finding.severity > Severity::Info
            && [Place::Path, Place::LocalSegment, Place::line(direction)].contains(&finding.place)
    })
}

fn idle(case: &Case<'_>) -> Option<Missing> {
    let Some(idle) = case.idle() else {
        return Some(Missing::new(Need::Idle, Reason::NoIdleProbe));
    };
    if idle.result.rtt_s.is_none() {
        return Some(Missing::new(Need::Idle, Reason::NoIdleAnswer));
    }
    let sent = idle.sent();
    // What was lost is a sign, or a finding; too few probes are neither, nor is one that may have been lost by chance.
    (!shows_loss(sent, idle.lost()) && at_most_ratio(sent, 0) > LOSS_BOUND_RATIO)
        .then(|| Missing::new(Need::IdleLoss, Reason::FewProbes(sent)))
}

fn rate(case: &Case<'_>, direction: Direction) -> Option<Missing> {
    let need = Need::Rate(direction);
    let Some(carried) = case.carried_alone(direction) else {
        return Some(Missing::new(need, Reason::NoLoad));
    };
    let Carried {
        measurement,
        result,
    } = carried;
    if let Some(short) = too_short(need, measurement, carried.rate_needs_s()) {
        return Some(short);
    }
    if result.bytes == 0 {
        return Some(Missing::new(need, Reason::CarriedNothing));
    }
    if result.cc.is_empty() || !measurement.series.contains_key("bps") {
        return Some(Missing::new(Need::Record(direction), Reason::NoRecord));
    }
    if reading::is_held_on_purpose(measurement) {
        return Some(Missing::new(need, Reason::HeldOnPurpose));
    }
    let open = || shows_no_limit(case, direction).then_some(Reason::LimitUnknown);
    let lost = |experiment, least| lost_from(case, experiment, direction, least);
    let small = || lost(Experiment::SmallPackets, CUT_RATIO).map(Reason::SmallLost);
    let flows = case.flow_limit(direction).is_some();
    let slower = || lost(Experiment::Paced, LOSS_WARNING).filter(|_| !flows);
    let slower = || slower().map(Reason::SlowerLost);
    let held = held_by_ends(case, carried);
    let reason = held.or_else(open).or_else(small).or_else(slower);
    reason.map(|reason| Missing::new(need, reason))
}

/// Share lost of the datagrams of an experiment that a limit of the line's bits passes whole, where it is so much at least.
fn lost_from(
    case: &Case<'_>,
    experiment: Experiment,
    direction: Direction,
    least: f64,
) -> Option<f64> {
    let stream = case.streamed(experiment, direction).last()?;
    (stream.loss_bounds().0 >= least).then(|| stream.lost_ratio())
}

/// Whether a load says nothing of the path's limit, because the ends held it back. What a window
/// holds back is a sign, or a finding, too.
fn held_by_ends(case: &Case<'_>, carried: Carried<'_>) -> Option<Reason> {
    let others = 1.0 - carried.result.tcp.limited.network_ratio;
    let held = others > OTHER_LIMITS_RATIO && !is_line_known_full(case, carried);
    held.then_some(Reason::HeldByEnds(others))
}

fn latency(case: &Case<'_>, direction: Direction) -> Option<Missing> {
    let need = Need::Latency(direction);
    let Some(load) = case.carried_alone(direction) else {
        return Some(Missing::new(need, Reason::NoLoad));
    };
    let loaded = case.loaded(direction);
    let needed_s = match loaded {
        Some(loaded) if fills_no_new_queue(case, direction) => loaded.needs_s(),
        Some(loaded) => lengths::QUEUE_S.max(loaded.needs_s()),
        None => lengths::LATENCY_S,
    };
    if let Some(short) = too_short(need, load.measurement, needed_s) {
        return Some(short);
    }
    if case
        .carried(direction)
        .any(|carried| carried.result.bytes == 0)
    {
        return Some(Missing::new(need, Reason::CarriedNothing));
    }
    let reason = match loaded {
        None => Reason::NoLoadedAnswer,
        Some(_) if !fills_queues(case, direction) => Reason::Gentle,
        Some(loaded) if loaded.result.grade.is_none() => {
            Reason::ProbesLost(loaded.result.loss_ratio)
        }
        Some(_) => return None,
    };
    Some(Missing::new(need, reason))
}

/// Whether each queue that a load fills was filled before by its direction alone, for long enough. What both directions at once
/// add, such as a medium that they share, shows as soon as their rates do.
fn fills_no_new_queue(case: &Case<'_>, direction: Direction) -> bool {
    let alone = [Direction::Up, Direction::Down];
    direction == Direction::Both && alone.iter().all(|one| latency(case, *one).is_none())
}

/// Whether the load was driven by loss, as far as the senders' records are there.
fn fills_queues(case: &Case<'_>, direction: Direction) -> bool {
    case.carried(direction)
        .map(|carried| &carried.result.cc)
        .filter(|cc| !cc.is_empty())
        .all(|cc| cc.split(", ").all(|cc| LOSS_BASED.contains(&cc)))
}

/// A phase that ended before it could carry a claim.
fn too_short(need: Need, measurement: &Measurement, needed_s: f64) -> Option<Missing> {
    let lasted_s = measurement.duration_s;
    let asked_s = reading::asked_s(measurement).unwrap_or(f64::INFINITY);
    let reason = if asked_s < needed_s {
        Reason::Asked
    } else if reading::ended_by_budget(measurement) {
        Reason::Budget
    } else {
        Reason::Ended
    };
    (lasted_s < needed_s).then_some(Missing {
        need,
        reason,
        lasted_s,
        asked_s,
        needed_s,
    })
}

/// Why what needs a load is not known where there was none.
pub(super) const NO_LOAD: &str = "there was no such load";

fn has_a_load(case: &Case<'_>) -> bool {
    LOADS.iter().any(|of| case.carried(*of).next().is_some())
}

/// What a quick check cannot know.
const UNHURRIED: &str = "plumb check without --quick";

fn is_quick(case: &Case<'_>) -> bool {
    case.asked
        .is_some_and(|asked| asked.effort == Effort::Quick)
}

/// What some needs that are missed for one reason come to.
fn not_measured(case: &Case<'_>, reason: Reason, group: &[Missing]) -> NotMeasured {
    let lasted = group
        .iter()
        .map(|m| m.lasted_s)
        .fold(f64::INFINITY, f64::min);
    let asked = group.iter().map(|m| m.asked_s).fold(0.0, f64::max);
    let needed = group.iter().map(|m| m.needed_s).fold(0.0, f64::max);
    let ended = || match asked.is_finite() {
        true => format!(
            "after {} of {}",
            human_seconds(lasted),
            human_seconds(asked)
        ),
        false => format!("after {}", human_seconds(lasted)),
    };
    let mut option = None;
    let why = match reason {
        Reason::NoIdleProbe => "no probe was sent while the path was idle".to_owned(),
        Reason::NoIdleAnswer => "no probe was answered while the path was idle".to_owned(),
        Reason::FewProbes(sent) => format!(
            "{sent} probes alone cannot rule out less than {}",
            percent(at_most_ratio(sent, 0))
        ),
        Reason::NoLoad if is_quick(case) && has_a_load(case) => {
            option = Some(UNHURRIED.to_owned());
            "a quick check has no such load".to_owned()
        }
        Reason::NoLoad => NO_LOAD.to_owned(),
        Reason::NoLoadedAnswer => "no probe was answered beside the load".to_owned(),
        Reason::Asked if is_quick(case) => {
            option = Some(UNHURRIED.to_owned());
            format!(
                "the {} of a quick check are too short for it",
                human_seconds(lasted)
            )
        }
        Reason::Asked => {
            option = Some(format!("--duration {:.0}s", needed.ceil()));
            format!("{} are too short for it", human_seconds(lasted))
        }
        Reason::Budget => {
            option = budget::needed(case).map(|budget| format!("--budget {budget}"));
            format!("the budget ended the load {}", ended())
        }
        Reason::Ended => format!("the load ended {}", ended()),
        Reason::CarriedNothing => "the load carried nothing".to_owned(),
        Reason::NoRecord => "the record of the sending end is missing".to_owned(),
        Reason::HeldOnPurpose => {
            "the load was asked to carry less than the path lets through".to_owned()
        }
        Reason::HeldByEnds(share) => format!(
            "the hosts, and not the path, held the load back {} of the time",
            percent(share)
        ),
        Reason::Gentle => {
            option = Some("--cc cubic".to_owned());
            "its congestion control may leave empty a queue that CUBIC fills".to_owned()
        }
        Reason::SmallLost(share) => format!(
            "{} of small datagrams were lost that were twice as many a second as TCP's packets, and why was not found out",
            percent(share)
        ),
        Reason::SlowerLost(share) => format!(
            "{} of the datagrams were lost that were slower than TCP, and why was not found out",
            percent(share)
        ),
        Reason::LossHidden(share) => {
            option = Some("plumb check --thorough".to_owned());
            format!(
                "{} of the segments were retransmitted, and sending slower than TCP, which separates the path from a full queue, was not tried",
                percent(share)
            )
        }
        Reason::LimitUnknown => {
            option = Some("plumb check --thorough".to_owned());
            "no queue filled and no window was full, and sending faster than TCP was not tried"
                .to_owned()
        }
        Reason::ProbesLost(share) => {
            format!(
                "{} of the round trips beside the load were lost, in both directions together",
                percent(share)
            )
        }
    };
    let needs: Vec<_> = group.iter().map(|missing| missing.need).collect();
    NotMeasured {
        what: words(case, reason, &needs),
        why,
        option,
    }
}

/// Needs as a noun: `rates and latency under load`.
fn words(case: &Case<'_>, reason: Reason, needs: &[Need]) -> String {
    let is_short = matches!(reason, Reason::Asked | Reason::Budget | Reason::Ended);
    // A queue that a short load showed was measured; its whole length was not.
    let is_queue = |direction: Direction| {
        let loaded = case.loaded(direction).filter(|_| is_short);
        loaded.is_some_and(|loaded| loaded.result.increase_s.p95 >= WARNING_S)
    };
    let name = |direction| match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
        Direction::Both => "both",
    };
    let has = |need: &Need| needs.contains(need);
    let all_rates = [Direction::Up, Direction::Down]
        .iter()
        .all(|d| has(&Need::Rate(*d)));
    let all_latencies =
        LOADS.iter().all(|d| has(&Need::Latency(*d))) && !LOADS.iter().any(|d| is_queue(*d));
    let mut words: Vec<String> = Vec::new();
    for need in needs {
        let word = match need {
            Need::Idle => "idle latency and loss".to_owned(),
            Need::IdleLoss => "loss while idle".to_owned(),
            Need::Rate(_) if all_rates => "the line's rates".to_owned(),
            Need::Rate(direction) => format!("the line's {} rate", name(*direction)),
            Need::Record(direction) => {
                format!("retransmissions and stalls of the {}", name(*direction))
            }
            Need::Loss(direction) => format!("the loss of the {} below its rate", name(*direction)),
            Need::Latency(_) if all_latencies => "latency under load".to_owned(),
            Need::Latency(direction) => {
                let load = match direction {
                    Direction::Both => "latency with both directions loaded".to_owned(),
                    direction => format!("latency under {}", name(*direction)),
                };
                match is_queue(*direction) {
                    true => format!("the most that {load} reaches"),
                    false => load,
                }
            }
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
