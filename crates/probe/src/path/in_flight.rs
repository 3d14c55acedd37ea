//! The probes that are out, by the numbers that they bear, and their round trips.

use std::collections::BTreeMap;

use plumb_wire::path_probe::MAX_NUMBER;

use super::probe::{Answer, Answered, Probe, ProbeId};
use crate::ping::sample::{self, Moment, Record};

/// Probes out at most: the numbers of older ones are needed anew, and no answer comes that late.
const MAX_OUT: usize = 32_768;

/// One probe that is out.
#[derive(Debug)]
struct Out {
    id: ProbeId,
    probe: Probe,
    record: Record,
}

/// Which number is which probe.
#[derive(Debug, Default)]
pub(crate) struct Known {
    sent: u64,
    by_number: BTreeMap<u16, Out>,
}

impl Known {
    /// The name and the number of the next probe.
    pub(crate) fn next(&self) -> (ProbeId, u16) {
        let id = ProbeId(self.sent);
        (id, Self::number(id))
    }

    /// The number that a probe bears.
    pub(crate) fn number(id: ProbeId) -> u16 {
        (id.0 % u64::from(MAX_NUMBER) + 1) as u16
    }

    /// The probe with the next number was not sent. Whatever is said of that number must not be
    /// taken for the answer to another.
    pub(crate) fn refused(&mut self) {
        self.sent += 1;
    }

    /// The probe with the next number left at that moment.
    pub(crate) fn sent(&mut self, probe: &Probe, at: Moment) -> ProbeId {
        let (id, number) = self.next();
        self.sent += 1;
        let record = Record {
            due_ns: at.monotonic_ns,
            sent: at,
            size_bytes: probe.size_bytes.into(),
            refused: false,
            departed_ns: None,
            answer: None,
            duplicates: 0,
            reordered: false,
        };
        let probe = *probe;
        self.by_number.insert(number, Out { id, probe, record });
        if self.by_number.len() > MAX_OUT {
            // Numbers rise with time until they begin anew: the one after the latest is the oldest.
            let oldest = self.by_number.range(number.saturating_add(1)..).next();
            let oldest = oldest.or_else(|| self.by_number.iter().next());
            if let Some(oldest) = oldest.map(|(number, _)| *number) {
                self.by_number.remove(&oldest);
            }
        }
        id
    }

    /// The kernel's stamp of its departure, ns of CLOCK_REALTIME.
    pub(crate) fn departed(&mut self, number: u16, ns: u64) {
        if let Some(out) = self.by_number.get_mut(&number) {
            out.record.departed_ns = Some(ns);
        }
    }

    /// The probe of a number, if one is out.
    pub(crate) fn probe(&self, number: u16) -> Option<&Probe> {
        self.by_number.get(&number).map(|out| &out.probe)
    }

    /// Of the probes that are out, the number of the one that lives for the fewest hops beyond
    /// `hops`.
    pub(crate) fn first_beyond(&self, hops: u8) -> Option<u16> {
        self.by_number
            .iter()
            .filter(|(_, out)| out.probe.hops > hops)
            .min_by_key(|(_, out)| (out.probe.hops, out.id))
            .map(|(number, _)| *number)
    }

    /// An answer came in; `None` when the probe is not out, or not any more.
    pub(crate) fn answered(
        &mut self,
        number: u16,
        at: Moment,
        kernel_ns: Option<u64>,
        answer: Answer,
    ) -> Option<Answered> {
        let mut out = self.by_number.remove(&number)?;
        out.record.answer = Some(sample::Answer {
            kernel_ns,
            ..sample::Answer::at(at, number.into())
        });
        let trip = out.record.round_trip()?;
        Some(Answered {
            id: out.id,
            probe: out.probe,
            rtt: trip.rtt,
            timestamps: trip.timestamps,
            answer,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::probe::AnswerKind;
    use super::*;
    use plumb_model::results::TimestampSource;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn moment(ns: u64) -> Moment {
        Moment {
            monotonic_ns: ns,
            realtime_ns: 1_000_000_000_000 + ns,
            uncertainty_ns: 100,
        }
    }

    fn answer() -> Answer {
        Answer::plain(Ipv4Addr::LOCALHOST.into(), AnswerKind::EchoReply, None)
    }

    #[test]
    fn round_trips_are_of_kernel_stamps() {
        let mut known = Known::default();
        let (id, number) = known.next();
        assert_eq!(known.sent(&Probe::to(3), moment(0)), id);
        known.departed(number, 1_000_000_000_000 + 10_000);
        let got = known
            .answered(number, moment(9_000_000), Some(1_000_008_010_000), answer())
            .unwrap();
        assert_eq!((got.id, got.probe.hops), (id, 3));
        assert_eq!(got.rtt, Duration::from_millis(8));
        assert_eq!(got.timestamps, TimestampSource::Kernel);
        let again = known.answered(number, moment(9_100_000), None, answer());
        assert_eq!(again, None, "answered once");
    }

    #[test]
    fn a_step_of_the_wall_clock_does_not_show() {
        for step_ns in [-3_600_000_000_000_i64, 3_600_000_000_000] {
            let stepped = |ns: u64| ns.checked_add_signed(step_ns).unwrap();
            let mut known = Known::default();
            let (_, number) = known.next();
            let early = Moment {
                realtime_ns: 10_000_000_000_000,
                ..moment(0)
            };
            known.sent(&Probe::to(3), early);
            known.departed(number, early.realtime_ns + 10_000);
            let late = Moment {
                realtime_ns: stepped(early.realtime_ns + 9_000_000),
                ..moment(9_000_000)
            };
            let kernel_ns = Some(stepped(early.realtime_ns + 8_010_000));
            let got = known.answered(number, late, kernel_ns, answer()).unwrap();
            // Our own readings then, of a clock that does not step.
            assert_eq!(got.rtt, Duration::from_millis(9));
            assert_eq!(got.timestamps, TimestampSource::User);
        }
    }

    #[test]
    fn numbers_come_round_and_the_oldest_are_forgotten() {
        let mut known = Known::default();
        for i in 0..70_000u64 {
            let (id, number) = known.next();
            assert!((1..=MAX_NUMBER).contains(&number));
            assert_eq!(id, ProbeId(i));
            known.sent(&Probe::to(1), moment(i));
        }
        assert_eq!(known.by_number.len(), MAX_OUT);
        let oldest = known.by_number.values().map(|out| out.id.0).min();
        assert_eq!(oldest, Some(70_000 - MAX_OUT as u64));
    }
}
