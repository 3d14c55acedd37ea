//! What a web server answers over HTTP/2, in two pieces, behind its settings.
#![no_main]

use plumb_wire::http_client::Request;
use plumb_wire::http2::Client;
use plumb_wire::http2::frame::{kind, write};

libfuzzer_sys::fuzz_target!(|pieces: (&[u8], &[u8])| {
    let Ok(url) = "https://example.net/".parse() else {
        return;
    };
    let mut client = Client::default();
    client.request(&Request { url, gzip: false });
    let mut settings = Vec::new();
    write(&mut settings, kind::SETTINGS, 0, 0, &[]);
    let mut events = Vec::new();
    for bytes in [settings.as_slice(), pieces.0, pieces.1] {
        let _ = client.receive(bytes, &mut events);
    }
    client.end(&mut events);
});
