//! One exporter, by its messages: a state machine that is shown each datagram that comes, and hands on the flows in it.

use super::bytes::Bytes;
use super::record::FlowRecord;
use super::state::{Seen, State};
use super::{FlowExportError, ipfix, netflow5, netflow9, sflow};

/// What is known of one exporter: all that comes from one address.
#[derive(Debug, Default)]
pub struct Exporter(State);

impl Exporter {
    /// Reads a datagram that came at that time of day, ms since 1970, and hands each flow to `each`.
    ///
    /// # Errors
    /// When it is no message, or not a whole one: the flows before what is wrong were handed on.
    pub fn hear(
        &mut self,
        datagram: &[u8],
        now_ms: i64,
        mut each: impl FnMut(&FlowRecord),
    ) -> Result<(), FlowExportError> {
        let mut bytes = Bytes(datagram);
        let each = &mut each;
        let done = match bytes.u16() {
            Some(5) => netflow5::read(&mut self.0, bytes, now_ms, each),
            Some(9) => netflow9::read(&mut self.0, bytes, now_ms, each),
            Some(10) => ipfix::read(&mut self.0, bytes, now_ms, each),
            // The version of sFlow has 32 bits.
            Some(0) => match bytes.u16() {
                Some(5) => sflow::read(&mut self.0, bytes, now_ms, each),
                Some(other) => Err(FlowExportError::Version(other.into())),
                None => Err(FlowExportError::Header),
            },
            Some(other) => Err(FlowExportError::Version(other.into())),
            None => Err(FlowExportError::Header),
        };
        self.0.seen.malformed += u64::from(done.is_err());
        done
    }

    /// What was seen of it so far.
    pub fn seen(&self) -> &Seen {
        &self.0.seen
    }

    /// How many templates it has now.
    pub fn templates(&self) -> usize {
        self.0.templates.len()
    }

    /// How many sets of records wait for their template.
    pub fn waiting(&self) -> usize {
        self.0.held.len()
    }
}

#[cfg(test)]
mod tests;
