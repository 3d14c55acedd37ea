//! A Run inside a page of HTML: one file for people and for plumb.

use serde::Serialize;

use crate::printable;

/// Begins the block of data, which browsers do not run (HTML, section 4.12.1). No text of a page holds it: there `<` is
/// escaped.
const OPENING: &str = r#"<script type="application/json" id="plumb-run">"#;
const CLOSING: &str = "</script>";

/// A Run as an element of a page. No `<` is in its JSON, so that nothing of it ends the element.
///
/// # Errors
/// When the Run cannot be written as JSON.
pub fn element(run: &impl Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string(run)?.replace('<', r"\u003c");
    Ok(format!("{OPENING}{}{CLOSING}", printable::json(&json)))
}

/// Whether a text is a page rather than JSON, which begins with another character.
pub(super) fn is_page(text: &str) -> bool {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .starts_with('<')
}

/// The JSON of the Run in a page, where there is one.
pub(super) fn json(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once(OPENING)?;
    Some(rest.split_once(CLOSING)?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::run::Run;

    proptest! {
        #[test]
        fn a_run_is_read_back_from_its_page(note in "\\PC{0,40}|</script><!--", before in "[^<]{0,20}") {
            let mut run = Run::from_json(include_str!("../../fixtures/run-2.json")).unwrap();
            run.notes = vec![note];
            let page = format!("<!doctype html>{before}{}</body>", element(&run).unwrap());
            prop_assert_eq!(page.matches("</script").count(), 1);
            prop_assert_eq!(Run::from_json(&page).unwrap(), run);
        }

        #[test]
        fn any_page_is_read_or_refused(page in "<(\\PC|<script type=\"application/json\" id=\"plumb-run\">|</script>){0,20}") {
            let _ = Run::from_json(&page);
        }
    }
}
