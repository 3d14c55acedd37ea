//! One probe: what was seen of it, and the round trip that follows from that.
//!
//! Kernel stamps are of CLOCK_REALTIME, which may step (clock_settime, leap second, resume from sleep). CLOCK_MONOTONIC
//! never does, and both are slewed alike, so their difference is constant as long as the clock is not stepped: it is
//! read with every probe sent and received, and a round trip over which it changed falls back to our own monotonic
//! readings.

use std::fmt;
use std::time::Duration;

use plumb_model::results::TimestampSource;
use plumb_net::udp_counters::Drops;
use plumb_wire::dns::code_name;
use plumb_wire::stamp::{ErrorEstimate, TimeFormat};

/// How much the two clocks may part between two readings, above the uncertainty of the
/// readings, before it is a step: far above noise, and too little to spoil a round trip.
const STEP_TOLERANCE_NS: u64 = 100_000;

/// The two clocks, read at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
    /// The readings lie at most this far apart.
    pub uncertainty_ns: u64,
}

/// What the far end said of its own part in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarEnd {
    /// When it received the probe, by its own clock, ns.
    pub received_ns: i64,
    /// When it sent the answer, by the same clock, ns.
    pub sent_ns: i64,
    /// How many probes of this run it had received before this one, where it counts them.
    pub count: Option<u32>,
    /// Hop limit with which the probe came to it, where it reports that.
    pub hop_limit: Option<u8>,
}

/// What the far end says of its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FarClock {
    /// Whether an external source sets it.
    pub synchronised: bool,
    /// It may be off by so much, in seconds, where it says so.
    pub error_s: Option<f64>,
    /// Its times are PTP's: seconds of TAI, by the standard.
    pub ptp: bool,
}

impl From<ErrorEstimate> for FarClock {
    fn from(error: ErrorEstimate) -> Self {
        Self {
            synchronised: error.synchronised,
            error_s: error.seconds(),
            ptp: error.format == TimeFormat::Ptp,
        }
    }
}

/// The four times of a probe and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the probe entered our packet scheduler, ns of CLOCK_MONOTONIC, which never steps.
    pub departed_ns: i64,
    /// What the far end said.
    pub far: FarEnd,
    /// When our kernel received the answer, ns of CLOCK_MONOTONIC.
    pub arrived_ns: i64,
}

/// The parts of a request over a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// From SYN to established.
    pub connect: Duration,
    /// The TLS handshake, where there was one.
    pub tls: Option<Duration>,
    /// From the request to the first byte of its answer.
    pub first_byte: Duration,
}

/// A round trip that something else than two stamps measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    pub rtt: Duration,
    /// Whose clock says so.
    pub timestamps: TimestampSource,
    /// What came before it, where it was a part of more.
    pub phases: Option<Phases>,
}

/// What an answer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    /// A connection was accepted.
    SynAck,
    /// It was refused by a reset.
    Reset,
    /// The status of a page.
    Http(u16),
    /// The response code of a DNS server.
    Dns(u8),
    /// An echo service sent the datagram back.
    Echo,
    /// The host has nothing at that UDP port.
    PortUnreachable,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SynAck => f.write_str("SYN-ACK"),
            Self::Reset => f.write_str("RST"),
            Self::Http(status) => write!(f, "HTTP {status}"),
            Self::Dns(code) => f.write_str(code_name(*code)),
            Self::Echo => f.write_str("echo"),
            Self::PortUnreachable => f.write_str("port unreachable"),
        }
    }
}

/// An answer, as it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Which probe it answers.
    pub sequence: u32,
    /// When we had it in hand.
    pub at: Moment,
    /// When the kernel received it, ns of CLOCK_REALTIME.
    pub kernel_ns: Option<u64>,
    /// The round trip, where something else than the two stamps measured it: a kernel's TCP, or the
    /// thread that held the connection.
    pub measured: Option<Measured>,
    /// What the answer was, where the protocol has several.
    pub said: Option<Said>,
    /// What the far end said; a host that answers ICMP says nothing.
    pub far_end: Option<FarEnd>,
    /// The hop limit (TTL) that it bore when it came in, where the protocol reports it.
    pub hop_limit: Option<u8>,
    /// Packets that our socket had dropped until then.
    pub drops: Drops,
}

impl Answer {
    /// An answer of which nothing more is known.
    pub fn at(at: Moment, sequence: u32) -> Self {
        Self {
            sequence,
            at,
            kernel_ns: None,
            measured: None,
            said: None,
            far_end: None,
            hop_limit: None,
            drops: Drops::default(),
        }
    }
}

/// What was seen of one probe so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// When it was due, ns of CLOCK_MONOTONIC.
    pub(crate) due_ns: u64,
    /// Just before it was handed to the kernel.
    pub(crate) sent: Moment,
    pub(crate) size_bytes: usize,
    /// Whether our own machine refused to send it.
    pub(crate) refused: bool,
    /// When it entered the packet scheduler, ns of CLOCK_REALTIME.
    pub(crate) departed_ns: Option<u64>,
    pub(crate) answer: Option<Answer>,
    pub(crate) duplicates: u32,
    pub(crate) reordered: bool,
}

/// One probe that was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Number of the probe, from 0; probes that our own machine refused leave gaps.
    pub sequence: u32,
    /// When it was due, seconds from the start.
    pub scheduled_s: f64,
    /// When it was sent, seconds from the start.
    pub sent_s: f64,
    /// The same, ns of CLOCK_MONOTONIC.
    pub sent_monotonic_ns: u64,
    /// The round trip without the far end's residence; `None` when no answer came in time.
    pub rtt: Option<Duration>,
    /// Whether the far end's times made no sense (a clock step) and were not taken out.
    pub residence_ignored: bool,
    /// Whose stamps the round trip is made of; `Kernel` when both its ends are the kernel's.
    pub timestamps: TimestampSource,
    /// Answers beyond the first.
    pub duplicates: u32,
    /// Whether the answer to a later probe came before (RFC 4737, type-P-reordered).
    pub reordered: bool,
    /// Whether an answer came after the timeout.
    pub late: bool,
    /// Payload of the probe.
    pub size_bytes: usize,
    /// The hop limit that the answer bore when it came in; absent where the protocol does not report it.
    pub hop_limit: Option<u8>,
    /// The times at both ends, of an answer however late; absent where the far end reports none.
    pub exchange: Option<Exchange>,
    /// The parts of a request, where each has a connection of its own.
    pub phases: Option<Phases>,
}

/// Times of this millennium fit.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// A round trip and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    pub(crate) rtt: Duration,
    pub(crate) residence_ignored: bool,
    pub(crate) timestamps: TimestampSource,
}

impl Record {
    /// The round trip, once there is an answer.
    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        let answer = self.answer?;
        if let Some(measured) = answer.measured {
            return Some(RoundTrip {
                rtt: measured.rtt,
                residence_ignored: false,
                timestamps: measured.timestamps,
            });
        }
        let (total, timestamps) = match self.kernel_ns(&answer) {
            Some(ns) => (ns, TimestampSource::Kernel),
            None => (
                answer
                    .at
                    .monotonic_ns
                    .saturating_sub(self.sent.monotonic_ns),
                TimestampSource::User,
            ),
        };
        let claimed = answer
            .far_end
            .map(|far| far.sent_ns.checked_sub(far.received_ns));
        let residence = claimed
            .flatten()
            .and_then(|ns| u64::try_from(ns).ok())
            .filter(|ns| *ns <= total);
        Some(RoundTrip {
            rtt: Duration::from_nanos(total - residence.unwrap_or(0)),
            residence_ignored: claimed.is_some() && residence.is_none(),
            timestamps,
        })
    }

    /// Whether an answer came within the timeout.
    pub(crate) fn in_time(&self, timeout: Duration) -> bool {
        self.round_trip().is_some_and(|trip| trip.rtt <= timeout)
    }

    /// Departure to arrival by the kernel's stamps, unless something speaks against them: the
    /// clock stepped, or they do not lie between our own readings.
    fn kernel_ns(&self, answer: &Answer) -> Option<u64> {
        let (departed, arrived) = (self.departed_ns?, answer.kernel_ns?);
        let tolerance = STEP_TOLERANCE_NS + self.sent.uncertainty_ns + answer.at.uncertainty_ns;
        let apart =
            |moment: &Moment| i128::from(moment.realtime_ns) - i128::from(moment.monotonic_ns);
        let stepped =
            (apart(&answer.at) - apart(&self.sent)).unsigned_abs() > u128::from(tolerance);
        let enclosed = departed.saturating_add(tolerance) >= self.sent.realtime_ns
            && arrived <= answer.at.realtime_ns.saturating_add(tolerance);
        if stepped || !enclosed {
            None
        } else {
            arrived.checked_sub(departed)
        }
    }

    /// The sample, seen from a start on CLOCK_MONOTONIC; `None` when it was never sent.
    pub(crate) fn sample(
        &self,
        sequence: u32,
        started_ns: u64,
        timeout: Duration,
    ) -> Option<Sample> {
        if self.refused {
            return None;
        }
        let since_start = |ns: u64| ns.saturating_sub(started_ns) as f64 / 1e9;
        let trip = self.round_trip();
        let in_time = trip.filter(|trip| trip.rtt <= timeout);
        Some(Sample {
            sequence,
            scheduled_s: since_start(self.due_ns),
            sent_s: since_start(self.sent.monotonic_ns),
            sent_monotonic_ns: self.sent.monotonic_ns,
            rtt: in_time.map(|trip| trip.rtt),
            residence_ignored: in_time.is_some_and(|trip| trip.residence_ignored),
            timestamps: in_time.map_or(TimestampSource::User, |trip| trip.timestamps),
            duplicates: self.duplicates,
            reordered: self.reordered && in_time.is_some(),
            late: trip.is_some() && in_time.is_none(),
            size_bytes: self.size_bytes,
            hop_limit: self
                .answer
                .and_then(|answer| answer.hop_limit)
                .filter(|_| in_time.is_some()),
            exchange: self.exchange(),
            phases: self
                .answer
                .and_then(|answer| answer.measured?.phases)
                .filter(|_| in_time.is_some()),
        })
    }

    /// The times at both ends; ours by the kernel's stamps where they can be trusted.
    pub(crate) fn exchange(&self) -> Option<Exchange> {
        let answer = self.answer?;
        let far = answer.far_end?;
        // How long after our own reading the packet left, and before it the answer came.
        let (waited_ns, idle_ns) =
            match (self.kernel_ns(&answer), self.departed_ns, answer.kernel_ns) {
                (Some(_), Some(departed), Some(arrived)) => (
                    signed(departed).saturating_sub(signed(self.sent.realtime_ns)),
                    signed(answer.at.realtime_ns).saturating_sub(signed(arrived)),
                ),
                _ => (0, 0),
            };
        Some(Exchange {
            departed_ns: signed(self.sent.monotonic_ns).saturating_add(waited_ns),
            far,
            arrived_ns: signed(answer.at.monotonic_ns).saturating_sub(idle_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const APART: u64 = 1_700_000_000_000_000_000;

    fn moment(monotonic_ns: u64) -> Moment {
        Moment {
            monotonic_ns,
            realtime_ns: monotonic_ns + APART,
            uncertainty_ns: 1_000,
        }
    }

    /// Sent at 1000 ms, departed 1 ms later, arrived 20 ms later, read 5 ms after that.
    fn record(far_end: Option<FarEnd>) -> Record {
        let answer = Answer {
            kernel_ns: Some(APART + 1021 * MS),
            far_end,
            hop_limit: Some(64),
            ..Answer::at(moment(1026 * MS), 0)
        };
        Record {
            due_ns: 999 * MS,
            sent: moment(1000 * MS),
            size_bytes: 56,
            refused: false,
            departed_ns: Some(APART + 1001 * MS),
            answer: Some(answer),
            duplicates: 0,
            reordered: false,
        }
    }

    fn rtt_ms(record: &Record) -> (f64, TimestampSource) {
        let trip = record.round_trip().unwrap();
        (trip.rtt.as_secs_f64() * 1e3, trip.timestamps)
    }

    #[test]
    fn our_own_scheduling_is_not_in_the_round_trip() {
        assert_eq!(rtt_ms(&record(None)), (20.0, TimestampSource::Kernel));
    }

    #[test]
    fn without_both_stamps_our_own_readings_serve() {
        let no_departure = Record {
            departed_ns: None,
            ..record(None)
        };
        assert_eq!(rtt_ms(&no_departure), (26.0, TimestampSource::User));
        let mut no_arrival = record(None);
        no_arrival.answer.as_mut().unwrap().kernel_ns = None;
        assert_eq!(rtt_ms(&no_arrival), (26.0, TimestampSource::User));
    }

    #[test]
    fn a_step_of_the_clock_does_not_show() {
        for step_ns in [-2_000_000_000i64, -1_000_000, 1_000_000, 2_000_000_000] {
            // While the probe was under way.
            let mut stepped = record(None);
            let answer = stepped.answer.as_mut().unwrap();
            answer.at.realtime_ns = answer.at.realtime_ns.checked_add_signed(step_ns).unwrap();
            answer.kernel_ns = answer.kernel_ns.unwrap().checked_add_signed(step_ns);
            assert_eq!(rtt_ms(&stepped), (26.0, TimestampSource::User), "{step_ns}");
            // After the kernel had received it and before we read it.
            let mut late_step = record(None);
            let answer = late_step.answer.as_mut().unwrap();
            answer.at.realtime_ns = answer.at.realtime_ns.checked_add_signed(step_ns).unwrap();
            assert_eq!(
                rtt_ms(&late_step),
                (26.0, TimestampSource::User),
                "{step_ns}"
            );
        }
    }

    #[test]
    fn stamps_outside_our_own_readings_are_not_believed() {
        let early = Record {
            departed_ns: Some(APART + 999 * MS),
            ..record(None)
        };
        assert_eq!(rtt_ms(&early).1, TimestampSource::User);
        let mut late = record(None);
        late.answer.as_mut().unwrap().kernel_ns = Some(APART + 1027 * MS);
        assert_eq!(rtt_ms(&late).1, TimestampSource::User);
        let backwards = Record {
            departed_ns: Some(APART + 1022 * MS),
            ..record(None)
        };
        assert_eq!(rtt_ms(&backwards).1, TimestampSource::User);
    }

    #[test]
    fn the_residence_is_taken_out_when_it_makes_sense() {
        let far = |received_ns, sent_ns| {
            Some(FarEnd {
                received_ns,
                sent_ns,
                count: None,
                hop_limit: None,
            })
        };
        let trip = record(far(5, 5 + 3 * MS as i64)).round_trip().unwrap();
        assert_eq!(
            (trip.rtt, trip.residence_ignored),
            (Duration::from_millis(17), false)
        );
        for nonsense in [far(10, 5), far(0, 21 * MS as i64), far(i64::MIN, i64::MAX)] {
            let trip = record(nonsense).round_trip().unwrap();
            assert_eq!(
                (trip.rtt, trip.residence_ignored),
                (Duration::from_millis(20), true)
            );
        }
    }

    #[test]
    fn an_answer_after_the_timeout_is_late_and_lost() {
        let sample = |ms| {
            record(None)
                .sample(7, 900 * MS, Duration::from_millis(ms))
                .unwrap()
        };
        let in_time = sample(20);
        assert_eq!(
            (in_time.rtt, in_time.late),
            (Some(Duration::from_millis(20)), false)
        );
        assert_eq!(
            (in_time.sequence, in_time.scheduled_s, in_time.sent_s),
            (7, 0.099, 0.1)
        );
        let late = sample(19);
        assert_eq!((late.rtt, late.late), (None, true));
    }

    proptest! {
        #[test]
        fn no_stamps_make_an_absurd_round_trip(
            departed: Option<u64>, arrived: Option<u64>, real in any::<u64>(), received_ns: i64, sent_ns: i64,
        ) {
            let mut record = record(Some(FarEnd { received_ns, sent_ns, count: None, hop_limit: None }));
            record.departed_ns = departed;
            let answer = record.answer.as_mut().unwrap();
            (answer.kernel_ns, answer.at.realtime_ns) = (arrived, real);
            // Never above what our own monotonic clock saw, but for the tolerances.
            prop_assert!(record.round_trip().unwrap().rtt <= Duration::from_nanos(26 * MS + 4 * STEP_TOLERANCE_NS));
        }
    }
}
