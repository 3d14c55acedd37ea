//! Conditions of a word and a number.

use super::error::FilterError;
use super::number::number;
use super::primitive::within;
use super::stream::Stream;
use super::syntax::{Arithmetic, Comparison, Condition, Relation};

/// Tags have 12 bits for their number (IEEE 802.1Q).
const LARGEST_VLAN: u32 = 4095;

/// `vlan`, with a number or without.
pub(super) fn vlan(stream: &mut Stream<'_>) -> Result<Condition, FilterError> {
    let at = stream.at();
    stream.pass();
    let mut id = None;
    if let Some(word) = stream.ahead(0).filter(|word| number(word.text).is_some()) {
        id = Some(within(word, word.text, LARGEST_VLAN)?);
        stream.pass();
    }
    Ok(Condition::Vlan { id, at })
}

/// `greater` and `less`, which both take the number itself in.
pub(super) fn length(
    stream: &mut Stream<'_>,
    comparison: Comparison,
) -> Result<Condition, FilterError> {
    stream.pass();
    let word = stream.take("a length in bytes")?;
    let right = Arithmetic::Number(within(word, word.text, u32::MAX)?);
    Ok(Condition::Relation(Box::new(Relation {
        left: Arithmetic::Length,
        comparison,
        right,
    })))
}
