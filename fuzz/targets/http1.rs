//! What a web server answers over HTTP/1.1, in two pieces.
#![no_main]

use plumb_wire::http_client::Request;
use plumb_wire::http1::Client;

libfuzzer_sys::fuzz_target!(|pieces: (&[u8], &[u8])| {
    let Ok(url) = "http://example.net/".parse() else {
        return;
    };
    let mut client = Client::default();
    client.request(&Request { url, gzip: false });
    let mut events = Vec::new();
    let _ = client.receive(pieces.0, &mut events);
    let _ = client.receive(pieces.1, &mut events);
    client.end(&mut events);
});
