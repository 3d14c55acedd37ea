//! What scenarios and commands write about chains: an array of tables in TOML, or `key=value`
//! pairs for a shaper that is added to a running link.

use std::time::Duration;

use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, ByteCount, duration_text, parse_duration};
use serde::{Deserialize, Serialize};

use crate::cell::SetError;
use crate::limit::Limit;
use crate::shaper::RATES;

/// A chain: its cells in the order in which packets pass them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainSpec(pub Vec<CellSpec>);

/// One cell: a table with a `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CellSpec {
    /// A rate with a queue.
    Shaper(ShaperSpec),
    /// A propagation delay.
    Delay(DelaySpec),
}

impl CellSpec {
    /// The cell's name: as written, or else its type.
    pub fn name(&self) -> &str {
        match self {
            Self::Shaper(spec) => spec.name.as_deref().unwrap_or("shaper"),
            Self::Delay(spec) => spec.name.as_deref().unwrap_or("delay"),
        }
    }
}

/// `{ type = "delay", delay = "9ms" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// The cell's name; its type when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The delay.
    #[serde(with = "duration_text")]
    pub delay: Duration,
}

/// `{ type = "shaper", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaperSpec {
    /// The cell's name; its type when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The line's rate.
    #[serde(deserialize_with = "shaper_rate")]
    pub rate: BitRate,
    /// What the line adds to each packet; nothing when absent.
    #[serde(default)]
    pub framing: Framing,
    /// The queue before the line; a FIFO of 1000 packets when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

/// A queue: a table with a `type`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum QueueSpec {
    /// First in, first out.
    Fifo(FifoSpec),
    /// CoDel (RFC 8289).
    Codel(CodelSpec),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelSpec),
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::Fifo(FifoSpec::default())
    }
}

/// `{ type = "fifo", limit = "700ms" }`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FifoSpec {
    /// What the buffer holds, the packet that is being sent included.
    pub limit: Limit,
}

impl Default for FifoSpec {
    /// The kernel's own: DEFAULT_TX_QUEUE_LEN.
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
        }
    }
}

/// `{ type = "codel" }`; the defaults are those of RFC 8289 and tc-codel(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodelSpec {
    /// What may wait.
    pub limit: Limit,
    /// The acceptable standing delay.
    #[serde(with = "duration_text")]
    pub target: Duration,
    /// On the order of a worst-case round trip.
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelSpec {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            target: TARGET,
            interval: INTERVAL,
            ecn: false,
        }
    }
}

/// `{ type = "fq_codel" }`; the defaults are those of RFC 8290 and tc-fq_codel(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodelSpec {
    /// What may wait in all queues together.
    pub limit: Limit,
    /// IP bytes that may wait in all queues together.
    pub memory_limit: ByteCount,
    /// Queues that flows are hashed to, 1…65536.
    pub flows: u32,
    /// Bytes on the line that a flow may send in a round.
    pub quantum: u32,
    /// As for CoDel.
    #[serde(with = "duration_text")]
    pub target: Duration,
    /// As for CoDel.
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCodelSpec {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(10_240),
            memory_limit: ByteCount::from_bytes(32 << 20),
            flows: 1024,
            quantum: 1514,
            target: TARGET,
            interval: INTERVAL,
            ecn: true,
        }
    }
}

/// RFC 8289 section 4.3 and 4.4.
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);

impl ShaperSpec {
    /// A shaper of this rate, without framing, with the default queue.
    ///
    /// # Errors
    /// When the rate is zero or above 1 Tbit/s.
    pub fn new(rate: BitRate) -> Result<Self, SetError> {
        let rate = check_rate(rate)
            .map_err(|reason| SetError::value("rate", &rate.to_string(), reason))?;
        Ok(Self {
            name: None,
            rate,
            framing: Framing::default(),
            queue: QueueSpec::default(),
        })
    }

    /// A shaper from `key=value` pairs, such as `rate=19mbit queue=fq_codel framing=docsis`.
    ///
    /// # Errors
    /// When there is no rate, or a key or value is not possible.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SetError> {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        // What the others set depends on the queue, and the overhead replaces the framing's.
        pairs.sort_by_key(|(key, _)| !matches!(*key, "queue" | "framing"));
        let rate = pairs
            .iter()
            .find(|(key, _)| *key == "rate")
            .map(|(_, value)| parse_rate(value))
            .transpose()?;
        let rate = rate.ok_or(SetError::Missing {
            what: "shaper",
            key: "rate",
            example: "rate=20mbit",
        })?;
        let mut spec = Self::new(rate)?;
        for (key, value) in pairs {
            match key {
                "name" => spec.name = Some(value.to_owned()),
                _ => spec.set(key, value)?,
            }
        }
        Ok(spec)
    }

    /// Changes one setting; `queue` starts with that algorithm's defaults.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        let bad = |reason: &dyn ToString| SetError::value(key, value, reason.to_string());
        match key {
            "rate" => self.rate = parse_rate(value)?,
            "framing" => self.framing = value.parse().map_err(|e| bad(&e))?,
            "overhead" => {
                let overhead: Framing = format!("overhead {value}").parse().map_err(|e| bad(&e))?;
                self.framing.overhead_bytes = overhead.overhead_bytes;
            }
            "queue" => {
                self.queue = match value {
                    "fifo" => QueueSpec::Fifo(FifoSpec::default()),
                    "codel" => QueueSpec::Codel(CodelSpec::default()),
                    "fq_codel" => QueueSpec::FqCodel(FqCodelSpec::default()),
                    _ => return Err(bad(&"the queues are fifo, codel and fq_codel")),
                }
            }
            _ => return self.queue.set(key, value),
        }
        Ok(())
    }
}

impl QueueSpec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        fn parsed<T>(key: &str, value: &str) -> Result<T, SetError>
        where
            T: std::str::FromStr,
            T::Err: ToString,
        {
            value
                .parse()
                .map_err(|e: T::Err| SetError::value(key, value, e))
        }
        let time = || parse_duration(value).map_err(|e| SetError::value(key, value, e));
        match (self, key) {
            (Self::Fifo(spec), "limit") => spec.limit = parsed(key, value)?,
            (Self::Codel(spec), "limit") => spec.limit = parsed(key, value)?,
            (Self::Codel(spec), "target") => spec.target = time()?,
            (Self::Codel(spec), "interval") => spec.interval = time()?,
            (Self::Codel(spec), "ecn") => spec.ecn = parsed(key, value)?,
            (Self::FqCodel(spec), "limit") => spec.limit = parsed(key, value)?,
            (Self::FqCodel(spec), "memory_limit") => spec.memory_limit = parsed(key, value)?,
            (Self::FqCodel(spec), "flows") => spec.flows = parsed(key, value)?,
            (Self::FqCodel(spec), "quantum") => spec.quantum = parsed(key, value)?,
            (Self::FqCodel(spec), "target") => spec.target = time()?,
            (Self::FqCodel(spec), "interval") => spec.interval = time()?,
            (Self::FqCodel(spec), "ecn") => spec.ecn = parsed(key, value)?,
            (Self::Fifo(_), _) => return Err(unknown("shaper with a fifo", key, &["limit"])),
            (Self::Codel(_), _) => {
                return Err(unknown(
                    "shaper with a codel",
                    key,
                    &["limit", "target", "interval", "ecn"],
                ));
            }
            (Self::FqCodel(_), _) => {
                let allowed = [
                    "limit",
                    "memory_limit",
                    "flows",
                    "quantum",
                    "target",
                    "interval",
                    "ecn",
                ];
                return Err(unknown("shaper with a fq_codel", key, &allowed));
            }
        }
        Ok(())
    }
}

fn unknown(what: &'static str, key: &str, of_the_queue: &[&str]) -> SetError {
    let allowed: Vec<_> = ["rate", "framing", "overhead", "queue"]
        .iter()
        .chain(of_the_queue)
        .copied()
        .collect();
    SetError::key(what, key, &allowed)
}

fn check_rate(rate: BitRate) -> Result<BitRate, &'static str> {
    if RATES.contains(&rate) {
        Ok(rate)
    } else {
        Err("a rate is at least 1 bit/s and at most 1 Tbit/s")
    }
}

fn parse_rate(value: &str) -> Result<BitRate, SetError> {
    let rate = value
        .parse()
        .map_err(|e| SetError::value("rate", value, e))?;
    check_rate(rate).map_err(|reason| SetError::value("rate", value, reason))
}

fn shaper_rate<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BitRate, D::Error> {
    check_rate(BitRate::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct File {
        down: ChainSpec,
    }

    fn read(text: &str) -> Result<File, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_chain_in_a_scenario() {
        let file = read(
            r#"
            down = [
                { type = "shaper", name = "modem", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } },
                { type = "delay", delay = "9ms" },
                { type = "shaper", rate = "19mbit", framing = { overhead = 22, cells = "ptm" }, queue = { type = "fq_codel", flows = 32 } },
            ]"#,
        )
        .unwrap();
        let [
            CellSpec::Shaper(modem),
            CellSpec::Delay(delay),
            CellSpec::Shaper(fq),
        ] = &file.down.0[..]
        else {
            panic!()
        };
        assert_eq!(modem.rate, BitRate::from_bps(20_000_000));
        assert_eq!(
            modem.queue,
            QueueSpec::Fifo(FifoSpec {
                limit: Limit::Time(Duration::from_millis(700))
            })
        );
        assert_eq!(delay.delay, Duration::from_millis(9));
        assert_eq!(
            fq.queue,
            QueueSpec::FqCodel(FqCodelSpec {
                flows: 32,
                ..Default::default()
            })
        );
        assert_eq!(
            file.down.0.iter().map(CellSpec::name).collect::<Vec<_>>(),
            ["modem", "delay", "shaper"]
        );
        let again = read(&toml::to_string(&file).unwrap()).unwrap();
        assert_eq!(again.down, file.down);
    }

    #[test]
    fn mistakes_in_a_scenario_are_named() {
        for (text, says) in [
            (
                r#"down = [{ type = "shaper", rate = "20mbit", quue = "fifo" }]"#,
                "quue",
            ),
            (
                r#"down = [{ type = "delay", delay = "9ms", rate = "1mbit" }]"#,
                "rate",
            ),
            (
                r#"down = [{ type = "shaper", rate = "0mbit" }]"#,
                "at least 1 bit/s",
            ),
            (
                r#"down = [{ type = "shaper", rate = "1mbit", queue = { type = "red" } }]"#,
                "fq_codel",
            ),
            (
                r#"down = [{ type = "shaper", rate = "1mbit", queue = { type = "fifo", target = "5ms" } }]"#,
                "target",
            ),
            (
                r#"down = [{ type = "shaper", rate = "1mbit", queue = { limit = "5ms" } }]"#,
                "type",
            ),
            (r#"down = [{ type = "shaper" }]"#, "rate"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_shaper_from_pairs_in_any_order() {
        let spec = ShaperSpec::from_pairs([
            ("target", "10ms"),
            ("overhead", "22"),
            ("queue", "fq_codel"),
            ("rate", "19mbit"),
            ("framing", "docsis"),
            ("name", "x"),
        ])
        .unwrap();
        assert_eq!(
            spec.framing,
            Framing {
                overhead_bytes: 22,
                mpu_bytes: 64,
                ..Default::default()
            }
        );
        assert_eq!(
            (spec.rate, spec.name.as_deref()),
            (BitRate::from_bps(19_000_000), Some("x"))
        );
        assert_eq!(
            spec.queue,
            QueueSpec::FqCodel(FqCodelSpec {
                target: Duration::from_millis(10),
                ..Default::default()
            })
        );
        let error = ShaperSpec::from_pairs([("queue", "fifo")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("rate=20mbit"), "{error}");
    }
}
