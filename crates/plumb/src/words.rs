//! Options whose values are the words of a vocabulary.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plumb_model::vocabulary::Vocabulary;

/// Any of its words. Where documents have `_`, options have `-`.
pub(crate) fn any<V: Vocabulary + Send + Sync>() -> impl TypedValueParser<Value = V> {
    parser(|_| true)
}

/// Some of its words.
pub(crate) fn some<V: Vocabulary + Send + Sync>(
    allowed: &'static [V],
) -> impl TypedValueParser<Value = V> {
    parser(|variant| allowed.contains(&variant))
}

fn parser<V: Vocabulary + Send + Sync>(
    allows: impl Fn(V) -> bool,
) -> impl TypedValueParser<Value = V> {
    let words = V::WORDS.iter().filter(|(variant, _)| allows(*variant));
    let values =
        words.map(|(variant, word)| PossibleValue::new(option_of(word)).help(variant.meaning()));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).try_map(|given| {
        let mut variants = V::WORDS.iter();
        let variant = variants.find(|(_, word)| option_of(word) == given);
        variant.map(|(variant, _)| *variant).ok_or("unknown word")
    })
}

fn option_of(word: &str) -> String {
    word.replace('_', "-")
}
