//! Frames of IEEE 802.11 with other addresses. Of a radiotap header only its flags stay, of management frames nothing
//! behind the addresses: they name networks.

use super::copied::Copied;
use crate::packet::frame_control::{AGGREGATED, CHECK_BYTES, Control, SNAP, radiotap};

/// The EtherType of what comes behind a header that was copied; `None` within where nothing is to be copied.
type Then = Option<Option<u16>>;

pub(super) fn with_radiotap(copied: &mut Copied<'_>) -> Then {
    let [version, _, low, high] = copied.peek()?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    let header = copied.part(length);
    if version != 0 || length < 8 || header.len() < length {
        return None;
    }
    let flags = radiotap::flags(header);
    // Its version, its length, and which fields there are.
    let (made, is_padded) = match flags {
        Some(flags) => (
            vec![0, 0, 9, 0, 2, 0, 0, 0, flags],
            flags & radiotap::PADDED != 0,
        ),
        None => (vec![0, 0, 8, 0, 0, 0, 0, 0], false),
    };
    copied.push(&made);
    copied.shorten(length.saturating_sub(made.len()));
    let flags = flags.unwrap_or_default();
    if flags & radiotap::CHECKED != 0 {
        copied.end_after(copied.wire().saturating_sub(CHECK_BYTES));
    }
    match flags & radiotap::BAD {
        0 => frame(is_padded, copied),
        _ => Some(None),
    }
}

pub(super) fn frame(is_padded: bool, copied: &mut Copied<'_>) -> Then {
    let begins = copied.place();
    let control = Control::new(copied.peek()?)?;
    // With the duration.
    copied.keep::<4>()?;
    let receiver = copied.take()?;
    copied.push_mac(receiver);
    if !control.is_management() && !control.is_data() {
        return Some(None);
    }
    for _of in ["transmitter", "third"] {
        let address = copied.take()?;
        copied.push_mac(address);
    }
    let [sequence, _] = copied.keep()?;
    if control.is_management() {
        return Some(None);
    }
    if control.has_four_addresses() {
        let address = copied.take()?;
        copied.push_mac(address);
    }
    let mut is_aggregated = false;
    if control.is_qos() {
        let [qos, _] = copied.keep()?;
        is_aggregated = qos & AGGREGATED != 0;
    }
    if control.has_ht_control() {
        copied.keep::<4>()?;
    }
    let is_later_fragment = sequence & 0x0f != 0;
    if !control.carries() || control.is_protected() || is_aggregated || is_later_fragment {
        return Some(None);
    }
    if is_padded {
        let length = copied.place() - begins;
        let padding = copied.part(length.next_multiple_of(4) - length).len();
        copied.push(&vec![0; padding]);
    }
    let [snap @ .., high, low] = copied.peek::<8>()?;
    if !SNAP.contains(&snap) {
        return Some(None);
    }
    copied.keep::<8>()?;
    Some(Some(u16::from_be_bytes([high, low])))
}
