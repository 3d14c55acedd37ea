//! From how much loss on it matters.

use plumb_model::loss::at_least_ratio;

/// Loss that TCP feels on long paths: at 100 ms CUBIC carries some 4 Mbit/s (RFC 9438, section 5.1).
pub(crate) const LOSS_WARNING: f64 = 0.001;
/// Loss that calls feel, whatever they do to hide it: it takes G.711 with concealment from an R of 93
/// to 77 (G.113 appendix I, G.107), where users begin to complain; and it leaves TCP a few Mbit/s.
pub(crate) const LOSS_CRITICAL: f64 = 0.05;

/// Whether so many lost probes show a loss that matters; one alone may be chance, of however few.
pub(crate) fn shows_loss(sent: u64, lost: u64) -> bool {
    lost > 1 && at_least_ratio(sent, lost) >= LOSS_WARNING
}
