//! Sequence numbers: what was lost on the path to the collector.

/// A gap of more than so many is taken for an exporter that began anew: at 30 flows a datagram, half a million datagrams.
const MOST_LOST: u32 = 1 << 24;

/// What comes so many messages late is taken for reordered; for an exporter that began anew, what is further back.
const MOST_LATE: u32 = 32;

/// Where a sequence is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    next: Option<u32>,
}

/// What a number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The one that was expected, or the first one.
    Next,
    /// So many are missing before it.
    Lost(u32),
    /// It was counted as lost when a later one came.
    Late,
    /// The exporter counts from elsewhere.
    Anew,
}

impl Sequence {
    /// Sees the number of a message that counts for so many; `None` where that is not known, which leaves the next one open.
    pub(super) fn see(&mut self, number: u32, counts: Option<u32>) -> Step {
        let step = match self.next {
            None => Step::Next,
            Some(next) => {
                let back = next.wrapping_sub(number);
                match number.wrapping_sub(next) {
                    0 => Step::Next,
                    lost if lost <= MOST_LOST => Step::Lost(lost),
                    _ if number > 0 && back <= MOST_LATE * counts.unwrap_or(1).clamp(1, 64) => {
                        Step::Late
                    }
                    _ => Step::Anew,
                }
            }
        };
        if step != Step::Late {
            self.next = counts.map(|counts| number.wrapping_add(counts));
        }
        step
    }

    /// Forgets where it was, because the exporter began anew.
    pub(super) fn forget(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_lost_and_what_is_behind_is_late_or_anew() {
        let mut sequence = Sequence::default();
        for (number, counts, step) in [
            (100, Some(1), Step::Next),
            (101, Some(1), Step::Next),
            (105, Some(1), Step::Lost(3)),
            (103, Some(1), Step::Late),
            (106, Some(1), Step::Next),
            (0, Some(1), Step::Anew),
            (1, None, Step::Next),
            (77, Some(10), Step::Next),
            (87, Some(10), Step::Next),
            (u32::MAX - 9, Some(10), Step::Late),
            (3_000_000_000, Some(10), Step::Anew),
            (3_000_000_030, Some(10), Step::Lost(20)),
        ] {
            assert_eq!(sequence.see(number, counts), step, "{number}");
        }
    }

    #[test]
    fn a_sequence_wraps() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.see(u32::MAX, Some(30)), Step::Next);
        assert_eq!(sequence.see(29, Some(30)), Step::Next);
        assert_eq!(sequence.see(60, Some(30)), Step::Lost(1));
    }
}
