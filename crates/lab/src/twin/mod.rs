//! The twin: a scenario that reproduces the path of a Run, as far as the Run shows it. Pure.
//!
//! Each aspect of a path is a file, which reads what was measured (`measured`) and puts cells, settings and what is not known into
//! a draft (`draft`). What comes out is text that the lab reads, with the reason of each cell beside it.

mod damage;
mod delay;
mod draft;
mod figures;
mod host;
mod interruption;
mod limit;
mod line;
mod made;
mod measured;
mod middlebox;
mod size;
#[cfg(test)]
mod tests;
mod trial;
mod write;

use plumb_model::finding::Cause;
use plumb_model::run::Run;
use plumb_model::units::{human_seconds, si};

pub use self::figures::{Loads, figures, loads, pinged_s};
pub use self::made::{NAME, Twin, TwinError};
pub use self::trial::{Change, Trial, trials};

use self::draft::{About, Draft};
use self::measured::Measured;
use crate::scenario::Scenario;

/// Causes that are in a twin as cells or settings, or that it has because their causes are.
const PRESENT: [Cause; 35] = [
    Cause::BufferbloatUp,
    Cause::BufferbloatDown,
    Cause::Corruption,
    Cause::DelayVaries,
    Cause::Distance,
    Cause::DscpChanged,
    Cause::Duplication,
    Cause::EcnCleared,
    Cause::EcnSynDropped,
    Cause::Ect1Bleached,
    Cause::Handover,
    Cause::ManyRoundTrips,
    Cause::MssClamped,
    Cause::NarrowestLine,
    Cause::Outage,
    Cause::PacketRateLimited,
    Cause::PathLoss,
    Cause::PerFlowLimit,
    Cause::PmtudBlackHole,
    Cause::Policer,
    Cause::QueueUnmanaged,
    Cause::RadioScheduling,
    Cause::RateVaries,
    Cause::ReceiveBufferSmall,
    Cause::Reordering,
    Cause::SackStripped,
    Cause::Satellite,
    Cause::SendBufferSmall,
    Cause::ShallowQueue,
    Cause::TimestampsStripped,
    Cause::TokenBucket,
    Cause::TunnelOverhead,
    Cause::UdpBlocked,
    Cause::UdpLimited,
    Cause::WindowScalingStripped,
];

/// Makes the twin of the path that a Run measured.
///
/// # Errors
/// When the Run measured too little, or what no lab has.
pub fn twin(run: &Run) -> Result<Twin, TwinError> {
    let measured = Measured::of(run)?;
    let mut draft = Draft::default();
    for aspect in [
        line::put,
        delay::put,
        damage::put,
        limit::put,
        size::put,
        middlebox::put,
        interruption::put,
        host::put,
    ] {
        aspect(&measured, &mut draft);
    }
    absent(run, &mut draft);
    let summary = format!(
        "twin of the path to {}: {} down, {} up, {} idle",
        run.target
            .as_ref()
            .map_or("its far end", |target| &target.name),
        si(measured.down.payload_bps, "bit/s"),
        si(measured.up.payload_bps, "bit/s"),
        human_seconds(measured.idle.rtt_s.p50),
    );
    let source = format!("Run {} of {}", run.id, run.started);
    let text = draft.text(NAME, &About { summary, source });
    Scenario::parse(&text, NAME)?;
    Ok(Twin {
        text,
        unknown: draft.into_unknown(),
    })
}

/// Says which findings the twin lacks the cause of.
fn absent(run: &Run, draft: &mut Draft) {
    let mut names: Vec<&str> = run
        .findings
        .iter()
        .filter(|finding| !PRESENT.contains(&finding.cause))
        .map(|finding| finding.cause.name())
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        draft.unknown(format!(
            "what these findings come from, which the twin does not have: {}",
            names.join(", ")
        ));
    }
}
