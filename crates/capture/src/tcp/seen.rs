//! The values that a field of the header took.

/// Values kept; a field that takes more changes all the time.
const MOST: usize = 8;

/// Different values of a byte, in the order of their coming.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Values {
    values: [u8; MOST],
    count: u8,
    last: u8,
}

impl Values {
    #[inline]
    pub(super) fn add(&mut self, value: u8) {
        if self.count > 0 && self.last == value {
            return;
        }
        self.last = value;
        let known = self
            .values
            .get(..usize::from(self.count))
            .unwrap_or_default();
        if known.contains(&value) {
            return;
        }
        if let Some(place) = self.values.get_mut(usize::from(self.count)) {
            *place = value;
            self.count += 1;
        }
    }

    pub(super) fn to_vec(self) -> Vec<u8> {
        self.values
            .into_iter()
            .take(usize::from(self.count))
            .collect()
    }
}
