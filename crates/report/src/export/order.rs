//! The fields of a hop that mtr shows, and the letters that choose them.

use std::str::FromStr;

/// What mtr shows of a hop (mtr(8), `--order`); times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Loss,
    Dropped,
    Received,
    Sent,
    Newest,
    Best,
    Average,
    Worst,
    Deviation,
    GeometricMean,
    Jitter,
    JitterMean,
    JitterWorst,
    JitterInterarrival,
    /// A gap between fields.
    Space,
}

/// Each field with its letter and its head.
const FIELDS: [(char, &str, Field); 15] = [
    ('L', "Loss%", Field::Loss),
    ('D', "Drop", Field::Dropped),
    ('R', "Rcv", Field::Received),
    ('S', "Snt", Field::Sent),
    ('N', "Last", Field::Newest),
    ('B', "Best", Field::Best),
    ('A', "Avg", Field::Average),
    ('W', "Wrst", Field::Worst),
    ('V', "StDev", Field::Deviation),
    ('G', "Gmean", Field::GeometricMean),
    ('J', "Jttr", Field::Jitter),
    ('M', "Javg", Field::JitterMean),
    ('X', "Jmax", Field::JitterWorst),
    ('I', "Jint", Field::JitterInterarrival),
    (' ', " ", Field::Space),
];

/// Fields at most: each twice and more.
const MAX_FIELDS: usize = 32;

/// Which fields, in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order(Vec<(&'static str, Field)>);

/// No order of fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no order of fields: write up to {MAX_FIELDS} letters of L loss, D dropped, R received, S sent, N newest, \
     B best, A average, W worst, V deviation, G geometric mean, J jitter, M its mean, X its worst, I interarrival \
     jitter, such as '{usual}'",
    usual = Order::USUAL
)]
pub struct OrderError(String);

impl Order {
    /// mtr's, unless another is asked for.
    pub const USUAL: &str = "LS NABWV";

    /// Each field with its head.
    pub(super) fn fields(&self) -> &[(&'static str, Field)] {
        &self.0
    }
}

pub(super) fn of_letter(letter: char) -> Option<(&'static str, Field)> {
    let found = FIELDS.iter().find(|(known, ..)| *known == letter)?;
    Some((found.1, found.2))
}

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fields: Option<Vec<_>> = text.chars().map(of_letter).collect();
        fields
            .filter(|fields| (1..=MAX_FIELDS).contains(&fields.len()))
            .map(Self)
            .ok_or_else(|| OrderError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_order_is_letters_of_fields() {
        let names = |text: &str| -> Vec<_> {
            let order: Order = text.parse().unwrap();
            order.0.iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(
            names("JMXI D"),
            ["Jttr", "Javg", "Jmax", "Jint", " ", "Drop"]
        );
        assert_eq!(
            names(Order::USUAL),
            ["Loss%", "Snt", " ", "Last", "Avg", "Best", "Wrst", "StDev"]
        );
        for wrong in ["", "l", "LSQ", "é", &"L".repeat(33)] {
            assert!(wrong.parse::<Order>().is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_order_or_refused(text in ".{0,40}") {
            let parsed = text.parse::<Order>();
            proptest::prop_assert_eq!(
                parsed.is_ok(),
                (1..=MAX_FIELDS).contains(&text.chars().count())
                    && text.chars().all(|c| "LDRSNBAWVGJMXI ".contains(c))
            );
        }
    }
}
