//! Pages and style sheets, in two pieces, and the references in them.
#![no_main]

use plumb_wire::page::{Found, css, html};
use plumb_wire::url::Url;

libfuzzer_sys::fuzz_target!(|pieces: (&[u8], &[u8])| {
    let Ok(page) = "https://example.net/a/b?c".parse::<Url>() else {
        return;
    };
    let (mut of_page, mut of_sheet) = (html::Scanner::default(), css::Scanner::default());
    let mut found = Vec::new();
    for piece in [pieces.0, pieces.1] {
        of_page.push(piece, &mut found);
        of_sheet.push(piece, &mut found);
    }
    for found in found {
        let (Found::Base(reference) | Found::Object { reference, .. }) = found;
        if let Ok(url) = page.join(&reference) {
            assert_eq!(url.to_string().parse(), Ok(url));
        }
    }
});
