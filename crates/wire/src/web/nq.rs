//! networkQuality's configuration document (draft-ietf-ippm-responsiveness, section 5).

use serde::{Deserialize, Serialize};

/// Where clients look for it.
pub const PATH: &str = "/.well-known/nq";

/// Bytes of a large object: at 10 Gbit/s a test of 20 s does not come to its end. The draft asks for 8 GB at least.
pub const LARGE_BYTES: u64 = 32_000_000_000;

/// Bytes of a small object.
pub const SMALL_BYTES: u64 = 1;

/// The document. Some clients read the one set of names, and some the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    pub version: u32,
    pub urls: Urls,
    /// The host to connect to in place of that in the URLs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub test_endpoint: Option<String>,
}

/// The objects of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Urls {
    #[serde(alias = "large_download_url")]
    pub large_https_download_url: String,
    #[serde(alias = "small_download_url")]
    pub small_https_download_url: String,
    #[serde(alias = "upload_url")]
    pub https_upload_url: String,
}

impl Configuration {
    /// What a server with that name and port (`host:port`) answers over that scheme, with both sets of names.
    pub fn json(scheme: &str, authority: &str) -> String {
        let down = |bytes| format!("{scheme}://{authority}{}?bytes={bytes}", super::DOWN);
        let (large, small) = (down(LARGE_BYTES), down(SMALL_BYTES));
        let up = format!("{scheme}://{authority}{}", super::UP);
        serde_json::json!({
            "version": 1,
            "urls": {
                "large_download_url": large,
                "small_download_url": small,
                "upload_url": up,
                "large_https_download_url": large,
                "small_https_download_url": small,
                "https_upload_url": up,
            },
        })
        .to_string()
    }
}

/// Reads a document; of names in both sets the older ones count.
///
/// # Errors
/// What is wrong in it.
pub fn parse(json: &[u8]) -> Result<Configuration, serde_json::Error> {
    let mut value: serde_json::Value = serde_json::from_slice(json)?;
    if let Some(urls) = value.get_mut("urls").and_then(|urls| urls.as_object_mut()) {
        for (old, new) in [
            ("large_https_download_url", "large_download_url"),
            ("small_https_download_url", "small_download_url"),
            ("https_upload_url", "upload_url"),
        ] {
            // One field under two names is an error to serde.
            if urls.contains_key(old) {
                urls.remove(new);
            }
        }
    }
    serde_json::from_value(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn either_set_of_names_is_read() {
        let ours = Configuration::json("https", "[2001:db8::1]:4043");
        let both = parse(ours.as_bytes()).unwrap();
        assert_eq!(
            both.urls.small_https_download_url,
            "https://[2001:db8::1]:4043/__down?bytes=1"
        );
        assert_eq!(
            both.urls.https_upload_url,
            "https://[2001:db8::1]:4043/__up"
        );
        let new = br#"{"version":1,"test_endpoint":"edge.example","urls":{"large_download_url":"https://h/l","small_download_url":"https://h/s","upload_url":"https://h/u"}}"#;
        let new = parse(new).unwrap();
        assert_eq!(new.urls.large_https_download_url, "https://h/l");
        assert_eq!(new.test_endpoint.as_deref(), Some("edge.example"));
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"version":1,"urls":{}}"#,
            r#"{"version":-1,"urls":7}"#,
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
