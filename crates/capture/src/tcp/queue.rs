//! A queue of which the first entry takes no memory of its own: most connections of a busy server are idle.

use std::collections::VecDeque;

/// Room of its own that an empty queue keeps at most, in entries; a burst needed the rest.
const MOST_SPARE: usize = 256;
const SPARE: usize = 16;

#[derive(Debug, Clone, Default)]
pub(super) enum Queue<T> {
    #[default]
    None,
    One(T),
    Several(VecDeque<T>),
}

impl<T: Copy> Queue<T> {
    fn slices(&self) -> (&[T], &[T]) {
        match self {
            Self::None => (&[], &[]),
            Self::One(only) => (std::slice::from_ref(only), &[]),
            Self::Several(queue) => queue.as_slices(),
        }
    }

    /// From the first that came to the last.
    #[inline]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (first, rest) = self.slices();
        first.iter().chain(rest)
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::One(only) => Some(only),
            Self::Several(queue) => queue.front(),
        }
    }

    #[inline]
    pub(super) fn back(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::One(only) => Some(only),
            Self::Several(queue) => queue.back(),
        }
    }

    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::None => None,
            Self::One(only) => Some(only),
            Self::Several(queue) => queue.back_mut(),
        }
    }

    /// Adds one at the end; where there are as many as `most`, the first goes.
    #[inline]
    pub(super) fn push(&mut self, value: T, most: usize) {
        match self {
            Self::None => *self = Self::One(value),
            Self::One(first) => *self = Self::Several(VecDeque::from([*first, value])),
            Self::Several(queue) => {
                if queue.len() >= most {
                    queue.pop_front();
                }
                queue.push_back(value);
            }
        }
    }

    /// Takes the first away if it is so.
    #[inline]
    pub(super) fn take_if(&mut self, is_so: impl FnOnce(&T) -> bool) -> Option<T> {
        match self {
            Self::None => None,
            Self::One(only) => {
                let only = Some(*only).filter(|only| is_so(only))?;
                *self = Self::None;
                Some(only)
            }
            Self::Several(queue) => {
                queue.front().filter(|first| is_so(first))?;
                let first = queue.pop_front();
                if queue.is_empty() && queue.capacity() > MOST_SPARE {
                    queue.shrink_to(SPARE);
                }
                first
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_comes_first_goes_first() {
        let mut queue = Queue::default();
        for value in 0..5_u64 {
            queue.push(value, 3);
        }
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((queue.front(), queue.back()), (Some(&2), Some(&4)));
        assert_eq!(queue.take_if(|first| *first > 2), None);
        let all: Vec<_> = std::iter::from_fn(|| queue.take_if(|_| true)).collect();
        assert_eq!(all, [2, 3, 4]);
        queue.push(9, 3);
        *queue.back_mut().unwrap() += 1;
        assert_eq!(queue.front(), Some(&10));
    }

    #[test]
    fn one_entry_takes_no_memory_of_its_own() {
        assert!(size_of::<Queue<(u64, u32)>>() <= size_of::<VecDeque<u64>>());
    }
}
