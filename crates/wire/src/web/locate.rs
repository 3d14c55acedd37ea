//! M-Lab's locate service, version 2: which servers of NDT7 are near, each with a token that admits this client.

use std::collections::HashMap;

use serde::Deserialize;

use super::ndt7;

/// A server that may be measured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As M-Lab calls the machine.
    pub machine: String,
    /// The WebSocket of each direction, `wss://…`, with its token.
    pub download: String,
    pub upload: String,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    results: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    machine: String,
    urls: HashMap<String, String>,
}

/// Reads an answer: the servers that have both directions over TLS, nearest first.
///
/// # Errors
/// What is wrong in it.
pub fn parse(json: &[u8]) -> Result<Vec<Place>, serde_json::Error> {
    let Answer { results } = serde_json::from_slice(json)?;
    let place = |Listed { machine, mut urls }| {
        // The keys name scheme and path, with no host between.
        let mut of = |path| urls.remove(&format!("wss://{path}"));
        Some(Place {
            machine,
            download: of(ndt7::DOWNLOAD)?,
            upload: of(ndt7::UPLOAD)?,
        })
    };
    Ok(results.into_iter().filter_map(place).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn servers_with_both_directions_are_taken() {
        let json = br#"{"results":[
            {"machine":"half","urls":{"wss:///ndt/v7/download":"wss://half/ndt/v7/download"}},
            {"machine":"mlab1-abc01","location":{"city":"X"},"urls":{
                "ws:///ndt/v7/download":"ws://h/ndt/v7/download?access_token=1",
                "wss:///ndt/v7/download":"wss://h/ndt/v7/download?access_token=2",
                "wss:///ndt/v7/upload":"wss://h/ndt/v7/upload?access_token=3"}}]}"#;
        let [place] = &parse(json).unwrap()[..] else {
            panic!()
        };
        assert_eq!(place.machine, "mlab1-abc01");
        assert_eq!(place.download, "wss://h/ndt/v7/download?access_token=2");
        assert_eq!(place.upload, "wss://h/ndt/v7/upload?access_token=3");
        assert_eq!(parse(br#"{"error":{"status":429}}"#).unwrap(), []);
        assert!(parse(b"7").is_err() && parse(b"").is_err());
    }
}
