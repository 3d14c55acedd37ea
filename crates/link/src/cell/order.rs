//! Whether packets leave in the order in which they came (RFC 4737 section 3.3).

/// Numbers packets, and knows one that is overtaken.
#[derive(Debug, Default)]
pub(crate) struct Order {
    arrived: u64,
    /// The number that leaves next if nothing overtakes.
    next_expected: u64,
}

impl Order {
    /// The number of a packet that comes in.
    pub(crate) fn arrive(&mut self) -> u64 {
        self.arrived += 1;
        self.arrived - 1
    }

    /// Whether the packet of this number, which leaves now, is reordered: one that came later
    /// has left before it.
    pub(crate) fn leave(&mut self, number: u64) -> bool {
        let is_reordered = number < self.next_expected;
        self.next_expected = self.next_expected.max(number + 1);
        is_reordered
    }
}
