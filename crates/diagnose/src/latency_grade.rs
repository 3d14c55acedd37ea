//! The grade of latency under load of a phase.

use plumb_model::grade::Grade;

/// Share of probes that may be lost and the 95th percentile of all of them is still known, whatever those
/// would have taken.
const GRADED_UP_TO_LOSS: f64 = 0.05;

/// The mark of a phase whose answered probes took so much longer; none where it could be a worse one, had
/// those that were lost been answered.
pub fn grade(increase_p95_s: f64, loss_ratio: f64) -> Option<Grade> {
    let grade = Grade::of_increase(increase_p95_s);
    (loss_ratio <= GRADED_UP_TO_LOSS || grade == Grade::F).then_some(grade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_through_of_a_path_that_loses_much_has_no_good_mark() {
        assert_eq!(grade(0.002, 0.05), Some(Grade::APlus));
        assert_eq!(grade(0.002, 0.46), None);
        assert_eq!(grade(0.1, 0.06), None);
        // No worse one could come of those that were lost.
        assert_eq!(grade(0.7, 0.46), Some(Grade::F));
    }
}
