//! CAKE's settings, in the words of tc-cake(8).

use std::time::Duration;

use plumb_model::units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use super::{AckFilter, Isolation, Tins, cobalt, rtt};
use crate::settings::Settings;

/// `{ type = "cake" }`; the defaults and the values' names are from tc-cake(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CakeSpec {
    /// How packets are sorted into tins.
    pub tins: Tins,
    /// What gets a fair share.
    pub isolation: Isolation,
    /// The round trip that COBALT is tuned for, or a keyword for it.
    #[serde(with = "rtt")]
    pub rtt: Duration,
    /// IP bytes that may wait; four times what the line sends in a round trip when `auto`, and
    /// at least 4 MiB.
    #[serde(with = "memory")]
    pub memory_limit: Option<ByteCount>,
    /// Which ACKs are filtered.
    pub ack_filter: AckFilter,
    /// Clear the DSCP of what passes, after the tin was chosen.
    pub wash: bool,
}

impl Default for CakeSpec {
    fn default() -> Self {
        Self {
            tins: Tins::default(),
            isolation: Isolation::default(),
            rtt: rtt::DEFAULT,
            memory_limit: None,
            ack_filter: AckFilter::default(),
            wash: false,
        }
    }
}

impl Settings for CakeSpec {
    fn check(&self) -> Result<(), String> {
        if !RTTS.contains(&self.rtt) {
            return Err("rtt is at least 1us and at most 1h".to_owned());
        }
        if self.memory_limit == Some(ByteCount::from_bytes(0)) {
            return Err("memory_limit is more than none: write 4MiB, or auto".to_owned());
        }
        Ok(())
    }
}

/// From a microsecond, the kernel's unit, to tc-cake(8)'s `interplanetary`.
const RTTS: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(1)..=Duration::from_secs(3600);
/// The least memory when none is configured, in bytes.
const LEAST_MEMORY: u64 = 4 << 20;
/// The most then: the kernel's limit of 10240 packets, of the largest size each.
const MOST_MEMORY: u64 = 10_240 * cobalt::MTU;

impl CakeSpec {
    /// IP bytes that may wait before a line of this rate.
    pub(super) fn memory(&self, rate: BitRate) -> u64 {
        let of_round_trips = u128::from(rate.bps() / 8) * self.rtt.as_micros() / 250_000;
        let automatic = u64::try_from(of_round_trips)
            .unwrap_or(u64::MAX)
            .clamp(LEAST_MEMORY, MOST_MEMORY);
        self.memory_limit.map_or(automatic, ByteCount::bytes)
    }
}

/// `memory_limit`: an amount, or `auto`.
mod memory {
    use super::*;
    use serde::{Deserializer, Serializer};

    const AUTO: &str = "auto";

    pub(super) fn serialize<S: Serializer>(
        limit: &Option<ByteCount>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match limit {
            Some(limit) => limit.serialize(serializer),
            None => serializer.serialize_str(AUTO),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ByteCount>, D::Error> {
        let written = toml::Value::deserialize(deserializer)?;
        if written.as_str() == Some(AUTO) {
            return Ok(None);
        }
        let limit = ByteCount::deserialize(written).map_err(serde::de::Error::custom)?;
        Ok(Some(limit))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const RATE: BitRate = BitRate::from_bps(20_000_000);

    #[test]
    fn settings_are_written_in_the_words_of_the_manual() {
        let read = |text: &str| toml::from_str::<CakeSpec>(text).map_err(|e| e.to_string());
        let spec = read(
            "tins = 'diffserv4'\nisolation = 'dual-srchost'\nrtt = 'satellite'\nmemory_limit = '2MB'\nack_filter = 'ack-filter-aggressive'\nwash = true",
        )
        .unwrap();
        let expected = CakeSpec {
            tins: Tins::Diffserv4,
            isolation: Isolation::DualSrchost,
            rtt: Duration::from_secs(1),
            memory_limit: Some(ByteCount::from_bytes(2_000_000)),
            ack_filter: AckFilter::AckFilterAggressive,
            wash: true,
        };
        assert_eq!(spec, expected);
        for spec in [spec, CakeSpec::default()] {
            assert_eq!(read(&toml::to_string(&spec).unwrap()), Ok(spec));
        }
        for (keyword, us) in [
            ("datacentre", 100),
            ("lan", 1_000),
            ("metro", 10_000),
            ("regional", 30_000),
            ("internet", 100_000),
            ("oceanic", 300_000),
            ("35ms", 35_000),
        ] {
            let rtt = read(&format!("rtt = '{keyword}'")).unwrap().rtt;
            assert_eq!(rtt, Duration::from_micros(us), "{keyword}");
        }
        for (text, says) in [
            ("rtt = 'mars'", "oceanic"),
            ("isolation = 'tripple'", "triple-isolate"),
            ("tins = 'diffserv5'", "diffserv4"),
            ("memory_limit = 'some'", "amount of data"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let spec = CakeSpec {
            rtt: Duration::ZERO,
            ..Default::default()
        };
        assert!(spec.check().is_err_and(|error| error.contains("1us")));
    }

    #[test]
    fn memory_is_four_round_trips_between_bounds() {
        let memory = |bps, rtt_ms| {
            let spec = CakeSpec {
                rtt: Duration::from_millis(rtt_ms),
                ..Default::default()
            };
            spec.memory(BitRate::from_bps(bps))
        };
        assert_eq!(memory(20_000_000, 100), 4 << 20);
        assert_eq!(memory(100_000_000, 100), 5_000_000);
        assert_eq!(memory(100_000_000, 300), 15_000_000);
        assert_eq!(memory(1_000_000_000, 100), 10_240 * 1514);
        let spec = CakeSpec {
            memory_limit: Some(ByteCount::from_bytes(100)),
            ..Default::default()
        };
        assert_eq!(spec.memory(RATE), 100);
    }
}
