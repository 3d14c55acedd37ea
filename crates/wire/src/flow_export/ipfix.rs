//! IPFIX (RFC 7011): sets of templates, of templates of options, and of records by both, with fields of variable length and of
//! enterprises.

use super::bytes::Bytes;
use super::clock::Clocks;
use super::element::Element;
use super::record::FlowRecord;
use super::sets::{LEAST_TEMPLATE, Message, announce, next, records};
use super::state::State;
use super::template::{Field, MOST_FIELDS_OF_ONE, Of, Template};
use super::{FlowExportError, Protocol};

/// The numbers of sets that are no records (section 3.3.2). In a withdrawal they name all templates of their kind.
const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;

/// The header of a message, in bytes.
const HEADER_BYTES: usize = 16;

/// Marks a field of an enterprise, whose number follows (section 3.2).
const ENTERPRISE: u16 = 0x8000;

/// Reads a message behind its version.
pub(super) fn read(
    state: &mut State,
    mut bytes: Bytes<'_>,
    now_ms: i64,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    const VERSION_AND_LENGTH: usize = 4;
    let length = bytes.u16().ok_or(FlowExportError::Header)?;
    let length = usize::from(length);
    if length < HEADER_BYTES {
        return Err(FlowExportError::Length);
    }
    let within = bytes.take(length - VERSION_AND_LENGTH);
    let mut bytes = Bytes(within.ok_or(FlowExportError::CutShort("length"))?);
    let header = (bytes.u32(), bytes.u32(), bytes.u32());
    let (Some(seconds), Some(sequence), Some(domain)) = header else {
        return Err(FlowExportError::Header);
    };
    let message = Message {
        key: (Protocol::Ipfix, domain),
        clocks: Clocks {
            sent_ms: i64::from(seconds) * 1000,
            uptime_ms: None,
        },
        now_ms,
    };
    state.see_message(Protocol::Ipfix, Some(message.clocks), now_ms);
    state.domain(message.key, now_ms);
    let (count, done) = sets(state, message, bytes, each);
    // What a message without all of its sets counts for is not known.
    state.see_sequence(
        message.key,
        sequence,
        count.filter(|_| done.is_ok()),
        now_ms,
    );
    done
}

/// Reads the sets of a message, and returns how many records they had, if that is known.
fn sets(
    state: &mut State,
    message: Message,
    mut bytes: Bytes<'_>,
    each: &mut impl FnMut(&FlowRecord),
) -> (Option<u32>, Result<(), FlowExportError>) {
    let mut count = Some(0u32);
    while !bytes.is_empty() {
        let done = next(&mut bytes).and_then(|(number, content)| {
            match number {
                TEMPLATES | OPTIONS_TEMPLATES => {
                    templates(state, message, number, content, each)?;
                }
                LEAST_TEMPLATE.. => {
                    let more = records(state, message, number, content.0, each);
                    count = count.zip(more).map(|(sum, more)| sum.saturating_add(more));
                }
                // Of NetFlow 9, or reserved: to be passed over.
                _ => {}
            }
            Ok(())
        });
        if done.is_err() {
            return (count, done);
        }
    }
    (count, Ok(()))
}

fn templates(
    state: &mut State,
    message: Message,
    kind: u16,
    mut bytes: Bytes<'_>,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    const CUT: FlowExportError = FlowExportError::CutShort("template");
    /// What is shorter than a withdrawal is padding.
    const LEAST_BYTES: usize = 4;
    let of = match kind {
        TEMPLATES => Of::Flows,
        _ => Of::Options,
    };
    while bytes.len() >= LEAST_BYTES {
        let (number, count) = (bytes.u16().ok_or(CUT)?, bytes.u16().ok_or(CUT)?);
        match (number, count) {
            // Padding of whole words.
            (0, 0) => break,
            (all, 0) if all == kind => state.templates.remove_of(message.key, Some(of)),
            (one, 0) => {
                state.templates.remove(&(message.key, one));
            }
            _ => {
                if of == Of::Options {
                    // How many of the fields are its scope, which are read as all others.
                    bytes.u16().ok_or(CUT)?;
                }
                let fields = fields(&mut bytes, count).ok_or(CUT)?;
                announce(state, message, number, Template::new(of, fields), each);
            }
        }
    }
    Ok(())
}

/// So many fields. Of too many, one more is kept than a template may have.
fn fields(bytes: &mut Bytes<'_>, count: u16) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    for _ in 0..count {
        let (number, length) = (bytes.u16()?, bytes.u16()?);
        let element = match number & ENTERPRISE {
            0 => Element::of(number),
            _ => {
                bytes.u32()?;
                Element::Other
            }
        };
        if fields.len() <= MOST_FIELDS_OF_ONE {
            fields.push(Field { element, length });
        }
    }
    Some(fields)
}
