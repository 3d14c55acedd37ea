//! How often a cause holds back a path of a kind, before anything is measured.
//!
//! Nobody has counted faults of paths by cause. These are orders of magnitude, in powers of two: half of the home lines
//! that people complain of have queues that are too long (Gettys and Nichols, Bufferbloat, 2011; the latency filing,
//! section 4), and a duplex mismatch takes two ends that are set by hand. They are kept within 3 bits of the reference,
//! so that no prior outweighs what was measured.

use plumb_model::finding::Cause;
use plumb_model::results::Direction;
use plumb_model::results::host::Interface;

use crate::Case;

/// Log-odds of any cause before anything is measured, in bits: 1 in 50.
pub(super) const REFERENCE_BITS: f64 = -5.6;

/// A line that carries more than this, in bit/s, is none of a home's: the fastest that are sold widely.
const HOME_MOST_BPS: f64 = 2.5e9;

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    Home,
    /// A campus, a laboratory or a data centre with hardware of its own.
    Campus,
    /// A rented virtual machine.
    Cloud,
    /// A radio network of a mobile operator.
    Mobile,
}

impl Setting {
    /// What this machine's interfaces and the rates carried speak for.
    pub(super) fn of(case: &Case<'_>) -> Self {
        let machine = case.hosts().map(|(_, host)| host).next();
        let interfaces = machine.map_or(&[][..], |host| &host.interfaces);
        let is_radio = |interface: &&Interface| interface.name.starts_with("wwan");
        if interfaces.iter().any(|interface| is_radio(&interface)) {
            Self::Mobile
        } else if fastest_bps(case) <= HOME_MOST_BPS {
            Self::Home
        } else if machine.is_some_and(|host| host.machine.hypervisor.is_some()) {
            Self::Cloud
        } else {
            Self::Campus
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Home => "at home",
            Self::Campus => "on a campus",
            Self::Cloud => "in a cloud",
            Self::Mobile => "on a mobile network",
        }
    }

    /// The number of this setting's column in [`OFTEN`].
    fn column(self) -> usize {
        match self {
            Self::Home => 0,
            Self::Campus => 1,
            Self::Cloud => 2,
            Self::Mobile => 3,
        }
    }
}

/// The highest rate that TCP carried, in bit/s; 0 where there was no load.
fn fastest_bps(case: &Case<'_>) -> f64 {
    let loads = [Direction::Up, Direction::Down, Direction::Both];
    let carried = loads.into_iter().flat_map(|load| case.carried(load));
    let rates = carried.map(|carried| carried.result.bps);
    rates.fold(0.0, f64::max)
}

/// By how many bits a cause is more (or less) frequent than the reference: at home, on a campus, in a cloud, on a mobile
/// network. Causes that are not listed are as frequent as the reference.
const OFTEN: &[(Cause, [f64; 4])] = &[
    (Cause::BufferbloatUp, [3.0, 0.0, -1.0, 3.0]),
    (Cause::BufferbloatDown, [2.0, 0.0, -1.0, 3.0]),
    (Cause::PathLoss, [1.0, 1.0, 0.0, 1.0]),
    (Cause::RateVaries, [1.0, -2.0, -2.0, 3.0]),
    (Cause::SharedMedium, [2.0, -2.0, -3.0, 1.0]),
    (Cause::Outage, [0.0, -1.0, -2.0, 1.0]),
    (Cause::DuplexMismatch, [-3.0, -1.0, -3.0, -3.0]),
    (Cause::Satellite, [-1.0, -3.0, -3.0, -2.0]),
    (Cause::Policer, [-1.0, 0.0, 1.0, 1.0]),
    (Cause::TokenBucket, [1.0, -1.0, 2.0, 1.0]),
    (Cause::ShallowQueue, [-1.0, 2.0, 0.0, -2.0]),
    (Cause::SendBufferSmall, [-1.0, 2.0, 2.0, -2.0]),
    (Cause::ReceiveBufferSmall, [-1.0, 2.0, 1.0, -2.0]),
    (Cause::PmtudBlackHole, [0.0, 0.0, 1.0, 0.0]),
    (Cause::Corruption, [-2.0, -1.0, -3.0, -3.0]),
];

/// Log-odds of a cause in a setting before anything is measured, in bits.
pub(super) fn bits(cause: Cause, setting: Setting) -> f64 {
    let known = OFTEN.iter().find(|(known, _)| *known == cause);
    let more = known.and_then(|(_, more)| more.get(setting.column()));
    REFERENCE_BITS + more.copied().unwrap_or(0.0)
}
