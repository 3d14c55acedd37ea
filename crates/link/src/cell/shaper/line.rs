//! What a line is to the queue before it: how long each packet keeps it.

use plumb_model::units::BitRate;

use crate::time::Time;

/// A line that sends one packet after the other. Times given to the methods never go back.
pub(crate) trait Line: Send {
    /// The settings that it reads its own from.
    type Spec;

    /// The rate at `now`, by which limits of time are counted; at least 1 bit/s.
    fn rate(&self, now: Time) -> BitRate;

    /// Starts a packet of this many bytes, framing included, on the free line. Returns when its
    /// last bit leaves.
    fn start(&mut self, now: Time, wire_bytes: u64) -> Time;

    /// The last bit of the packet left at `at`, when [`Self::start`] or [`Self::reconfigure`]
    /// said it would.
    fn finish(&mut self, at: Time);

    /// Nothing follows the packet that has just left.
    fn rest(&mut self);

    /// How many bytes of the packet on the line have left by `now`.
    fn sent_bytes(&self, now: Time) -> u64;

    /// When it would be through with the packet on the line and this many bytes more, at the
    /// rate that it has at `now`.
    fn clears(&self, now: Time, more_bytes: u64) -> Time;

    /// How many bytes of a large segment pass as one; zero when each packet must pass alone.
    fn whole_bytes(&self) -> u64;

    /// Takes new settings at `now`; returns when the packet on the line leaves, if there is one.
    fn reconfigure(&mut self, now: Time, spec: &Self::Spec) -> Option<Time>;
}
