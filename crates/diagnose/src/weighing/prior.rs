//! How often a cause holds back a path of a kind, before anything is measured.
//!
//! There is no published count of faults of paths by cause. These are orders of magnitude, in powers of two: half of
//! the home lines that people complain of have queues that are too long (Gettys and Nichols, Bufferbloat, 2011; the
//! latency filing, section 4), and a duplex mismatch takes two ends that are set by hand. They are kept within 3 bits
//! of the reference, so that no prior outweighs what was measured. Each cause's own are in its file (`Entry::often`).

use plumb_model::finding::Cause;
use plumb_model::results::Direction;
use plumb_model::results::host::Interface;

use crate::Case;
use crate::causes;

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
}

/// The highest rate that TCP carried, in bit/s; 0 where there was no load.
fn fastest_bps(case: &Case<'_>) -> f64 {
    let loads = [Direction::Up, Direction::Down, Direction::Both];
    let carried = loads.into_iter().flat_map(|load| case.carried(load));
    let rates = carried.map(|carried| carried.result.bps);
    rates.fold(0.0, f64::max)
}

/// Log-odds of a cause in a setting before anything is measured, in bits.
pub(super) fn bits(cause: Cause, setting: Setting) -> f64 {
    let often = &causes::entry(cause).often;
    let more = match setting {
        Setting::Home => often.home,
        Setting::Campus => often.campus,
        Setting::Cloud => often.cloud,
        Setting::Mobile => often.mobile,
    };
    REFERENCE_BITS + more
}
