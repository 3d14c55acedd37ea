//! What bears on TCP at both ends, as the Run has it of them.

use plumb_model::run::HostFacts;

use super::draft::{Draft, End};
use super::measured::Measured;

/// The most that a kernel takes as a buffer's size, in bytes (`INT_MAX`).
const MOST_BYTES: u64 = i32::MAX as u64;

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    let [near, far] = measured.hosts();
    for (end, facts, whose) in [
        (End::Client, near, "this host"),
        (End::Server, far, "the far end"),
    ] {
        match facts {
            Some(facts) => of_end(end, facts, whose, draft),
            None => draft.unknown(format!(
                "settings of {whose}: it did not report them; a lab's node has its own"
            )),
        }
    }
}

fn of_end(end: End, facts: &HostFacts, whose: &str, draft: &mut Draft) {
    for (key, bytes) in [
        ("net.ipv4.tcp_rmem", facts.tcp_rmem_bytes),
        ("net.ipv4.tcp_wmem", facts.tcp_wmem_bytes),
    ] {
        match bytes {
            Some(bytes) if is_buffer(bytes) => {
                let [least, usual, most] = bytes;
                draft.set(end, key, format!("{least} {usual} {most}"));
            }
            _ => draft.unknown(format!(
                "{key} of {whose}: a lab's node has a stock kernel's"
            )),
        }
    }
    for (key, on) in [
        ("net.ipv4.tcp_window_scaling", facts.window_scaling),
        ("net.ipv4.tcp_sack", facts.sack),
        ("net.ipv4.tcp_timestamps", facts.timestamps),
    ] {
        if let Some(on) = on {
            draft.set(end, key, u8::from(on).to_string());
        }
    }
}

fn is_buffer([least, usual, most]: [u64; 3]) -> bool {
    0 < least && least <= usual && usual <= most && most <= MOST_BYTES
}
