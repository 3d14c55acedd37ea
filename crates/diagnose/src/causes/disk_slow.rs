//! Files are slower than the transfer is to be.

use plumb_model::finding::{Actor, Cause, Finding, Fix, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::DiskResult;
use plumb_model::results::{Direction, FileTime, Outcome};
use plumb_model::units::{capital, si};

use crate::entry::{Entry, Family};
use crate::evidence::{Carried, fact};
use crate::host::{Facts, Judged, Stage, against, fine, found};
use crate::reading;
use crate::signs::percent;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the same transfer from memory to memory is faster",
    needs: &[Need::Files],
    resembles: &[(
        Cause::SendBufferSmall,
        "there a transfer from memory is no faster",
    )],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let loads = directions.filter_map(|direction| case.carried_alone(direction));
        // A program that writes into a pipe is no disk.
        let of_files = loads.filter(|carried| !reading::is_fed_by_program(carried.measurement));
        of_files.filter_map(waits_for_files).collect()
    },
    stage,
    ..Entry::PLAIN
};

/// The senders and receivers time their own waits.
const CONFIDENCE: f64 = 0.9;

/// A load that came of a file, or went to one, and waited for it.
fn waits_for_files(carried: Carried<'_>) -> Option<Finding> {
    let files = carried
        .result
        .files
        .as_ref()
        .filter(|files| files.limits())?;
    let read = files.read_wait_ratio.unwrap_or(0.0);
    let write = files.write_wait_ratio.unwrap_or(0.0);
    let up = carried.result.direction == Direction::Up;
    let (ratio, field, what, of_sender) = match read >= write {
        true => (read, "files.read_wait_ratio", "to be read", true),
        false => (write, "files.write_wait_ratio", "to be written", false),
    };
    // Who sends reads the file, and who receives writes it.
    let (place, on) = match up == of_sender {
        true => (Place::ThisHost, Actor::ThisHost),
        false => (Place::FarHost, Actor::FarHost),
    };
    Some(Finding {
        cause: Cause::DiskSlow,
        place,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads at {} wait for their file {what} {} of the time: the disk, or the program behind it, sets the rate and not the network.",
            capital(carried.result.direction.name()),
            si(carried.bps(), "bit/s"),
            percent(ratio)
        ),
        evidence: vec![fact(
            carried.measurement,
            field,
            ratio,
            "share of the phase in which the streams waited for their files",
            FileTime::LIMITS_RATIO,
        )],
        fixes: vec![Fix::advice(
            on,
            "Compare with a transfer from memory (`plumb rate` without files), and time the disk (`plumb host disk --rate RATE`).",
            "The transfer takes what one from memory does.",
        )],
        kb: "throughput".to_owned(),
    })
}

fn stage(facts: &Facts<'_>, outcome: &Outcome) -> Option<Stage> {
    match outcome {
        Outcome::HostDisk(disk) => Some(Stage {
            judged: judged(facts, disk),
            slowest: slowest(disk),
        }),
        _ => None,
    }
}

fn judged(facts: &Facts<'_>, disk: &DiskResult) -> Vec<Judged> {
    let Some(rate) = disk.rate_bps else {
        return Vec::new();
    };
    disk.copies()
        .map(|(place, pass)| {
            let subject = pass.work.shown();
            let does = format!("{}: {} ({})", subject, si(pass.bps, "bit/s"), pass.cache.shown());
            if pass.bps >= rate {
                return fine(subject, does);
            }
            let verb = if pass.work.reads() { "feed" } else { "take" };
            found(
                subject,
                Cause::DiskSlow,
                Severity::Warning,
                &[PathKind::Lan, PathKind::LongPath],
                format!("Files in {} {verb} a transfer at {}, and {} are wanted.", disk.folder, si(pass.bps, "bit/s"), si(rate, "bit/s")),
            )
            .sure(0.8)
            .evidence(facts.evidence(format!("passes[{place}].bps"), pass.bps, "rate of the files, against the one that is wanted", rate))
            .advice(
                "No setting of TCP helps here: use a faster disk or several, larger reads, or transfer from memory.",
                "Files at the rate of the network.",
            )
            .done()
        })
        .collect()
}

fn slowest(disk: &DiskResult) -> String {
    let slowest = disk.copies().min_by(|a, b| a.1.bps.total_cmp(&b.1.bps));
    slowest.map_or_else(String::new, |(_, pass)| {
        format!(
            "To {} is the slower direction for a copy here: {}{}.",
            pass.work.shown(),
            si(pass.bps, "bit/s"),
            against(disk.rate_bps, pass.bps)
        )
    })
}
