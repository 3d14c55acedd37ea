//! Frames of IEEE 802.11, with a radiotap header or without: the header of data frames up to what they carry.

use plumb_model::results::capture::Layer;

use super::cursor::Cursor;
use super::end::End;
use super::frame_control::{AGGREGATED, CHECK_BYTES, Control, SNAP, Wireless, radiotap};
use super::types::Packet;

/// A frame behind a radiotap header; the EtherType of what it carries, where that can be read.
pub(super) fn with_radiotap<'a>(
    cursor: &mut Cursor<'a>,
    packet: &mut Packet<'a>,
) -> Result<Option<u16>, End> {
    packet.layer(Layer::Radiotap)?;
    let [version, _, low, high] = *cursor.peek::<4>()?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    match (version, length) {
        (0, 8..) => {}
        (0, _) => return Err(End::Malformed),
        _ => return Err(End::Unread),
    }
    let flags = radiotap::flags(cursor.take(length)?).unwrap_or_default();
    if flags & radiotap::CHECKED != 0 {
        cursor.end_after(cursor.wire().saturating_sub(CHECK_BYTES));
    }
    if flags & radiotap::BAD != 0 {
        packet.layer(Layer::Wlan)?;
        packet.wireless = Some(Wireless {
            control: None,
            is_aggregated: false,
        });
        return Ok(None);
    }
    frame(flags & radiotap::PADDED != 0, cursor, packet)
}

/// A frame; the EtherType of what it carries, where that can be read.
pub(super) fn frame<'a>(
    is_padded: bool,
    cursor: &mut Cursor<'a>,
    packet: &mut Packet<'a>,
) -> Result<Option<u16>, End> {
    packet.layer(Layer::Wlan)?;
    let control = Control::new(*cursor.peek()?).ok_or(End::Malformed)?;
    let mut wireless = Wireless {
        control: Some(control),
        is_aggregated: false,
    };
    packet.wireless = Some(wireless);
    if control.is_management() || control.is_control() {
        return Ok(None);
    }
    if !control.is_data() {
        return Err(End::Unread);
    }
    let header = cursor.header::<24>()?;
    // Towards the access point the third address is the destination's (table 9-30).
    let destination = if control.is_to_access_point() { 16 } else { 4 };
    packet.broadcast |= header.get(destination).is_some_and(|first| first & 1 == 1);
    let [.., sequence, _] = *header;
    let mut length = header.len();
    let mut rest = 0;
    if control.has_four_addresses() {
        rest += 6;
    }
    cursor.pass(rest)?;
    if control.is_qos() {
        let [qos, _] = *cursor.header::<2>()?;
        wireless.is_aggregated = qos & AGGREGATED != 0;
        packet.wireless = Some(wireless);
        rest += 2;
    }
    if control.has_ht_control() {
        cursor.pass(4)?;
        rest += 4;
    }
    length += rest;
    // What is encrypted is not read, and not misread.
    if !control.carries() || control.is_protected() {
        return Ok(None);
    }
    if is_padded {
        cursor.pass(length.next_multiple_of(4) - length)?;
    }
    let is_later_fragment = sequence & 0x0f != 0;
    if wireless.is_aggregated || is_later_fragment {
        return Err(End::Unread);
    }
    let [snap @ .., high, low] = *cursor.peek::<8>()?;
    if !SNAP.contains(&snap) {
        packet.layer(Layer::Llc)?;
        return Ok(None);
    }
    cursor.pass(8)?;
    Ok(Some(u16::from_be_bytes([high, low])))
}
