//! How evenly flows share a path: Jain's fairness index (R. Jain, D. Chiu, W. Hawe, DEC-TR-301,
//! 1984; RFC 5166, section 2.3.1).

/// (Σx)² / (n·Σx²): 1 when all of them are equal, 1/n when one has everything; k of n equal and the others nothing give
/// k/n. Absent where nothing was shared, or there were no sharers.
pub fn jain_index(rates: &[f64]) -> Option<f64> {
    let largest = rates.iter().copied().fold(0.0, f64::max);
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    // Of the largest, so that no square overflows or vanishes.
    let shares = rates.iter().map(|rate| rate / largest);
    let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), x: f64| {
        (sum + x, squares + x * x)
    });
    Some(sum * sum / (rates.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(rates: &[f64], expected: f64) {
        let index = jain_index(rates);
        assert!(
            index.is_some_and(|index| (index - expected).abs() < 1e-12),
            "{rates:?}: {index:?}, not {expected}"
        );
    }

    #[test]
    fn by_hand() {
        near(&[5.0], 1.0);
        near(&[2.0, 2.0, 2.0], 1.0);
        near(&[1.0, 0.0, 0.0, 0.0], 0.25);
        near(&[7.0, 7.0, 7.0, 0.0, 0.0], 0.6);
        // (1 + 3)² / (2·(1 + 9)).
        near(&[1.0, 3.0], 0.8);
        // (23/15)² / (3·259/225).
        near(&[1.0, 1.0 / 3.0, 0.2], 529.0 / 777.0);
        near(&[1e300, 1e300], 1.0);
        near(&[1e-300, 1e-300], 1.0);
    }

    #[test]
    fn nothing_is_not_shared() {
        for rates in [
            &[] as &[f64],
            &[0.0, 0.0],
            &[f64::NAN],
            &[f64::INFINITY, 1.0],
        ] {
            assert_eq!(jain_index(rates), None, "{rates:?}");
        }
    }

    proptest! {
        #[test]
        fn between_one_of_n_and_one(rates in proptest::collection::vec(0.0..1e12_f64, 1..40)) {
            if let Some(index) = jain_index(&rates) {
                prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / rates.len() as f64 - 1e-9);
            }
        }
    }
}
