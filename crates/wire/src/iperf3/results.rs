//! What each end counted.

use serde::{Deserialize, Serialize};

use super::flags::signed;

/// The results of one end, as JSON has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// Shares of one processor, in percent.
    pub cpu_util_total: f64,
    pub cpu_util_user: f64,
    pub cpu_util_system: f64,
    /// Whether the end that sends counts what it sends again: 1, 0, or −1 where it only receives.
    #[serde(deserialize_with = "signed")]
    pub sender_has_retransmits: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    /// What the server would have printed, for a client that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
    pub streams: Vec<StreamResults>,
}

/// One stream, at the end that wrote it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamResults {
    #[serde(deserialize_with = "signed")]
    pub id: i64,
    /// Sent or received after what is omitted.
    pub bytes: f64,
    /// −1 at an end that receives.
    #[serde(deserialize_with = "signed")]
    pub retransmits: i64,
    /// In seconds (RFC 3550, section 6.4.1).
    pub jitter: f64,
    /// Datagrams that were lost.
    #[serde(deserialize_with = "signed")]
    pub errors: i64,
    #[serde(deserialize_with = "signed")]
    pub omitted_errors: i64,
    /// Datagrams sent, or the highest number that arrived.
    #[serde(deserialize_with = "signed")]
    pub packets: i64,
    #[serde(deserialize_with = "signed")]
    pub omitted_packets: i64,
    pub start_time: f64,
    /// In seconds after what is omitted.
    pub end_time: f64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_iperf_3_12_sends_is_read() {
        let results: Results = serde_json::from_str(
            r#"{"cpu_util_total":3.5,"cpu_util_user":1.2,"cpu_util_system":2.3,"sender_has_retransmits":1,"congestion_used":"cubic",
                "streams":[{"id":1,"bytes":1304428544,"retransmits":12,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":10.000198}]}"#,
        )
        .unwrap();
        let stream = results.streams.first().unwrap();
        assert_eq!((stream.bytes, stream.retransmits), (1_304_428_544.0, 12));
        let receives = r#"{"sender_has_retransmits":18446744073709551615,"streams":[{"id":1,"retransmits":18446744073709551615}]}"#;
        let receives: Results = serde_json::from_str(receives).unwrap();
        assert_eq!(receives.sender_has_retransmits, -1);
        assert_eq!(receives.streams.first().unwrap().retransmits, -1);
        let json = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
    }
}
