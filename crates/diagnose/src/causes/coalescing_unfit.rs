//! The network card interrupts for every packet, or waits long before it does.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Coalescing, FAST_BPS, Interface};
use plumb_model::units::human_seconds;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Found, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another setting takes fewer interrupts, or less time",
    needs: &[Need::Machine],
    audits: &[(Subject::Coalescing, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .hardware()
        .filter_map(|(place, interface)| {
            let coalescing = interface.coalescing.as_ref()?;
            Some(judge(facts, place, interface, coalescing))
        })
        .collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, set: &Coalescing) -> Judged {
    let name = &interface.name;
    let subject = format!("{name} interrupts");
    let wait = human_seconds(set.receive_s);
    if set.adaptive_receive {
        return fine(
            subject,
            format!("{name} fits its interrupts to what arrives"),
        );
    }
    let speed = interface.link.as_ref().and_then(|link| link.speed_bps);
    let fast = speed.is_some_and(|bps| bps >= FAST_BPS);
    let at_once = set.interrupts_for_each();
    if at_once && interface.is_paravirtual() {
        return fine(
            subject,
            format!("{name} is paravirtual: it interrupts only while no program polls it"),
        );
    }
    let field = format!("interfaces[{place}].coalescing.receive_s");
    let finding = if set.waits_long() {
        found(
            subject,
            Cause::CoalescingUnfit,
            Severity::Info,
            &[PathKind::Lan],
            format!("{name} waits up to {wait} before it interrupts, which every sparse packet is late by."),
        )
        .evidence(facts.evidence(field, set.receive_s, "longest wait after a packet was received", Coalescing::LONG_WAIT_S))
    } else if at_once && fast {
        found(
            subject,
            Cause::CoalescingUnfit,
            Severity::Info,
            &[PathKind::Lan, PathKind::BusyServer, PathKind::Router],
            format!("{name} interrupts for every packet that it receives: 81,000 times a second for each Gbit/s of full packets."),
        )
        .evidence(facts.evidence(field, 0.0, "longest wait after a packet was received; none means an interrupt for each", "more than 0"))
    } else {
        return fine(
            subject,
            format!("{name} waits at most {wait} before it interrupts"),
        );
    };
    fixed(finding, interface, set).done()
}

fn fixed(finding: Found, interface: &Interface, set: &Coalescing) -> Found {
    let expect = "Few interrupts under load, and none that is late when little arrives.";
    if set.adaptive_receive_possible == Some(false) {
        return finding.advice(
            format!(
                "The driver of {0} cannot adapt: choose a time of 20 to 100 us (ethtool -C {0} rx-usecs 50).",
                interface.name
            ),
            expect,
        );
    }
    finding.interface(
        "Let the driver fit its interrupts to what arrives, where it can.",
        interface,
        InterfaceChange::AdaptiveReceive(true),
        expect,
    )
}
