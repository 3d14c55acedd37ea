//! NDT7 (m-lab/ndt-server, `spec/ndt7-protocol.md`): a download or an upload of one WebSocket, and what both ends report
//! meanwhile.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
pub const DOWNLOAD: &str = "/ndt/v7/download";
pub const UPLOAD: &str = "/ndt/v7/upload";

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    Download,
    Upload,
}

impl Test {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// How long a sender sends.
pub const LASTS: Duration = Duration::from_secs(10);

/// After which either end may close (`MaxRuntime` of `ndt7/spec/spec.go`).
pub const LONGEST: Duration = Duration::from_secs(13);

/// Bytes of the first message, and of the largest that a sender comes to by itself.
pub const FIRST_BYTES: usize = 1 << 13;
pub const LARGEST_SENT_BYTES: usize = 1 << 20;

/// Bytes of the largest message that a receiver takes.
pub const LARGEST_BYTES: usize = 1 << 24;

/// Of what was sent, the part that the next message may be.
const PART: u64 = 16;

/// Reports come as a Poisson process of this mean time, and within these bounds of it.
pub const BETWEEN_REPORTS: Duration = Duration::from_millis(250);
pub const LEAST_BETWEEN_REPORTS: Duration = Duration::from_millis(25);
pub const MOST_BETWEEN_REPORTS: Duration = Duration::from_millis(625);

/// The size of the next message, after messages of `bytes` and `sent` bytes in all.
pub fn next_bytes(bytes: usize, sent: u64) -> usize {
    let may_grow = bytes as u64 <= sent / PART;
    if may_grow && bytes < LARGEST_SENT_BYTES {
        (bytes * 2).min(LARGEST_SENT_BYTES)
    } else {
        bytes
    }
}

/// The time to the next report, from an equally distributed number of 0 to 1.
pub fn until_next_report(uniform: f64) -> Duration {
    let uniform = uniform.clamp(f64::MIN_POSITIVE, 1.0);
    BETWEEN_REPORTS
        .mul_f64(-uniform.ln())
        .clamp(LEAST_BETWEEN_REPORTS, MOST_BETWEEN_REPORTS)
}

/// What an end reports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Measurement {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_info: Option<AppInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_info: Option<ConnectionInfo>,
    /// `client` or `server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// `download` or `upload`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<TcpInfo>,
}

/// What the program carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AppInfo {
    /// Microseconds since the beginning.
    pub elapsed_time: i64,
    pub num_bytes: i64,
}

/// Between whom it is measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ConnectionInfo {
    pub client: String,
    pub server: String,
    #[serde(rename = "UUID")]
    pub uuid: String,
}

/// What the kernel of the end that reports knows of the connection; times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TcpInfo {
    pub elapsed_time: i64,
    pub busy_time: i64,
    pub bytes_acked: i64,
    pub bytes_received: i64,
    pub bytes_sent: i64,
    pub bytes_retrans: i64,
    #[serde(rename = "MinRTT")]
    pub min_rtt: i64,
    #[serde(rename = "RTT")]
    pub rtt: i64,
    #[serde(rename = "RWndLimited")]
    pub rwnd_limited: i64,
    #[serde(rename = "SndBufLimited")]
    pub snd_buf_limited: i64,
    /// Segments sent again, ever.
    pub total_retrans: i64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_grow_with_what_was_sent() {
        let (mut bytes, mut sent, mut sizes) = (FIRST_BYTES, 0, vec![FIRST_BYTES]);
        while sent < 200_000_000 {
            sent += bytes as u64;
            bytes = next_bytes(bytes, sent);
            if sizes.last() != Some(&bytes) {
                sizes.push(bytes);
            }
        }
        let doubled: Vec<usize> = (13..=20).map(|power| 1 << power).collect();
        assert_eq!(sizes, doubled);
        assert_eq!(next_bytes(FIRST_BYTES, 15 << 13), FIRST_BYTES);
        assert_eq!(next_bytes(FIRST_BYTES, 16 << 13), 2 * FIRST_BYTES);
    }

    #[test]
    fn reports_keep_within_their_bounds() {
        assert_eq!(until_next_report(0.0), MOST_BETWEEN_REPORTS);
        assert_eq!(until_next_report(1.0), LEAST_BETWEEN_REPORTS);
        assert_eq!(until_next_report((-1.0_f64).exp()), BETWEEN_REPORTS);
    }

    #[test]
    fn a_report_is_written_as_the_protocol_has_it() {
        let json = r#"{"AppInfo":{"ElapsedTime":1234,"NumBytes":5678},"Origin":"server","Test":"download","TCPInfo":{"MinRTT":25,"RTT":30,"BusyTime":7,"CWnd":10}}"#;
        let report: Measurement = serde_json::from_str(json).unwrap();
        assert_eq!(report.app_info.unwrap().num_bytes, 5678);
        assert_eq!(report.tcp_info.unwrap().min_rtt, 25);
        let written = serde_json::to_string(&report).unwrap();
        assert!(written.starts_with(r#"{"AppInfo":{"ElapsedTime":1234,"NumBytes":5678},"Origin""#));
        assert!(written.contains(r#""RWndLimited":0"#), "{written}");
    }
}
