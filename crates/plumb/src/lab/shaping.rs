//! The shaper of the router of a laboratory that this process is in, for the search of its rate.

use std::error::Error;

use plumb_lab::client::{RunningLab, inside};
use plumb_lab::control::Request;
use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::{Cells, Framing};

/// What the router's shaper counts on each packet: the framing of a check's fix (`docsis`).
pub(crate) const FRAMING: Framing = Framing {
    overhead_bytes: 18,
    mpu_bytes: 64,
    cells: Cells::None,
};

/// Whether this process is in a laboratory.
pub(crate) fn is_there() -> bool {
    inside()
}

/// Has the scenario's router shape a direction.
pub(crate) fn set(
    direction: OneDirection,
    rate_bps: u64,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let shaper = ShaperAction {
        direction,
        rate_bps,
        overhead_bytes: FRAMING.overhead_bytes,
        mpu_bytes: FRAMING.mpu_bytes,
        cells: FRAMING.cells,
        qdisc: "fq_codel".to_owned(),
    };
    let shapers = vec![shaper];
    RunningLab::find(None)?.ask(&Request::Shape { shapers })?;
    Ok(())
}
