//! Identifications of IPv4, where a host counts the packets of a connection with them, as Linux does (`inet_id`): what was
//! sent later has the larger one, which distinguishes a packet that was overtaken from one that was retransmitted.

/// New segments in a row whose identifications go up, after which they are taken to count packets.
const ENOUGH: u8 = 8;

/// Packets between two new segments at most: acknowledgements and retransmissions count too.
const MOST_BETWEEN: u16 = 1024;

/// The identifications of what a side sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Idents {
    /// Identification of the segment with the highest sequence number.
    highest: u16,
    /// How many new segments in a row went up.
    rises: u8,
}

impl Idents {
    /// Notes the identification of a segment that is new.
    #[inline]
    pub(super) fn sent(&mut self, ident: u16) {
        self.rises = match ident.wrapping_sub(self.highest) {
            1..=MOST_BETWEEN => self.rises.saturating_add(1),
            _ => 0,
        };
        self.highest = ident;
    }

    /// Whether a packet left before another one did; `None` where identifications do not show it.
    pub(super) fn precedes(self, ident: u16, other: u16) -> Option<bool> {
        let before = (1..=MOST_BETWEEN).contains(&other.wrapping_sub(ident));
        (self.rises >= ENOUGH).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_tells_order_and_what_does_not_tells_nothing() {
        let mut counted = Idents::default();
        let mut constant = Idents::default();
        for number in 0..20_u16 {
            counted.sent(65_530_u16.wrapping_add(number));
            constant.sent(0);
        }
        assert_eq!(counted.precedes(10, 12), Some(true));
        assert_eq!(counted.precedes(14, 12), Some(false));
        assert_eq!(constant.precedes(0, 0), None);
        counted.sent(40_000);
        assert_eq!(counted.precedes(39_999, 40_000), None);
    }
}
