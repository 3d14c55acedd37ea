//! sFlow version 5 (sflow.org, "sFlow Version 5"): each flow sample is one packet, with what the switch knows of its route.
//! Counters, which devices have by SNMP too, are passed over.

use std::net::IpAddr;

use super::bytes::Bytes;
use super::record::FlowRecord;
use super::state::State;
use super::{FlowExportError, Protocol};
use crate::ip::IpPacket;

/// The forms of samples of a packet (section 5.3), in which interfaces are 30 bits or words of their own.
const FLOW_SAMPLE: u32 = 1;
const EXPANDED_FLOW_SAMPLE: u32 = 3;

/// Parts of a flow sample.
const RAW_HEADER: u32 = 1;
const IPV4: u32 = 3;
const IPV6: u32 = 4;
const ROUTER: u32 = 1002;
const GATEWAY: u32 = 1003;

/// What a header that was sampled begins with (header_protocol).
const ETHERNET: u32 = 1;
const BARE_IPV4: u32 = 11;
const BARE_IPV6: u32 = 12;

/// The interface of the agent itself, in the 30 bits of a number.
const INTERNAL: u32 = 0x3fff_ffff;

/// Reads a message behind its version.
pub(super) fn read(
    state: &mut State,
    mut bytes: Bytes<'_>,
    now_ms: i64,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    const CUT: FlowExportError = FlowExportError::CutShort("samples");
    let (sub_agent, sequence, uptime_ms, count) =
        header(&mut bytes).ok_or(FlowExportError::Header)?;
    let key = (Protocol::Sflow5, sub_agent);
    state.see_message(Protocol::Sflow5, None, now_ms);
    state.see_uptime(key, uptime_ms, now_ms);
    state.see_sequence(key, sequence, Some(1), now_ms);
    for _ in 0..count {
        let (form, content) = part(&mut bytes).ok_or(CUT)?;
        let expanded = match form {
            FLOW_SAMPLE => false,
            EXPANDED_FLOW_SAMPLE => true,
            _ => {
                state.seen.passed_over += 1;
                continue;
            }
        };
        let record = sample(content, expanded, sub_agent).ok_or(CUT)?;
        state.seen.see_record(record.one_in);
        each(&record);
    }
    Ok(())
}

/// Sub-agent, sequence number, uptime in ms, and how many samples follow.
fn header(bytes: &mut Bytes<'_>) -> Option<(u32, u32, u32, u32)> {
    // What the agent calls itself; it is known by where it sends from.
    address(bytes)?;
    Some((bytes.u32()?, bytes.u32()?, bytes.u32()?, bytes.u32()?))
}

/// A part, by its form and content. Forms of other vendors have the vendor's number in their upper 20 bits.
fn part<'a>(bytes: &mut Bytes<'a>) -> Option<(u32, Bytes<'a>)> {
    let form = bytes.u32()?;
    let length = usize::try_from(bytes.u32()?).ok()?;
    bytes.take(length).map(|content| (form, Bytes(content)))
}

/// An address of either version; `Some(None)` where the agent does not know it.
fn address(bytes: &mut Bytes<'_>) -> Option<Option<IpAddr>> {
    match bytes.u32()? {
        1 => bytes.v4().map(|address| Some(address.into())),
        2 => bytes.v6().map(|address| Some(address.into())),
        0 => Some(None),
        _ => None,
    }
}

/// An interface, by its form and number: `None` where a packet was dropped, or left by several.
fn interface(form: u32, number: u32) -> Option<u32> {
    (form == 0 && number != INTERNAL).then_some(number)
}

fn sample(mut bytes: Bytes<'_>, expanded: bool, sub_agent: u32) -> Option<FlowRecord> {
    let _sequence = bytes.u32()?;
    let _source = bytes.u32()?;
    if expanded {
        let _source_number = bytes.u32()?;
    }
    let one_in = bytes.u32()?;
    let (_pool, _drops) = (bytes.u32()?, bytes.u32()?);
    let mut next_interface = || {
        let first = bytes.u32()?;
        match expanded {
            true => bytes.u32().map(|number| interface(first, number)),
            false => Some(interface(first >> 30, first & INTERNAL)),
        }
    };
    let (in_interface, out_interface) = (next_interface()?, next_interface()?);
    let mut record = FlowRecord {
        domain: sub_agent,
        in_interface,
        out_interface,
        packets: 1,
        one_in: Some(f64::from(one_in.max(1))),
        ..FlowRecord::default()
    };
    let count = bytes.u32()?;
    for _ in 0..count {
        let (form, content) = part(&mut bytes)?;
        // A part that is not as it should be is as one that is not there.
        let _ = match form {
            RAW_HEADER => raw_header(&mut record, content),
            IPV4 => ip(&mut record, content, |bytes| bytes.v4().map(Into::into)),
            IPV6 => ip(&mut record, content, |bytes| bytes.v6().map(Into::into)),
            ROUTER => router(&mut record, content),
            GATEWAY => gateway(&mut record, content),
            _ => Some(()),
        };
    }
    Some(record)
}

/// The first bytes of the packet. Bytes count as IP has them, as with NetFlow; of what is no IP, the whole frame counts.
fn raw_header(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    let link = bytes.u32()?;
    let frame_bytes = bytes.u32()?;
    let _stripped = bytes.u32()?;
    let length = usize::try_from(bytes.u32()?).ok()?;
    let header = Bytes(bytes.take(length)?);
    record.bytes = frame_bytes.into();
    let packet = match link {
        ETHERNET => behind_ethernet(header)?,
        BARE_IPV4 | BARE_IPV6 => header,
        _ => return None,
    };
    let packet = IpPacket::parse(packet.0)?;
    let (source_port, destination_port) = packet.ports().unwrap_or_default();
    record.source = Some(packet.source());
    record.destination = Some(packet.destination());
    record.protocol = Some(packet.protocol());
    record.traffic_class = Some(packet.traffic_class());
    record.bytes = packet.total_len() as u64;
    (record.source_port, record.destination_port) = (source_port, destination_port);
    Some(())
}

/// What is behind an Ethernet header and its tags (IEEE 802.1Q), where it is IP.
fn behind_ethernet(mut bytes: Bytes<'_>) -> Option<Bytes<'_>> {
    const ADDRESSES_BYTES: usize = 12;
    const MOST_TAGS: u32 = 4;
    bytes.take(ADDRESSES_BYTES)?;
    for _ in 0..=MOST_TAGS {
        match bytes.u16()? {
            0x0800 | 0x86dd => return Some(bytes),
            0x8100 | 0x88a8 | 0x9100 => {
                bytes.u16()?;
            }
            _ => return None,
        }
    }
    None
}

/// The fields of the IP header, where the switch sends those alone.
fn ip(
    record: &mut FlowRecord,
    mut bytes: Bytes<'_>,
    address: fn(&mut Bytes<'_>) -> Option<IpAddr>,
) -> Option<()> {
    let (length, protocol) = (bytes.u32()?, bytes.u32()?);
    let (source, destination) = (address(&mut bytes)?, address(&mut bytes)?);
    let (source_port, destination_port) = (bytes.u32()?, bytes.u32()?);
    let _tcp_flags = bytes.u32()?;
    let traffic_class = bytes.u32()?;
    record.bytes = length.into();
    record.protocol = u8::try_from(protocol).ok();
    record.source = Some(source);
    record.destination = Some(destination);
    record.source_port = u16::try_from(source_port).unwrap_or_default();
    record.destination_port = u16::try_from(destination_port).unwrap_or_default();
    record.traffic_class = u8::try_from(traffic_class).ok();
    Some(())
}

/// The next hop and the lengths of the prefixes of the routes.
fn router(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    address(&mut bytes)?;
    record.source_prefix_bits = u8::try_from(bytes.u32()?).ok();
    record.destination_prefix_bits = u8::try_from(bytes.u32()?).ok();
    Some(())
}

/// The autonomous systems of a packet: the last one of the path is the destination's, and without a path it is the router's own.
fn gateway(record: &mut FlowRecord, mut bytes: Bytes<'_>) -> Option<()> {
    address(&mut bytes)?;
    let own_as = bytes.u32()?;
    record.source_as = Some(bytes.u32()?);
    let _peer_as = bytes.u32()?;
    let segments = bytes.u32()?;
    let mut last_as = own_as;
    for _ in 0..segments {
        let _kind = bytes.u32()?;
        let count = usize::try_from(bytes.u32()?).ok()?;
        let mut systems = Bytes(bytes.take(count.checked_mul(4)?)?);
        while let Some(system) = systems.u32() {
            last_as = system;
        }
    }
    record.destination_as = Some(last_as);
    Some(())
}
