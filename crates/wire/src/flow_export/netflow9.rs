//! NetFlow version 9 (RFC 3954): sets of templates, of templates of options, and of records by both.

use super::bytes::Bytes;
use super::clock::Clocks;
use super::element::Element;
use super::record::FlowRecord;
use super::sets::{LEAST_TEMPLATE, Message, announce, next, records};
use super::state::State;
use super::template::{Field, MOST_FIELDS_OF_ONE, Of, Template};
use super::{FlowExportError, Protocol};

/// The numbers of sets that are no records (section 5.2).
const TEMPLATES: u16 = 0;
const OPTIONS_TEMPLATES: u16 = 1;

/// The scope of options that is an interface (section 6.1).
const INTERFACE: u16 = 2;

/// A field of a template, in bytes.
const FIELD_BYTES: u16 = 4;

/// Reads a message behind its version.
pub(super) fn read(
    state: &mut State,
    mut bytes: Bytes<'_>,
    now_ms: i64,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    let header = [
        bytes.u16().map(u32::from),
        bytes.u32(),
        bytes.u32(),
        bytes.u32(),
        bytes.u32(),
    ];
    // How many records there are, which their sets show too.
    let [
        Some(_count),
        Some(uptime_ms),
        Some(seconds),
        Some(sequence),
        Some(source),
    ] = header
    else {
        return Err(FlowExportError::Header);
    };
    let message = Message {
        key: (Protocol::NetFlow9, source),
        clocks: Clocks {
            sent_ms: i64::from(seconds) * 1000,
            uptime_ms: Some(uptime_ms),
        },
        now_ms,
    };
    state.see_message(Protocol::NetFlow9, Some(message.clocks), now_ms);
    state.see_uptime(message.key, uptime_ms, now_ms);
    state.see_sequence(message.key, sequence, Some(1), now_ms);
    while !bytes.is_empty() {
        let (number, content) = next(&mut bytes)?;
        match number {
            TEMPLATES => templates(state, message, content, each)?,
            OPTIONS_TEMPLATES => options_templates(state, message, content, each)?,
            LEAST_TEMPLATE.. => {
                records(state, message, number, content.0, each);
            }
            // Reserved.
            _ => {}
        }
    }
    Ok(())
}

fn templates(
    state: &mut State,
    message: Message,
    mut bytes: Bytes<'_>,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    const CUT: FlowExportError = FlowExportError::CutShort("template");
    // What is shorter than a template is padding.
    while bytes.len() >= usize::from(FIELD_BYTES) {
        let (number, count) = (bytes.u16().ok_or(CUT)?, bytes.u16().ok_or(CUT)?);
        // Padding of whole words.
        if (number, count) == (0, 0) {
            break;
        }
        let fields = fields(&mut bytes, count, Element::of).ok_or(CUT)?;
        announce(
            state,
            message,
            number,
            Template::new(Of::Flows, fields),
            each,
        );
    }
    Ok(())
}

/// Templates of options: lengths of their scopes and of their other fields in bytes, and then these (section 6.1).
fn options_templates(
    state: &mut State,
    message: Message,
    mut bytes: Bytes<'_>,
    each: &mut impl FnMut(&FlowRecord),
) -> Result<(), FlowExportError> {
    const CUT: FlowExportError = FlowExportError::CutShort("template of options");
    const HEADER: usize = 6;
    while bytes.len() >= HEADER {
        let header = (bytes.u16(), bytes.u16(), bytes.u16());
        let (Some(number), Some(scopes), Some(others)) = header else {
            return Err(CUT);
        };
        if (number, scopes, others) == (0, 0, 0) {
            break;
        }
        let of_scope = |number| match number {
            INTERFACE => Element::InInterface,
            _ => Element::Other,
        };
        let mut all = fields(&mut bytes, scopes / FIELD_BYTES, of_scope).ok_or(CUT)?;
        all.extend(fields(&mut bytes, others / FIELD_BYTES, Element::of).ok_or(CUT)?);
        let template = Template::new(Of::Options, all);
        announce(state, message, number, template, each);
    }
    Ok(())
}

/// So many fields. Of too many, one more is kept than a template may have.
fn fields(bytes: &mut Bytes<'_>, count: u16, element: fn(u16) -> Element) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    for _ in 0..count {
        let field = Field {
            element: element(bytes.u16()?),
            length: bytes.u16()?,
        };
        if fields.len() <= MOST_FIELDS_OF_ONE {
            fields.push(field);
        }
    }
    Some(fields)
}
