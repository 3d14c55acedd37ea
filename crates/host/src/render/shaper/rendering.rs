//! How a shaper is set on one system, and the numbers as systems want them.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;

/// The IP packet of which most of a loaded direction consists (RFC 894), in bytes.
const FULL_PACKET_BYTES: u32 = 1500;

/// How a shaper is set on one system.
pub(super) struct Rendering {
    pub(super) lines: Lines,
    /// Where the menus and words are from; none where a tool that can be had here has parsed the commands.
    pub(super) source: Option<Source>,
}

/// How many directions the steps of a system set.
pub(super) enum Lines {
    /// The same steps for each direction.
    OfEach(fn(&ShaperAction) -> Vec<String>),
    /// Both directions in one go.
    OfAll(fn(&[ShaperAction]) -> Vec<String>),
}

/// A page of documentation.
pub(super) struct Source {
    pub(super) title: &'static str,
    pub(super) publisher: &'static str,
    /// Year and month in which it was read.
    pub(super) read: &'static str,
    /// Whether its lines are pasted into a shell, which takes `#` as the beginning of a comment.
    pub(super) shell: bool,
}

pub(super) fn kbit(action: &ShaperAction) -> u64 {
    action.rate_bps / 1000
}

/// The rate for a system that has no word for PTM, whose part of the rate is then left out of it.
pub(super) fn kbit_without_ptm(action: &ShaperAction) -> u64 {
    match action.cells {
        Cells::Ptm => kbit(action) * 64 / 65,
        Cells::None | Cells::Atm => kbit(action),
    }
}

pub(super) fn mbit(bps: f64) -> String {
    format!("{:.1}", (bps / 1e5).floor() / 10.0)
}

/// The rate for a system that counts IP packets alone, so that full packets with their framing fit the line.
pub(super) fn of_ip_packets_bps(action: &ShaperAction) -> f64 {
    let full = FULL_PACKET_BYTES;
    let on_line = f64::from(action.framing().wire_bytes(full).max(full));
    action.rate_bps as f64 * f64::from(full) / on_line
}

pub(super) fn noun(direction: OneDirection) -> &'static str {
    match direction {
        OneDirection::Up => "upload",
        OneDirection::Down => "download",
    }
}
