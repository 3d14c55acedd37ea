//! NetFlow version 5: a header and up to 30 records of one form (Cisco, "NetFlow Export Datagram Format"). There are no templates,
//! and only IPv4.

use super::bytes::Bytes;
use super::clock::Clocks;
use super::record::FlowRecord;
use super::state::State;
use super::{FlowExportError, Protocol};

/// A record, in bytes.
const RECORD_BYTES: usize = 48;

/// What remains of a message behind its version.
struct Header {
    count: u16,
    clocks: Clocks,
    sequence: u32,
    /// Type and number of the engine that switched the flows.
    engine: u16,
    /// Two bits of how is sampled, and in the others one packet of how many.
    sampling: u16,
}

impl Header {
    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let count = bytes.u16()?;
        let uptime_ms = bytes.u32()?;
        let (seconds, nanoseconds) = (bytes.u32()?, bytes.u32()?);
        Some(Self {
            count,
            clocks: Clocks {
                sent_ms: i64::from(seconds) * 1000 + i64::from(nanoseconds / 1_000_000),
                uptime_ms: Some(uptime_ms),
            },
            sequence: bytes.u32()?,
            engine: bytes.u16()?,
            sampling: bytes.u16()?,
        })
    }

    /// One packet of how many is counted; `None` where the header says nothing of it, as also exporters do that sample.
    fn one_in(&self) -> Option<f64> {
        match self.sampling & 0x3fff {
            0 => None,
            interval => Some(f64::from(interval)),
        }
    }
}

/// Reads a message behind its version.
pub(super) fn read(
    state: &mut State,
    mut bytes: Bytes<'_>,
    now_ms: i64,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    let header = Header::read(&mut bytes).ok_or(FlowExportError::Header)?;
    if bytes.len() < usize::from(header.count) * RECORD_BYTES {
        return Err(FlowExportError::CutShort("records"));
    }
    let key = (Protocol::NetFlow5, u32::from(header.engine));
    state.see_message(Protocol::NetFlow5, Some(header.clocks), now_ms);
    if let Some(uptime_ms) = header.clocks.uptime_ms {
        state.see_uptime(key, uptime_ms, now_ms);
    }
    state.see_sequence(key, header.sequence, Some(header.count.into()), now_ms);
    for _ in 0..header.count {
        let record = record(&mut bytes, &header).ok_or(FlowExportError::CutShort("records"))?;
        state.seen.see_record(record.one_in);
        each(&record);
    }
    Ok(())
}

fn record(bytes: &mut Bytes<'_>, header: &Header) -> Option<FlowRecord> {
    let (source, destination, _next_hop) = (bytes.v4()?, bytes.v4()?, bytes.v4()?);
    let (in_interface, out_interface) = (bytes.u16()?, bytes.u16()?);
    let (packets, octets) = (bytes.u32()?, bytes.u32()?);
    let (first_ms, last_ms) = (bytes.u32()?, bytes.u32()?);
    let (source_port, destination_port) = (bytes.u16()?, bytes.u16()?);
    let (_padding, _tcp_flags) = (bytes.u8()?, bytes.u8()?);
    let (protocol, traffic_class) = (bytes.u8()?, bytes.u8()?);
    let (source_as, destination_as) = (bytes.u16()?, bytes.u16()?);
    let (source_bits, destination_bits) = (bytes.u8()?, bytes.u8()?);
    let _padding = bytes.u16()?;
    Some(FlowRecord {
        domain: header.engine.into(),
        source: Some(source.into()),
        destination: Some(destination.into()),
        source_prefix_bits: Some(source_bits),
        destination_prefix_bits: Some(destination_bits),
        source_as: Some(source_as.into()),
        destination_as: Some(destination_as.into()),
        protocol: Some(protocol),
        source_port,
        destination_port,
        traffic_class: Some(traffic_class),
        in_interface: Some(in_interface.into()),
        out_interface: Some(out_interface.into()),
        bytes: octets.into(),
        packets: packets.into(),
        start_ms: header.clocks.at_uptime(first_ms),
        end_ms: header.clocks.at_uptime(last_ms),
        one_in: header.one_in(),
        ..FlowRecord::default()
    })
}
