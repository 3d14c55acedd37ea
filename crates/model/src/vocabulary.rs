//! One table of words for each vocabulary: the name in documents, on the command line and in text, and the
//! schema's, all come from where the variants are declared.

use std::fmt;

/// An enumeration whose every variant has one word.
pub trait Vocabulary: Copy + Eq + Sized + 'static {
    /// Every variant with its word, in the order of declaration.
    const WORDS: &'static [(Self, &'static str)];

    /// What each means, in the same order: a sentence, for help.
    const MEANINGS: &'static [&'static str];

    /// What it means, as one line.
    fn meaning(self) -> &'static str {
        let mut all = Self::WORDS.iter().zip(Self::MEANINGS);
        let meaning =
            all.find_map(|((variant, _), meaning)| (*variant == self).then_some(*meaning));
        meaning.unwrap_or_default().trim().trim_end_matches('.')
    }

    /// The variant of that word.
    fn of_word(word: &str) -> Option<Self> {
        let mut words = Self::WORDS.iter();
        words.find_map(|(variant, known)| (*known == word).then_some(*variant))
    }
}

/// A word that a vocabulary does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    known: Vec<&'static str>,
}

impl UnknownWord {
    /// For the vocabulary `V`.
    pub fn of<V: Vocabulary>() -> Self {
        Self {
            known: V::WORDS.iter().map(|(_, word)| *word).collect(),
        }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown word; known are {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// Declares an enumeration with its words: `pub enum Direction { Down = "down", … }`; with
/// `pub enum Ended default Complete {` it has a default, with `Down = "down" as "download"` other words in text.
#[macro_export]
macro_rules! vocabulary {
    ($(#[$meta:meta])* $vis:vis enum $name:ident $(default $default:ident)? {
        $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal $(as $shown:literal)?),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        $vis enum $name {
            $($(#[doc = $meaning])+ #[serde(rename = $word)] $variant),+
        }

        $(impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        })?

        impl $crate::vocabulary::Vocabulary for $name {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$variant, $word)),+];
            const MEANINGS: &'static [&'static str] = &[$(concat!($($meaning),+)),+];
        }

        impl $name {
            /// The word in documents, options and text.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The words in text, for people.
            #[allow(dead_code)]
            $vis const fn shown(self) -> &'static str {
                match self {
                    $($(Self::$variant => $shown,)?)+
                    #[allow(unreachable_patterns)]
                    word => word.name(),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::vocabulary::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                use $crate::vocabulary::{UnknownWord, Vocabulary};
                Self::of_word(word).ok_or_else(UnknownWord::of::<Self>)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Vocabulary as _;

    vocabulary! {
        /// For the test.
        enum Season {
            /// June to August.
            Summer = "summer",
            /// The other one.
            ColdHalf = "cold-half",
        }
    }

    #[test]
    fn every_form_of_a_word_comes_from_its_declaration() {
        for (season, word) in Season::WORDS {
            assert_eq!((season.name(), season.to_string().as_str()), (*word, *word));
            assert_eq!(word.parse(), Ok(*season));
            assert_eq!(serde_json::to_value(season).unwrap(), *word);
            assert_eq!(
                serde_json::from_value::<Season>((*word).into()).unwrap(),
                *season
            );
        }
        let unknown = "spring".parse::<Season>().unwrap_err().to_string();
        assert_eq!(unknown, "unknown word; known are summer, cold-half");
    }

    #[cfg(feature = "schema")]
    #[test]
    fn so_does_the_schema() {
        let schema = schemars::schema_for!(Season).to_value().to_string();
        assert!(schema.contains("cold-half"), "{schema}");
    }
}
