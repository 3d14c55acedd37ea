//! Templates: what a record of data is made of, as NetFlow 9 and IPFIX announce it. As many are kept as a router has, and no more.

use std::collections::HashMap;

use super::bytes::Bytes;
use super::clock::Clocks;
use super::domain::DomainKey;
use super::element::{Element, Reading};

/// Templates of one exporter, and fields of all of them: a hundred times what routers have, in 250 kB.
const MOST_TEMPLATES: usize = 1024;
const MOST_FIELDS: usize = 16_384;

/// Fields of one template: all that IANA has registered are fewer.
pub(super) const MOST_FIELDS_OF_ONE: usize = 600;

/// A template that was not announced again for so long is forgotten: an exporter does that every ten minutes at least, and the
/// other end waits for three times (templateLifeTime, RFC 6728, section 4.5.2).
const LIFE_MS: i64 = 1_800_000;

/// How IPFIX marks a field whose records have its length (RFC 7011, section 7).
pub(super) const VARIABLE: u16 = 65_535;

/// A field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) element: Element,
    /// In bytes, or [`VARIABLE`].
    pub(super) length: u16,
}

/// What its records report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Flows,
    /// Of the exporter itself.
    Options,
}

/// What a record is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) of: Of,
    fields: Vec<Field>,
    /// The shortest that a record can be, in bytes; never zero.
    least_bytes: usize,
}

impl Template {
    /// A template of these fields; `None` where its records would be empty, or it has more than [`MOST_FIELDS_OF_ONE`].
    pub(super) fn new(of: Of, fields: Vec<Field>) -> Option<Self> {
        let least = |field: &Field| match field.length {
            VARIABLE => 1,
            fixed => usize::from(fixed),
        };
        let least_bytes = fields.iter().map(least).sum();
        let possible = least_bytes > 0 && fields.len() <= MOST_FIELDS_OF_ONE;
        possible.then_some(Self {
            of,
            fields,
            least_bytes,
        })
    }

    /// Reads the next record; `None` where what is left is no whole one: the padding of a set, or one that was cut.
    #[inline]
    pub(super) fn read(&self, bytes: &mut Bytes<'_>, clocks: Clocks) -> Option<Reading> {
        if bytes.len() < self.least_bytes {
            return None;
        }
        let mut reading = Reading::default();
        for field in &self.fields {
            let content = match field.length {
                VARIABLE => bytes.variable()?,
                fixed => bytes.take(usize::from(fixed))?,
            };
            reading.take(field.element, content, clocks);
        }
        Some(reading)
    }
}

/// A template that is kept.
#[derive(Debug)]
struct Kept {
    template: Template,
    announced_ms: i64,
    used_ms: i64,
}

/// The templates of one exporter, by their domains and numbers.
#[derive(Debug, Default)]
pub(super) struct Templates {
    kept: HashMap<(DomainKey, u16), Kept>,
    fields: usize,
}

/// What became of a template that was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    New,
    /// It is as it was.
    Again,
    /// Its number had another one before.
    Changed,
}

impl Templates {
    /// Keeps a template that was announced. Where there are too many, that goes which was not used for the longest time.
    pub(super) fn note(&mut self, key: (DomainKey, u16), template: Template, now_ms: i64) -> Noted {
        if let Some(before) = self.kept.get_mut(&key)
            && before.template == template
        {
            before.announced_ms = now_ms;
            return Noted::Again;
        }
        let noted = match self.remove(&key) {
            true => Noted::Changed,
            false => Noted::New,
        };
        self.fields += template.fields.len();
        let kept = Kept {
            template,
            announced_ms: now_ms,
            used_ms: now_ms,
        };
        self.kept.insert(key, kept);
        while self.kept.len() > MOST_TEMPLATES || self.fields > MOST_FIELDS {
            let others = self.kept.iter().filter(|(other, _)| **other != key);
            let oldest = others.min_by_key(|(key, kept)| (kept.used_ms, **key));
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            self.remove(&oldest);
        }
        noted
    }

    /// The template of that number, unless it was not announced for too long.
    pub(super) fn find(&mut self, key: &(DomainKey, u16), now_ms: i64) -> Option<&Template> {
        let kept = self.kept.get_mut(key)?;
        // A clock that was set back makes it no older.
        if now_ms.saturating_sub(kept.announced_ms) > LIFE_MS {
            self.remove(key);
            return None;
        }
        kept.used_ms = now_ms;
        self.kept.get(key).map(|kept| &kept.template)
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, key: &(DomainKey, u16)) -> bool {
        match self.kept.remove(key) {
            Some(kept) => {
                self.fields -= kept.template.fields.len();
                true
            }
            None => false,
        }
    }

    /// Removes the templates of a domain: all, or all of one kind.
    pub(super) fn remove_of(&mut self, domain: DomainKey, of: Option<Of>) {
        let goes = |key: &(DomainKey, u16), kept: &Kept| {
            key.0 == domain && of.is_none_or(|of| of == kept.template.of)
        };
        let gone = self.kept.iter().filter(|(key, kept)| goes(key, kept));
        for key in gone.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::*;

    fn template(count: usize) -> Template {
        let field = Field {
            element: Element::Bytes,
            length: 4,
        };
        Template::new(Of::Flows, vec![field; count]).unwrap()
    }

    fn key(number: u16) -> (DomainKey, u16) {
        ((Protocol::Ipfix, 1), number)
    }

    #[test]
    fn what_has_no_bytes_is_no_template() {
        assert_eq!(Template::new(Of::Flows, Vec::new()), None);
        let empty = Field {
            element: Element::Bytes,
            length: 0,
        };
        assert_eq!(Template::new(Of::Flows, vec![empty; 9]), None);
        let field = Field { length: 1, ..empty };
        assert_eq!(
            Template::new(Of::Flows, vec![field; MOST_FIELDS_OF_ONE + 1]),
            None
        );
    }

    #[test]
    fn endless_templates_leave_those_that_are_used() {
        let mut templates = Templates::default();
        templates.note(key(256), template(20), 0);
        for (at_ms, number) in (257..65_000).enumerate() {
            let at_ms = i64::try_from(at_ms).unwrap();
            assert!(templates.find(&key(256), at_ms).is_some());
            templates.note(key(number), template(600), at_ms);
            assert!(templates.fields <= MOST_FIELDS);
        }
        for number in 257..65_000 {
            templates.note(key(number), template(1), 70_000);
        }
        assert_eq!(templates.len(), MOST_TEMPLATES);
    }

    #[test]
    fn templates_change_and_age() {
        let mut templates = Templates::default();
        assert_eq!(templates.note(key(256), template(1), 0), Noted::New);
        assert_eq!(templates.note(key(256), template(1), 1), Noted::Again);
        assert_eq!(templates.note(key(256), template(2), 2), Noted::Changed);
        assert!(templates.find(&key(256), LIFE_MS + 2).is_some());
        assert!(templates.find(&key(256), LIFE_MS + 3).is_none());
        assert_eq!((templates.len(), templates.fields), (0, 0));
    }
}
