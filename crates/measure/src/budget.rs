//! How much a check may transfer, shared out over its load phases.

use plumb_model::units::ByteCount;

/// What a check may transfer by default: a full phase of fifteen seconds each way on a line of 250 Mbit/s, and a tenth
/// of a small mobile plan.
pub const DEFAULT: ByteCount = ByteCount::from_bytes(2_000_000_000);

/// Payload left for the phases to come. What a phase does not use goes to the later ones.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget for a whole check.
    pub fn new(total: ByteCount) -> Self {
        Self {
            left: total.bytes(),
        }
    }

    /// What a phase may use that weighs `weight`, when the phases after it weigh `later`.
    pub fn share(self, weight: u64, later: u64) -> u64 {
        let parts = weight.saturating_add(later).max(1);
        u64::try_from(u128::from(self.left) * u128::from(weight) / u128::from(parts))
            .unwrap_or(self.left)
    }

    pub fn left(self) -> u64 {
        self.left
    }

    pub fn grant(&mut self, bytes: ByteCount) {
        self.left = self.left.saturating_add(bytes.bytes());
    }

    /// Takes what a phase used.
    pub fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_goes_on() {
        let mut budget = Budget::new(DEFAULT);
        // Up, down, and both at once, which weighs as much as the two.
        assert_eq!(budget.share(1, 3), 500_000_000);
        budget.spend(36_000_000);
        assert_eq!(budget.share(1, 2), 654_666_666);
        budget.spend(654_666_666);
        assert_eq!(budget.share(2, 0), 1_309_333_334);
    }

    #[test]
    fn nothing_is_left_of_nothing() {
        let mut budget = Budget::new(ByteCount::from_bytes(10));
        budget.spend(100);
        assert_eq!(budget.share(1, 0), 0);
    }
}
