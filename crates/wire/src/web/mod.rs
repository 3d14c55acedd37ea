//! What is measured over HTTP and WebSocket: the paths, and the documents.

pub mod frames;
pub mod key;
pub mod locate;
pub mod ndt7;
pub mod nq;
pub mod visit;

/// The port on which `plumb serve` has HTTP and HTTPS: the port of Apple's own networkQuality server.
pub const PORT: u16 = 4043;

/// Sends as many bytes as its query asks for (`?bytes=N`), as Cloudflare's speed test has it.
pub const DOWN: &str = "/__down";

/// Takes what is posted to it, and drops it.
pub const UP: &str = "/__up";

/// How many bytes a query asks [`DOWN`] for; nothing where it does not say, or what is no number.
pub fn bytes_asked(query: &str) -> Option<u64> {
    let mut fields = query.split('&');
    let value = fields.find_map(|field| field.strip_prefix("bytes="))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_how_many_bytes() {
        assert_eq!(bytes_asked("bytes=1000"), Some(1000));
        assert_eq!(bytes_asked("measId=7&bytes=0"), Some(0));
        for none in [
            "",
            "bytes=",
            "bytes=-1",
            "bytes=1e9",
            "megabytes=3",
            "bytes=99999999999999999999",
        ] {
            assert_eq!(bytes_asked(none), None, "{none}");
        }
    }
}
