//! From how much loss on it matters.

/// Loss that TCP feels on long paths: at 100 ms CUBIC carries some 4 Mbit/s (RFC 9438, section 5.1).
pub(crate) const LOSS_WARNING: f64 = 0.001;
/// Loss that calls feel, whatever they do to hide it: it takes G.711 with concealment from an R of 93
/// to 77 (G.113 appendix I, G.107), where users begin to complain; and it leaves TCP a few Mbit/s.
pub(crate) const LOSS_CRITICAL: f64 = 0.05;
