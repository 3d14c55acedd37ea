//! Where frames come from: files, and interfaces while their traffic passes.

use crate::read::{Frame, ReadError, Reader, Told};

/// What comes next of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A packet, with when it was captured, in nanoseconds since 1970.
    Packet(u64),
    /// No packet is at hand: the moment to look at other things.
    Nothing,
    /// There are no more.
    End,
}

/// A source of frames.
pub trait Source {
    /// Whether it ends of itself when the user has had enough, with what is left to take in.
    const SEES_STOP: bool = false;

    /// Moves to the next packet. A source whose traffic passes now waits for a moment.
    ///
    /// # Errors
    /// When nothing more can be read. What was read before stays good.
    fn advance(&mut self) -> Result<Next, ReadError>;

    /// The packet that [`Self::advance`] went on to.
    fn frame(&self) -> Frame<'_>;

    /// What it says beside its packets, in the part read so far.
    fn told(&mut self) -> Told;

    /// What kind of source it is, in a word.
    fn format(&self) -> &'static str;
}

impl Source for Reader {
    #[inline]
    fn advance(&mut self) -> Result<Next, ReadError> {
        let next = Reader::advance(self)?;
        Ok(next.map_or(Next::End, Next::Packet))
    }

    #[inline]
    fn frame(&self) -> Frame<'_> {
        Reader::frame(self)
    }

    fn told(&mut self) -> Told {
        Reader::told(self)
    }

    fn format(&self) -> &'static str {
        Reader::format(self)
    }
}
