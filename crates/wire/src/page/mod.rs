//! What a page names that is loaded with it: found in its HTML ([`html`]) and in style sheets ([`css`]), as they arrive. The
//! scanners are tolerant and bounded; they understand neither scripts nor which rules of a style sheet apply.

pub mod css;
pub mod html;

use plumb_model::results::page_load::ObjectKind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Object {
        kind: ObjectKind,
        /// Its URL, as written; relative to the page or to what [`Found::Base`] says.
        reference: String,
    },
    /// The URL that later references of the page are relative to, as written.
    Base(String),
}

/// The longest reference that is taken, in bytes: longer ones are data or no URLs.
const MAX_REFERENCE_BYTES: usize = crate::url::MAX_URL_BYTES;

/// Where bytes begin to hold that text, whatever its case in ASCII.
fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes
        .windows(text.len())
        .position(|window| window.eq_ignore_ascii_case(text))
}
