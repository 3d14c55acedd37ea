//! Sorting what is always short.

use std::cmp::Ordering;

/// Sorts a list of at most some hundred elements, and keeps the order of equals. By insertion: the library's sort, which
/// long lists need, is compiled into 5 kB for each type of element, a tenth of a megabyte over all such lists.
pub fn sort_few<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    for end in 1..list.len() {
        let mut at = end;
        while let Some([.., before, this]) = list.get(..=at)
            && compare(this, before).is_lt()
        {
            list.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_library_does(list in proptest::collection::vec((0..9_u8, any::<u8>()), 0..60)) {
            let mut few = list.clone();
            sort_few(&mut few, |a, b| a.0.cmp(&b.0));
            let mut sorted = list;
            sorted.sort_by_key(|element| element.0);
            prop_assert_eq!(few, sorted);
        }
    }
}
