//! Fields of the header that do not arrive as they were sent: quoted by hops, and, of marks, seen by both ends.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{Actor, Cause, Evidence, Finding, Observed, Severity};
use plumb_model::results::path::{AlteredField, ArrivedMarks, EcnField};

use super::fact;
use super::route::{Route, of_route};

/// So many packets that arrive changed alike, and more than half of those that arrive, are changed by rule: one may be
/// of a moment at which the route changed.
const LEAST_PACKETS: u64 = 3;

/// Where a field of the header does not arrive as it was sent. A hop that quotes it also shows where, so that what the
/// far end received is more evidence of the same.
pub(crate) fn altered(
    route: Route<'_>,
    field: AlteredField,
    cause: Cause,
    what: &str,
) -> Vec<Finding> {
    let mut findings = quoted(route, field, cause, what);
    for direction in [OneDirection::Up, OneDirection::Down] {
        let Some(seen) = between_ends(route, direction, field, cause, what) else {
            continue;
        };
        match findings.first_mut() {
            Some(quoted) if direction == OneDirection::Up => quoted.evidence.extend(seen.evidence),
            _ => findings.push(seen),
        }
    }
    findings
}

/// Changes that hops on the forward path quote.
fn quoted(route: Route<'_>, field: AlteredField, cause: Cause, what: &str) -> Vec<Finding> {
    let changes = route.result.alterations.iter().enumerate();
    changes
        // A mark of congestion is what the field is for.
        .filter(|(_, change)| change.field == field && change.seen != "CE")
        .map(|(index, change)| {
            let behind = match change.intact_at_ttl {
                Some(ttl) => format!("behind {}", route.at(ttl)),
                None => "before the first hop that reports it".to_owned(),
            };
            let summary = format!(
                "The {what} of packets to {} is changed from {} to {}, {behind}.",
                route.result.address, change.sent, change.seen
            );
            let evidence = fact(
                route.measurement,
                format_args!("alterations.{index}.seen_at_ttl"),
                f64::from(change.seen_at_ttl),
                "the first hop that quotes another value than was sent",
                1.0,
            );
            let advice = (
                Actor::Provider,
                "Rely on no mark beyond that hop, or ask who runs it to leave the field alone: DSCP by agreement, ECN by RFC 3168.",
                "the field as it was sent at every hop",
            );
            of_route(cause, (Severity::Info, 0.95), summary, evidence, advice)
        })
        .collect()
}

/// Whether the far end received enough marked packets to show that they are changed.
pub(crate) fn shows_marks(route: Route<'_>) -> bool {
    let received = route.result.marks.iter().flat_map(|marks| &marks.up);
    received.map(|of| of.packets).sum::<u64>() >= LEAST_PACKETS
}

/// Packets of one mark, most of which arrive with another one.
struct Changed {
    /// The first of the entries that show it.
    index: usize,
    sent: u8,
    seen: u8,
    packets: u64,
    of: u64,
}

/// What both ends see of a direction.
fn between_ends(
    route: Route<'_>,
    direction: OneDirection,
    field: AlteredField,
    cause: Cause,
    what: &str,
) -> Option<Finding> {
    let marks = route.result.marks.as_ref()?;
    let (arrived, name) = match direction {
        OneDirection::Up => (&marks.up, "up"),
        OneDirection::Down => (&marks.down, "down"),
    };
    let (changed, member): (Vec<_>, _) = match field {
        AlteredField::Dscp => (
            changed(arrived, |of| Some((marks.dscp, of.dscp)))
                .into_iter()
                .collect(),
            "dscp",
        ),
        AlteredField::Ecn => {
            let of_one = |sent: EcnField| changed_field(arrived, sent);
            // Where ECT(1) alone is changed, that is another cause's: `ect1_alone`.
            let of_ect0 = of_one(EcnField::Ect0);
            let of_ect1 = of_ect0.as_ref().and_then(|_| of_one(EcnField::Ect1));
            (of_ect0.into_iter().chain(of_ect1).collect(), "ecn")
        }
        _ => return None,
    };
    let shown = |mark: u8| match field {
        AlteredField::Ecn => EcnField::of_bits(mark).shown().to_owned(),
        _ => mark.to_string(),
    };
    let observed = |mark: u8| match field {
        AlteredField::Ecn => Observed::Word(EcnField::of_bits(mark).name().to_owned()),
        _ => Observed::Number(mark.into()),
    };
    let path = match direction {
        OneDirection::Up => format!(
            "to {} is changed on the forward path (up)",
            route.result.address
        ),
        OneDirection::Down => format!(
            "from {} is changed on the reverse path (down)",
            route.result.address
        ),
    };
    let changes: Vec<String> = changed
        .iter()
        .map(|c| {
            format!(
                "from {} to {} ({} of {})",
                shown(c.sent),
                shown(c.seen),
                c.packets,
                c.of
            )
        })
        .collect();
    let mut evidence = changed.iter().map(|c| {
        fact(
            route.measurement,
            format_args!("marks.{name}.{}.{member}", c.index),
            observed(c.seen),
            format!(
                "most packets arrive with another value than was sent, {} of {}",
                c.packets, c.of
            ),
            observed(c.sent),
        )
    });
    let summary = format!("The {what} of packets {path}: {}.", changes.join(", "));
    let advice = (
        Actor::Provider,
        "Rely on no mark in that direction, or ask who runs the path to leave the field alone: DSCP by agreement, ECN by RFC 3168.",
        "the field as it was sent at the other end",
    );
    let mut finding = of_route(
        cause,
        (Severity::Info, 0.95),
        summary,
        evidence.next()?,
        advice,
    );
    finding.evidence.extend(evidence);
    Some(finding)
}

/// The other ECN field with which most packets arrive that were sent with this one.
fn changed_field(arrived: &[ArrivedMarks], sent: EcnField) -> Option<Changed> {
    changed(arrived, |of: &ArrivedMarks| {
        // A mark of congestion is what the field is for.
        let seen = if of.ecn == EcnField::Ce { sent } else { of.ecn };
        (of.sent_ecn == Some(sent)).then_some((sent.bits(), seen.bits()))
    })
}

/// Where ECT(1) does not arrive at the far end as it was sent, and ECT(0) does.
pub(crate) fn ect1_alone(route: Route<'_>) -> Option<(String, Evidence)> {
    let arrived = &route.result.marks.as_ref()?.up;
    let with_ect0 = arrived
        .iter()
        .filter(|of| of.sent_ecn == Some(EcnField::Ect0));
    let with_ect0: u64 = with_ect0.map(|of| of.packets).sum();
    if with_ect0 < LEAST_PACKETS || changed_field(arrived, EcnField::Ect0).is_some() {
        return None;
    }
    let changed = changed_field(arrived, EcnField::Ect1)?;
    let seen = EcnField::of_bits(changed.seen);
    let summary = format!(
        "ECT(1) of packets to {} arrives as {} ({} of {}), and ECT(0) as it was sent: a transport of L4S waits in the queue of all others.",
        route.result.address,
        seen.shown(),
        changed.packets,
        changed.of
    );
    let word = |field: EcnField| Observed::Word(field.name().to_owned());
    let evidence = fact(
        route.measurement,
        format_args!("marks.up.{}.ecn", changed.index),
        word(seen),
        format!(
            "most packets with ECT(1) arrive with another value, {} of {}",
            changed.packets, changed.of
        ),
        word(EcnField::Ect1),
    );
    Some((summary, evidence))
}

/// The other value with which most packets arrive; `marks` gives what was sent and seen of those that count.
fn changed(
    arrived: &[ArrivedMarks],
    marks: impl Fn(&ArrivedMarks) -> Option<(u8, u8)>,
) -> Option<Changed> {
    let counted = || {
        let entries = arrived.iter().enumerate();
        entries.filter_map(|(index, of)| Some((index, marks(of)?, of.packets)))
    };
    let of: u64 = counted().map(|(_, _, packets)| packets).sum();
    let with = |value: u8| -> u64 {
        let alike = counted().filter(|(_, (_, seen), _)| *seen == value);
        alike.map(|(_, _, packets)| packets).sum()
    };
    counted()
        .filter(|(_, (sent, seen), _)| sent != seen)
        .map(|(index, (sent, seen), _)| Changed {
            index,
            sent,
            seen,
            packets: with(seen),
            of,
        })
        .find(|changed| changed.packets >= LEAST_PACKETS && 2 * changed.packets > of)
}
