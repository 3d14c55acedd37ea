//! How fast a stage of transfers is, against the rate that is wanted.

use plumb_model::units::si;

use super::judged::Judged;

/// What a rule says of a stage.
pub(crate) struct Stage {
    pub(crate) judged: Vec<Judged>,
    /// Its slowest part, as a sentence; empty where there is none.
    pub(crate) slowest: String,
}

/// How a stage stands against the rate, to follow its own rate.
pub(crate) fn against(wanted: Option<f64>, bps: f64) -> String {
    match wanted {
        Some(rate) if bps < rate => {
            format!(", less than the {} that are wanted", si(rate, "bit/s"))
        }
        Some(rate) => format!(
            ", {:.1} times the {} that are wanted",
            bps / rate,
            si(rate, "bit/s")
        ),
        None => String::new(),
    }
}
