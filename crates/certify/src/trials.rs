//! Which trials a set has, and with which seeds.

use serde::{Deserialize, Serialize};

use crate::library::{Change, Library, Role, Set};
use crate::seed;

/// One line, to be checked once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) set: Set,
    pub(crate) role: Role,
    /// Names of base line and changes.
    pub(crate) base: String,
    pub(crate) changes: Vec<String>,
    /// Which of those with that change.
    pub(crate) number: usize,
    pub(crate) seed: u64,
    /// Where the graded parameter is in its range, 0 to 1.
    pub(crate) severity: f64,
}

impl Trial {
    /// Names it in its set: a name of files.
    pub(crate) fn id(&self) -> String {
        format!("{}.{}.{}", self.changes.join("+"), self.base, self.number)
    }
}

/// How many trials there are of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    /// Of each fault that a cause describes.
    pub(crate) faults: usize,
    /// Of each that no cause describes.
    pub(crate) unknown: usize,
    /// Of each false twin.
    pub(crate) twins: usize,
    /// Of all healthy lines, and of all pairs.
    pub(crate) healthy: usize,
    pub(crate) pairs: usize,
}

/// Steps of this share of a range are nowhere near each other, however many there are (the golden ratio, by which
/// Kronecker's sequence is the most even).
const STEP: f64 = 0.618_033_988_749_895;

/// All trials of a set, the first of each change before the second of any. `key` decides their seeds.
pub(crate) fn trials(library: &Library, set: Set, numbers: Numbers, key: &str) -> Vec<Trial> {
    let mut all = Vec::new();
    let healthy = library.of_role(Role::Healthy, set).count().max(1);
    for role in [Role::Fault, Role::Unknown, Role::Twin, Role::Healthy] {
        for (name, change) in library.of_role(role, set) {
            let number = match role {
                Role::Fault => numbers.faults,
                Role::Unknown => numbers.unknown,
                Role::Twin => numbers.twins,
                _ => numbers.healthy.div_ceil(healthy),
            };
            let changes = [name.to_owned()];
            all.extend(of_change(
                library,
                set,
                role,
                &changes,
                &[change],
                number,
                key,
            ));
        }
    }
    let pairs = library.pairs.len().max(1);
    for pair in &library.pairs {
        let changes: Vec<&Change> = pair
            .iter()
            .filter_map(|name| Some(&library.changes.get(name)?.1))
            .collect();
        let number = numbers.pairs.div_ceil(pairs);
        all.extend(of_change(
            library,
            set,
            Role::Pair,
            pair,
            &changes,
            number,
            key,
        ));
    }
    all.sort_by_key(|trial| trial.number);
    all
}

fn of_change(
    library: &Library,
    set: Set,
    role: Role,
    names: &[String],
    changes: &[&Change],
    number: usize,
    key: &str,
) -> Vec<Trial> {
    let bases = library.bases_for(set, changes);
    let joined = names.join("+");
    let first = seed::share(&[set.name(), key, &joined, "severity"]);
    let offset = seed::of(&[&joined, "base"]) as usize;
    let trials = (0..number).filter_map(|number| {
        let base = *bases.get((offset.wrapping_add(number)) % bases.len().max(1))?;
        let trial = number.to_string();
        Some(Trial {
            set,
            role,
            base: base.to_owned(),
            changes: names.to_vec(),
            number,
            seed: seed::of(&[set.name(), key, &joined, base, &trial]),
            severity: (first + number as f64 * STEP).fract(),
        })
    });
    trials.collect()
}

impl Library {
    fn of_role(&self, role: Role, set: Set) -> impl Iterator<Item = (&str, &Change)> {
        let all = self.changes.iter();
        all.filter(move |(_, (of, change))| {
            *of == role && (change.sets.is_empty() || change.sets.contains(&set))
        })
        .map(|(name, (_, change))| (name.as_str(), change))
    }

    /// The base lines of a set on which all of the changes make sense.
    pub(crate) fn bases_for(&self, set: Set, changes: &[&Change]) -> Vec<&str> {
        let fits = |base: &Change| changes.iter().all(|change| change.on.contains(&base.kind));
        let all = self.bases.iter();
        all.filter(|(_, (of, base))| *of == set && fits(base))
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::collections::BTreeSet;

    use super::*;
    use crate::library::folder;

    const NUMBERS: Numbers = Numbers {
        faults: 12,
        unknown: 6,
        twins: 4,
        healthy: 100,
        pairs: 30,
    };

    #[test]
    fn sets_have_no_line_and_no_seed_in_common() {
        let library = Library::read(&folder()).unwrap();
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        let mut bases: BTreeSet<(String, &str)> = BTreeSet::new();
        for set in [Set::Fit, Set::Choose, Set::Certify] {
            for trial in trials(&library, set, NUMBERS, "key") {
                assert!(seen.insert(trial.seed), "{}", trial.id());
                bases.insert((trial.base, set.name()));
            }
        }
        let names: BTreeSet<&String> = bases.iter().map(|(base, _)| base).collect();
        assert_eq!(names.len(), bases.len(), "a base line is in two sets");
    }

    #[test]
    fn trials_of_a_fault_are_spread_over_lines_and_severities() {
        let library = Library::read(&folder()).unwrap();
        let all = trials(&library, Set::Fit, NUMBERS, "");
        let of_one: Vec<&Trial> = all
            .iter()
            .filter(|t| t.changes == ["loss-random"])
            .collect();
        assert_eq!(of_one.len(), NUMBERS.faults);
        let bases: BTreeSet<&str> = of_one.iter().map(|trial| trial.base.as_str()).collect();
        assert!(bases.len() >= 3, "{bases:?}");
        let mut severities: Vec<f64> = of_one.iter().map(|trial| trial.severity).collect();
        severities.sort_by(f64::total_cmp);
        let widest = severities.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(widest.fold(0.0, f64::max) < 0.2, "{severities:?}");
        // The first of each comes before the second of any.
        assert!(all.is_sorted_by_key(|trial| trial.number));
    }

    #[test]
    fn another_key_gives_other_seeds() {
        let library = Library::read(&folder()).unwrap();
        let [one, other] = ["a", "b"].map(|key| trials(&library, Set::Fit, NUMBERS, key));
        assert!(
            one.iter()
                .zip(&other)
                .all(|(one, other)| one.seed != other.seed)
        );
    }
}
