//! The little of XML that gateways write (XML 1.0, fifth edition): elements and their text. Attributes, comments and
//! instructions are skipped; a document type is refused, because entities are declared there and nothing here needs one.

/// The longest document in bytes: descriptions of gateways with forty services have 30 kB.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// How deep elements may be nested: a service of a device in two others in a root stands at 9.
const MAX_DEPTH: usize = 32;

/// Elements of one document: a gateway of forty services has some 400.
const MAX_ELEMENTS: usize = 4096;

/// The longest name of an element in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Why a document cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    #[error("it is longer than {MAX_DOCUMENT_BYTES} bytes")]
    TooLong,
    #[error("it declares a document type, which is not read")]
    DocumentType,
    #[error("its elements are nested too deep, too many, or too long in name")]
    TooLarge,
    #[error("its tags do not match")]
    Tags,
}

/// An element that holds text and no other element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The number of the element that it stands in, counted by where each begins.
    pub(super) within: usize,
    /// Its name without the prefix of a name space.
    pub(super) name: String,
    /// Its text without white space around it.
    pub(super) text: String,
}

/// An element that is open.
struct Open<'a> {
    /// Its whole name, prefix included.
    name: &'a str,
    number: usize,
    text: String,
    is_leaf: bool,
}

/// The elements of a document that hold text alone, in the order in which they end.
///
/// # Errors
/// When it is no document within the bounds.
pub(super) fn leaves(document: &[u8]) -> Result<Vec<Leaf>, XmlError> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return Err(XmlError::TooLong);
    }
    let document = String::from_utf8_lossy(document);
    let mut rest: &str = &document;
    let mut open: Vec<Open<'_>> = Vec::new();
    let (mut begun, mut found) = (0, Vec::new());
    while let Some((text, markup)) = rest.split_once('<') {
        if let Some(element) = open.last_mut() {
            unescape(text, &mut element.text);
        }
        rest = if let Some(data) = markup.strip_prefix("![CDATA[") {
            let (data, after) = data.split_once("]]>").ok_or(XmlError::Tags)?;
            if let Some(element) = open.last_mut() {
                element.text.push_str(data);
            }
            after
        } else if let Some(comment) = markup.strip_prefix("!--") {
            comment.split_once("-->").ok_or(XmlError::Tags)?.1
        } else if let Some(instruction) = markup.strip_prefix('?') {
            instruction.split_once("?>").ok_or(XmlError::Tags)?.1
        } else if markup.starts_with('!') {
            return Err(XmlError::DocumentType);
        } else {
            let (tag, after) = tag(markup).ok_or(XmlError::Tags)?;
            if let Some(name) = tag.strip_prefix('/') {
                let ended = open.pop().filter(|element| element.name == name.trim_end());
                end(ended.ok_or(XmlError::Tags)?, &open, &mut found);
            } else {
                let (tag, is_empty) = match tag.strip_suffix('/') {
                    Some(tag) => (tag, true),
                    None => (tag, false),
                };
                let name = tag.split_ascii_whitespace().next().unwrap_or_default();
                let fits = open.len() < MAX_DEPTH
                    && begun < MAX_ELEMENTS
                    && (1..=MAX_NAME_BYTES).contains(&name.len());
                if !fits {
                    return Err(XmlError::TooLarge);
                }
                if let Some(parent) = open.last_mut() {
                    parent.is_leaf = false;
                }
                let element = Open {
                    name,
                    number: begun,
                    text: String::new(),
                    is_leaf: true,
                };
                begun += 1;
                match is_empty {
                    true => end(element, &open, &mut found),
                    false => open.push(element),
                }
            }
            after
        };
    }
    match open.is_empty() && begun > 0 {
        true => Ok(found),
        false => Err(XmlError::Tags),
    }
}

/// What stands before the end of a tag, and what comes after it; the end may stand in the value of an attribute, too.
fn tag(markup: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in markup.char_indices() {
        match (quote, c) {
            (None, '>') => return Some((markup.get(..at)?, markup.get(at + 1..)?)),
            (None, '"' | '\'') => quote = Some(c),
            (Some(begun), _) if begun == c => quote = None,
            _ => {}
        }
    }
    None
}

fn end(element: Open<'_>, open: &[Open<'_>], found: &mut Vec<Leaf>) {
    let Some(parent) = open.last().filter(|_| element.is_leaf) else {
        return;
    };
    let name = element.name.rsplit(':').next().unwrap_or_default();
    found.push(Leaf {
        within: parent.number,
        name: name.to_owned(),
        text: element.text.trim().to_owned(),
    });
}

/// Adds text, with XML's five predefined references and the numeric ones resolved; any other stays unchanged.
fn unescape(text: &str, out: &mut String) {
    /// The longest reference in bytes: `#x10FFFF`.
    const LONGEST: usize = 8;
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once('&') {
        out.push_str(before);
        // No further than that: each of many ampersands would look through all that follows.
        let near = reference.bytes().take(LONGEST + 1);
        let end = near.into_iter().position(|byte| byte == b';');
        let named = end.and_then(|end| reference.split_at_checked(end));
        match named.and_then(|(name, after)| Some((character(name)?, after.get(1..)?))) {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('&');
                rest = reference;
            }
        }
    }
    out.push_str(rest);
}

fn character(reference: &str) -> Option<char> {
    let number = match reference {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        number => number.strip_prefix('#')?,
    };
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn read(document: &str) -> Result<Vec<(usize, String, String)>, XmlError> {
        let leaves = leaves(document.as_bytes())?.into_iter();
        Ok(leaves.map(|l| (l.within, l.name, l.text)).collect())
    }

    fn leaf(within: usize, name: &str, text: &str) -> (usize, String, String) {
        (within, name.to_owned(), text.to_owned())
    }

    #[test]
    fn leaves_know_the_element_that_they_stand_in() {
        let document = "<?xml version=\"1.0\"?>\n<!-- a > b --><r a='>'><s><u:x>1 &amp; 2</u:x><y/></s>\
                        <s><x> <![CDATA[<3>]]>&#x34; </x></s></r>\n";
        let expected = [
            leaf(1, "x", "1 & 2"),
            leaf(1, "y", ""),
            leaf(4, "x", "<3>4"),
        ];
        assert_eq!(read(document).unwrap(), expected);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for wrong in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "</a>",
            "<a",
            "<a><!-- </a>",
            "<a><![CDATA[</a>",
        ] {
            assert_eq!(read(wrong), Err(XmlError::Tags), "{wrong}");
        }
        let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]><l>&b;</l>";
        assert_eq!(read(laughs), Err(XmlError::DocumentType));
        assert_eq!(
            read("<a>&unknown; &; &</a>").unwrap(),
            [],
            "the root stands in nothing"
        );
    }

    #[test]
    fn what_is_larger_than_any_gateway_writes_is_refused() {
        assert_eq!(read(&"<a>".repeat(MAX_DEPTH + 1)), Err(XmlError::TooLarge));
        let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
        assert_eq!(read(&many), Err(XmlError::TooLarge));
        let long = format!("<{0}></{0}>", "n".repeat(MAX_NAME_BYTES + 1));
        assert_eq!(read(&long), Err(XmlError::TooLarge));
        assert_eq!(
            leaves(&[b' '; MAX_DOCUMENT_BYTES + 1]),
            Err(XmlError::TooLong)
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(document in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = leaves(&document);
        }

        #[test]
        fn pieces_of_xml_in_any_order_are_read_or_refused(
            pieces in prop::collection::vec(
                prop::sample::select(&["<a>", "</a>", "<b x='", "'>", "/>", "<!--", "-->", "<![CDATA[", "]]>", "&", "&#",
                    ";", "<?", "?>", "é", "<", ">", "\"", "t"][..]),
                0..40,
            )
        ) {
            let _ = leaves(pieces.concat().as_bytes());
        }

        #[test]
        fn text_comes_back_as_it_was_written(text in "[ -~]{0,40}") {
            let written = text.replace('&', "&amp;").replace('<', "&lt;");
            let read = read(&format!("<r><t>{written}</t></r>")).unwrap();
            prop_assert_eq!(read, [leaf(0, "t", text.trim())]);
        }
    }
}
