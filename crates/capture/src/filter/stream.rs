//! Words that are read one after the other.

use super::error::FilterError;
use super::words::{Word, words};

/// The words of a filter, and how far they were read.
pub(super) struct Stream<'t> {
    words: Vec<Word<'t>>,
    next: usize,
    bytes: usize,
}

impl<'t> Stream<'t> {
    pub(super) fn of(text: &'t str) -> Result<Self, FilterError> {
        Ok(Self {
            words: words(text)?,
            next: 0,
            bytes: text.len(),
        })
    }

    /// One word, which was read before it was known what it is.
    pub(super) fn single(word: Word<'t>) -> Self {
        Self {
            words: vec![word],
            next: 0,
            bytes: word.at.saturating_add(word.text.len()),
        }
    }

    /// The word so many places on, if there is one.
    pub(super) fn ahead(&self, places: usize) -> Option<Word<'t>> {
        self.words.get(self.next.saturating_add(places)).copied()
    }

    /// The text of the next word; empty at the end, and for a word behind a backslash, which is none of the language.
    pub(super) fn peek(&self) -> &'t str {
        self.text_ahead(0)
    }

    pub(super) fn text_ahead(&self, places: usize) -> &'t str {
        let word = self.ahead(places).filter(|word| !word.escaped);
        word.map_or("", |word| word.text)
    }

    /// Where the next word begins, or the text ends.
    pub(super) fn at(&self) -> usize {
        self.ahead(0).map_or(self.bytes, |word| word.at)
    }

    /// Moves to the next word.
    pub(super) fn pass(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    /// Moves to the next word if the current one is `text`, and returns whether it was.
    pub(super) fn accept(&mut self, text: &str) -> bool {
        let found = self.peek() == text;
        self.next += usize::from(found);
        found
    }

    /// Takes a word that must be there.
    pub(super) fn take(&mut self, accepted: &'static str) -> Result<Word<'t>, FilterError> {
        let word = self.ahead(0).ok_or_else(|| self.unexpected(accepted))?;
        self.pass();
        Ok(word)
    }

    /// That the next word is none of what is accepted.
    pub(super) fn unexpected(&self, accepted: &'static str) -> FilterError {
        match self.ahead(0) {
            Some(word) => unexpected(word, accepted),
            None => FilterError::Ended {
                at: self.bytes,
                accepted,
            },
        }
    }
}

/// That a word is none of what is accepted.
pub(super) fn unexpected(word: Word<'_>, accepted: &'static str) -> FilterError {
    FilterError::Unexpected {
        word: word.text.to_owned(),
        at: word.at,
        accepted,
    }
}
