//! Where in a packet its reader is, and how much of it there was on the wire.

use super::end::End;

/// The rest of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Bytes of the rest on the wire, of which not all need be captured.
    wire: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], wire: u32) -> Self {
        Self { bytes, wire }
    }

    /// The next header of a fixed length, which is passed.
    #[inline]
    pub(super) fn header<const N: usize>(&mut self) -> Result<&'a [u8; N], End> {
        let header = self.peek::<N>()?;
        self.pass(N)?;
        Ok(header)
    }

    /// The same without passing it.
    #[inline]
    pub(super) fn peek<const N: usize>(&self) -> Result<&'a [u8; N], End> {
        self.bytes.first_chunk::<N>().ok_or_else(|| self.short(N))
    }

    /// So many bytes, which are passed.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], End> {
        let taken = self.bytes.get(..count).ok_or_else(|| self.short(count))?;
        self.pass(count)?;
        Ok(taken)
    }

    #[inline]
    pub(super) fn pass(&mut self, count: usize) -> Result<(), End> {
        self.bytes = self.bytes.get(count..).ok_or_else(|| self.short(count))?;
        self.wire = self.wire.saturating_sub(count as u32);
        Ok(())
    }

    /// Ends the packet after so many bytes, as its header has it: what comes after is padding.
    #[inline]
    pub(super) fn end_after(&mut self, count: u32) {
        self.wire = self.wire.min(count);
        self.bytes = self.bytes.get(..count as usize).unwrap_or(self.bytes);
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn wire(&self) -> u32 {
        self.wire
    }

    /// Why so many bytes are not there: they were not captured, or never were.
    #[cold]
    fn short(&self, count: usize) -> End {
        match self.wire as usize >= count {
            true => End::Cut,
            false => End::Malformed,
        }
    }
}
