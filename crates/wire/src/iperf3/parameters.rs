//! What a client asks for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ErrorCode;
use super::flags::{flag, number};
use super::udp::header_bytes;

/// The parameters as JSON has them; what is absent is 0 or unset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub tcp: bool,
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub udp: bool,
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub sctp: bool,
    /// Seconds at the beginning that do not count.
    #[serde(deserialize_with = "number")]
    pub omit: u64,
    /// Seconds that count; 0 where bytes or blocks end the test.
    #[serde(deserialize_with = "number")]
    pub time: u64,
    /// Bytes after which the client ends it.
    #[serde(deserialize_with = "number")]
    pub num: u64,
    /// The same in writes.
    #[serde(deserialize_with = "number")]
    pub blockcount: u64,
    /// Streams in each direction that is used.
    #[serde(deserialize_with = "number")]
    pub parallel: u64,
    /// Bytes of a write or datagram.
    #[serde(deserialize_with = "number")]
    pub len: u64,
    /// Target rate of each stream, in bit/s; 0 for as fast as it goes.
    #[serde(deserialize_with = "number")]
    pub bandwidth: u64,
    /// The same, kept by the kernel.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub fqrate: u64,
    /// Datagrams that leave at once.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub burst: u64,
    /// How often a sender looks whether datagrams are due, in microseconds; 0 for the server's own 1000.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub pacing_timer: u64,
    /// Socket buffers, in bytes.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub window: u64,
    #[serde(
        rename = "MSS",
        deserialize_with = "number",
        skip_serializing_if = "is_zero"
    )]
    pub mss: u64,
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub nodelay: bool,
    /// The server sends, and the client receives.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub reverse: bool,
    /// Both ends send at the same time.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub bidirectional: bool,
    /// The byte of the IP header: DSCP and two bits of ECN.
    #[serde(
        rename = "TOS",
        deserialize_with = "number",
        skip_serializing_if = "is_zero"
    )]
    pub tos: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub udp_counters_64bit: bool,
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_unset")]
    pub get_server_output: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authtoken: Option<String>,
    pub client_version: String,
}

fn is_unset(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Most bytes of a write (`MAX_BLOCKSIZE`), of a datagram (`MAX_UDP_BLOCKSIZE`), of a socket's buffer (`MAX_TCP_BUFFER`) and of a
/// segment (`MAX_MSS`).
const MAX_BLOCK_BYTES: u64 = 1024 * 1024;
const MAX_DATAGRAM_BYTES: u64 = 65_507;
const MAX_BUFFER_BYTES: u64 = 512 * 1024 * 1024;
const MAX_SEGMENT_BYTES: u64 = 9 * 1024;

/// Longest name of a congestion control (`TCP_CA_NAME_MAX` of Linux, without its NUL).
const MAX_NAME_BYTES: usize = 15;

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub longest: Duration,
    /// Most streams, both directions together.
    pub streams: u32,
}

/// A test that keeps the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    pub is_udp: bool,
    /// Streams that the server receives, and that it sends.
    pub receives: u32,
    pub sends: u32,
    pub omit: Duration,
    /// How long it may take, with what is omitted.
    pub lasts: Duration,
    /// Bytes of a write or datagram.
    pub block_bytes: u32,
    /// Target rate of each stream, in bit/s.
    pub rate_bps: Option<u64>,
    /// Datagrams that leave at once.
    pub burst: u32,
    pub window_bytes: Option<u32>,
    pub mss_bytes: Option<u16>,
    pub no_delay: bool,
    pub dscp: Option<u8>,
    pub congestion: Option<String>,
    /// Bits of the numbers in datagrams.
    pub has_long_counters: bool,
    pub wants_output: bool,
}

impl Parameters {
    /// The test that they ask for.
    ///
    /// # Errors
    /// The number by which iperf3 knows why not.
    pub fn test(&self, limits: Limits) -> Result<Test, ErrorCode> {
        let block = self.block_bytes()?;
        if self.sctp || self.tcp == self.udp {
            return Err(ErrorCode::Protocol);
        }
        if self.authtoken.is_some() {
            return Err(ErrorCode::Authorization);
        }
        if self.reverse && self.bidirectional {
            return Err(ErrorCode::BothModes);
        }
        let parallel = self.parallel.max(1);
        let directions = 1 + u64::from(self.bidirectional);
        if parallel.saturating_mul(directions) > u64::from(limits.streams) {
            return Err(ErrorCode::Streams);
        }
        let parallel = u32::try_from(parallel).map_err(|_| ErrorCode::Streams)?;
        if self.window > MAX_BUFFER_BYTES {
            return Err(ErrorCode::BufferSize);
        }
        if self.mss > MAX_SEGMENT_BYTES {
            return Err(ErrorCode::SegmentSize);
        }
        let name = self.congestion.as_deref().unwrap_or_default();
        if name.len() > MAX_NAME_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ErrorCode::CongestionControl);
        }
        let rate = self.bandwidth.max(self.fqrate);
        let positive = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
        Ok(Test {
            is_udp: self.udp,
            receives: if self.reverse { 0 } else { parallel },
            sends: match self.reverse || self.bidirectional {
                true => parallel,
                false => 0,
            },
            omit: Duration::from_secs(self.omit),
            lasts: self.lasts(limits.longest)?,
            block_bytes: block,
            rate_bps: (rate > 0).then_some(rate),
            burst: positive(self.burst).unwrap_or(1),
            window_bytes: positive(self.window),
            mss_bytes: u16::try_from(self.mss).ok().filter(|mss| *mss > 0),
            no_delay: self.nodelay,
            dscp: u8::try_from(self.tos >> 2)
                .ok()
                .filter(|dscp| (1..64).contains(dscp)),
            congestion: self.congestion.clone().filter(|name| !name.is_empty()),
            has_long_counters: self.udp_counters_64bit,
            wants_output: self.get_server_output,
        })
    }

    /// How long the test may take: the client ends one of so many bytes or writes.
    fn lasts(&self, longest: Duration) -> Result<Duration, ErrorCode> {
        let omit = Duration::from_secs(self.omit);
        let is_counted = self.num > 0 || self.blockcount > 0;
        let asked = match (is_counted, self.time) {
            (true, _) => longest.saturating_sub(omit),
            (false, 0) => return Err(ErrorCode::Duration),
            (false, seconds) => Duration::from_secs(seconds),
        };
        let lasts = asked.saturating_add(omit);
        (lasts <= longest && !asked.is_zero())
            .then_some(lasts)
            .ok_or(ErrorCode::Duration)
    }

    fn block_bytes(&self) -> Result<u32, ErrorCode> {
        /// What iperf3 writes at once over TCP where nothing is said (`DEFAULT_TCP_BLKSIZE`).
        const TCP_BYTES: u64 = 128 * 1024;
        /// What fits an Ethernet frame over IPv6 (`DEFAULT_UDP_BLKSIZE`).
        const UDP_BYTES: u64 = 1460;
        let (usual, least, most, wrong) = match self.udp {
            true => {
                let least = header_bytes(self.udp_counters_64bit) as u64;
                (
                    UDP_BYTES,
                    least,
                    MAX_DATAGRAM_BYTES,
                    ErrorCode::UdpBlockSize,
                )
            }
            false => (TCP_BYTES, 1, MAX_BLOCK_BYTES, ErrorCode::BlockSize),
        };
        let asked = if self.len == 0 { usual } else { self.len };
        let fits = (least..=most).contains(&asked);
        u32::try_from(asked).ok().filter(|_| fits).ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        longest: Duration::from_secs(600),
        streams: 128,
    };

    fn test(json: &str) -> Result<Test, ErrorCode> {
        serde_json::from_str::<Parameters>(json)
            .unwrap()
            .test(LIMITS)
    }

    #[test]
    fn what_iperf_3_12_sends_is_read() {
        let test = test(
            r#"{"tcp":true,"omit":1,"time":10,"num":0,"blockcount":0,"parallel":4,"bidirectional":true,"len":131072,
                "window":400000,"MSS":1300,"nodelay":true,"TOS":184,"pacing_timer":1000,"congestion":"reno","client_version":"3.12",
                "udp_counters_64bit":1,"get_server_output":1}"#,
        )
        .unwrap();
        assert_eq!((test.receives, test.sends), (4, 4));
        assert_eq!(
            (test.lasts, test.omit),
            (Duration::from_secs(11), Duration::from_secs(1))
        );
        assert_eq!(
            (test.window_bytes, test.mss_bytes, test.dscp),
            (Some(400_000), Some(1300), Some(46))
        );
        assert!(test.no_delay && test.wants_output && test.has_long_counters);
        assert_eq!(test.congestion.as_deref(), Some("reno"));
    }

    #[test]
    fn what_is_not_served_has_its_number() {
        use ErrorCode as Code;
        for (json, code) in [
            (r#"{"sctp":true,"time":1}"#, Code::Protocol),
            (r#"{"time":1}"#, Code::Protocol),
            (r#"{"tcp":true}"#, Code::Duration),
            (r#"{"tcp":true,"time":601}"#, Code::Duration),
            (r#"{"tcp":true,"time":1e300}"#, Code::Duration),
            (r#"{"tcp":true,"num":1,"omit":600}"#, Code::Duration),
            (r#"{"tcp":true,"time":1,"parallel":129}"#, Code::Streams),
            (
                r#"{"tcp":true,"time":1,"parallel":65,"bidirectional":1}"#,
                Code::Streams,
            ),
            (r#"{"tcp":true,"time":1,"len":1048577}"#, Code::BlockSize),
            (r#"{"udp":true,"time":1,"len":65508}"#, Code::UdpBlockSize),
            (r#"{"udp":true,"time":1,"len":11}"#, Code::UdpBlockSize),
            (
                r#"{"tcp":true,"time":1,"window":600000000}"#,
                Code::BufferSize,
            ),
            (r#"{"tcp":true,"time":1,"MSS":9217}"#, Code::SegmentSize),
            (
                r#"{"tcp":true,"time":1,"authtoken":"x"}"#,
                Code::Authorization,
            ),
            (
                r#"{"tcp":true,"time":1,"reverse":1,"bidirectional":1}"#,
                Code::BothModes,
            ),
            (
                r#"{"tcp":true,"time":1,"congestion":"a name that is too long"}"#,
                Code::CongestionControl,
            ),
        ] {
            assert_eq!(test(json), Err(code), "{json}");
        }
        assert!(serde_json::from_str::<Parameters>(r#"{"tcp":"yes"}"#).is_err());
        assert!(serde_json::from_str::<Parameters>(r#"{"time":-1}"#).is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_keeps_the_limits(
            numbers in proptest::collection::vec(any::<u64>(), 11),
            flags in proptest::collection::vec(any::<bool>(), 6),
        ) {
            let [omit, time, num, blockcount, parallel, len, bandwidth, burst, window, mss, tos] = numbers.try_into().unwrap();
            let parameters = Parameters {
                tcp: flags[0], udp: flags[1], reverse: flags[2], bidirectional: flags[3], nodelay: flags[4], udp_counters_64bit: flags[5],
                omit: omit % 700, time: time % 700, num: num % 3, blockcount: blockcount % 2, parallel: parallel % 140, len: len % 2_000_000,
                bandwidth, burst, window, mss: mss % 10_000, tos: tos % 300, ..Parameters::default()
            };
            let json = serde_json::to_string(&parameters).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Parameters>(&json).unwrap(), &parameters);
            if let Ok(test) = parameters.test(LIMITS) {
                prop_assert!(test.lasts <= LIMITS.longest && test.omit < test.lasts);
                prop_assert!((1..=LIMITS.streams).contains(&(test.receives + test.sends)));
                prop_assert!(test.block_bytes > 0 && test.burst > 0);
            }
        }
    }
}
