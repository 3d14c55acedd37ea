//! Sets, which messages of NetFlow 9 and IPFIX are made of: of templates, and of records by them.

use super::FlowExportError;
use super::bytes::Bytes;
use super::clock::Clocks;
use super::domain::DomainKey;
use super::record::FlowRecord;
use super::state::State;
use super::template::{Noted, Of, Template};

/// Numbers below this are not of templates (RFC 3954, section 5.2; RFC 7011, section 3.4.1).
pub(super) const LEAST_TEMPLATE: u16 = 256;

/// The message that sets stand in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) key: DomainKey,
    pub(super) clocks: Clocks,
    /// When it came, ms since 1970.
    pub(super) now_ms: i64,
}

/// The next set of a message: its number and its content.
pub(super) fn next<'a>(bytes: &mut Bytes<'a>) -> Result<(u16, Bytes<'a>), FlowExportError> {
    const HEADER: usize = 4;
    let header = (bytes.u16(), bytes.u16());
    let (Some(number), Some(length)) = header else {
        return Err(FlowExportError::CutShort("set"));
    };
    let length = usize::from(length)
        .checked_sub(HEADER)
        .ok_or(FlowExportError::Length)?;
    let content = bytes.take(length).ok_or(FlowExportError::CutShort("set"))?;
    Ok((number, Bytes(content)))
}

/// Keeps a template that a message announces, and reads the records that waited for it. `None` is one that is impossible: records
/// of its number wait for another.
pub(super) fn announce(
    state: &mut State,
    message: Message,
    number: u16,
    template: Option<Template>,
    each: &mut impl FnMut(&FlowRecord),
) {
    let key = (message.key, number);
    let Some(template) = template.filter(|_| number >= LEAST_TEMPLATE) else {
        state.seen.refused_templates += 1;
        state.templates.remove(&key);
        return;
    };
    match state.templates.note(key, template, message.now_ms) {
        Noted::Again => return,
        Noted::New => {}
        Noted::Changed => state.seen.changed_templates += 1,
    }
    let (sets, late) = state.held.release(key, message.now_ms);
    state.seen.without_template += late;
    for set in sets {
        let then = Message {
            clocks: set.clocks,
            ..message
        };
        records(state, then, number, &set.content, each);
    }
}

/// Reads the records of a set, and returns how many there were. Where their template is not known they are held, and how many they
/// are is not known.
pub(super) fn records(
    state: &mut State,
    message: Message,
    number: u16,
    content: &[u8],
    each: &mut impl FnMut(&FlowRecord),
) -> Option<u32> {
    let Message {
        key,
        clocks,
        now_ms,
    } = message;
    let State {
        seen,
        templates,
        held,
        domains,
    } = state;
    let Some(template) = templates.find(&(key, number), now_ms) else {
        seen.without_template += held.hold((key, number), content, clocks, now_ms);
        return None;
    };
    let domain = domains.entry(key).or_default();
    let mut bytes = Bytes(content);
    let mut count = 0;
    while let Some(mut reading) = template.read(&mut bytes, clocks) {
        count += 1;
        if template.of == Of::Options {
            domain.note_options(&reading);
            continue;
        }
        reading.settle_times(clocks, domain.began_ms);
        reading.record.domain = key.1;
        reading.record.one_in = domain.one_in(&reading);
        seen.see_record(reading.record.one_in);
        each(&reading.record);
    }
    Some(count)
}
