//! What became of the packets of each way. Pure.
//!
//! The far end counts what it receives. So a gap in its count is an answer that was lost on the reverse path, and
//! whatever else is missing was lost on the forward path.

use std::collections::BTreeSet;

use plumb_load::udp::analysis::{Analysis, Packet};
use plumb_model::loss::Losses;
use plumb_model::results::owd::OwdWay;
use plumb_model::results::udp::{LossPattern, UdpReceiver};
use plumb_probe::{Exchange, ProbeLog, Sample};

/// Counts of both ways.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) up: Way,
    pub(super) down: Way,
    /// Probes without an answer of which it is not known where they were lost.
    pub(super) unplaced: u64,
}

/// Counts of one way.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Way {
    sent: u64,
    lost: u64,
    duplicates: u64,
    losses: Option<LossPattern>,
}

impl Way {
    /// Puts the counts into a result.
    pub(super) fn fill(self, way: &mut OwdWay) {
        way.sent = Some(self.sent);
        way.received = Some(self.sent - self.lost);
        way.lost = Some(self.lost);
        way.loss_ratio = (self.sent > 0).then(|| self.lost as f64 / self.sent as f64);
        way.duplicates = Some(self.duplicates);
        way.losses = self.losses;
    }
}

/// Counts the packets of both ways; `None` where the far end does not count.
pub(super) fn count(log: &ProbeLog) -> Option<Counted> {
    let index_of = |sequence: u32| {
        log.samples
            .binary_search_by_key(&sequence, |sample| sample.sequence)
            .ok()
    };
    // Every answer: the far end's count, and which of the probes sent it is.
    let mut answers: Vec<(u32, usize)> = Vec::new();
    for (index, sample) in log.samples.iter().enumerate() {
        if let Some(exchange) = &sample.exchange {
            answers.push((exchange.far.count?, index));
        }
    }
    let mut counts: BTreeSet<u32> = answers.iter().map(|(count, _)| *count).collect();
    let (mut twice_up, mut twice_down) = (0, 0);
    for (sequence, count) in &log.again {
        let Some((count, index)) = count.zip(index_of(*sequence)) else {
            continue;
        };
        // Counted twice it came twice; with a count that is known, its answer did.
        if counts.insert(count) {
            answers.push((count, index));
            twice_up += 1;
        } else {
            twice_down += 1;
        }
    }
    answers.sort_unstable();
    let (last_count, last_index) = answers.last().copied()?;
    // What is known to have left before the last that the far end received, or overtook it.
    let ahead = log.samples.iter().skip(last_index + 1);
    let known = last_index as u64 + 1 + ahead.filter(|s| s.exchange.is_some()).count() as u64;
    let arrived = u64::from(last_count) + 1;
    twice_up += hidden_duplicates(&answers);
    let patterns = patterns(&answers);
    let (up_losses, down_losses) = patterns.unzip();
    let up_lost = known.saturating_sub(arrived.saturating_sub(twice_up));
    let down_lost = arrived.saturating_sub(counts.len() as u64);
    Some(Counted {
        unplaced: (log.samples.len() as u64).saturating_sub(known),
        up: Way {
            sent: known,
            lost: up_lost,
            duplicates: twice_up,
            losses: up_losses,
        },
        down: Way {
            sent: arrived,
            lost: down_lost,
            duplicates: twice_down,
            losses: down_losses,
        },
    })
}

/// Probes that came twice, of which one answer was lost: the far end counted more between two answers
/// than there were probes. Where probes overtook each other nothing can be said of that.
fn hidden_duplicates(answers: &[(u32, usize)]) -> u64 {
    let gaps = answers.windows(2).filter_map(|pair| {
        let [(count, index), (next_count, next_index)] = pair else {
            return None;
        };
        let counted = u64::from(next_count.checked_sub(*count)?.checked_sub(1)?);
        // The same probe again is none in between.
        let probes = next_index.checked_sub(*index)?.saturating_sub(1) as u64;
        Some(counted.saturating_sub(probes))
    });
    gaps.sum()
}

/// How losses follow each other on the forward path and back; `None` where their order is not known.
fn patterns(answers: &[(u32, usize)]) -> Option<(LossPattern, LossPattern)> {
    let (mut up, mut down) = (Losses::default(), Losses::default());
    let (mut next_count, mut next_index) = (0u64, 0u64);
    for (count, index) in answers {
        let (count, index) = (u64::from(*count), *index as u64);
        let no_answer = count.checked_sub(next_count)?;
        // Negative where packets overtook each other or came twice.
        let missing = index.checked_sub(next_index)?;
        let not_arrived = missing.checked_sub(no_answer)?;
        if no_answer > 0 && not_arrived > 0 {
            return None;
        }
        up.lose(next_index, not_arrived);
        down.lose(next_count, no_answer);
        (next_count, next_index) = (count + 1, index + 1);
    }
    Some((up.pattern(), down.pattern()))
}

/// Delay, its variation and order of both ways by the exchanges that came back. `offset_at` gives the
/// far clock less ours at a time of ours, ns; all times are then ours.
pub(super) fn analyse(
    log: &ProbeLog,
    offset_at: impl Fn(i64) -> i64,
) -> [(UdpReceiver, Option<i64>); 2] {
    let ours = |far_ns: i64, at_ns: i64| far_ns.saturating_sub(offset_at(at_ns));
    let exchanged = |sample: &Sample| sample.exchange.map(|e| (u64::from(sample.sequence), e));
    let mut packets: Vec<(u64, Exchange)> = log.samples.iter().filter_map(exchanged).collect();
    // In the order in which the far end received them, which is the order of its answers.
    packets.sort_by_key(|(_, e)| (e.far.count, e.far.received_ns));
    let mut up = Analysis::default();
    for (sequence, exchange) in &packets {
        up.record(&Packet {
            sequence: *sequence,
            sent_ns: exchange.departed_ns,
            received_ns: ours(exchange.far.received_ns, exchange.departed_ns),
            payload_bytes: 0,
            ecn: 0,
        });
    }
    let mut answers: Vec<(u64, Exchange)> = (0..)
        .zip(&packets)
        .map(|(rank, (_, e))| (e.far.count.map_or(rank, u64::from), *e))
        .collect();
    answers.sort_by_key(|(_, e)| e.arrived_ns);
    let mut down = Analysis::default();
    for (number, exchange) in &answers {
        down.record(&Packet {
            sequence: *number,
            sent_ns: ours(exchange.far.sent_ns, exchange.arrived_ns),
            received_ns: exchange.arrived_ns,
            payload_bytes: 0,
            ecn: 0,
        });
    }
    [up, down].map(|analysis| {
        let findings = analysis.finish(None);
        (findings.receiver, findings.min_delay_ns)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::protocol::Protocol;
    use plumb_model::results::TimestampSource;
    use plumb_probe::FarEnd;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    /// What became of one probe.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fate {
        Answered,
        LostUp,
        LostDown,
        TwiceUp,
        TwiceDown,
    }

    fn log(fates: &[Fate]) -> ProbeLog {
        let mut count = 0;
        let (mut samples, mut again) = (Vec::new(), Vec::new());
        for (sequence, fate) in (0u32..).zip(fates) {
            let departed_ns = i64::from(sequence) * 10 * MS;
            let mut exchange = None;
            if *fate != Fate::LostUp {
                let far = FarEnd {
                    received_ns: departed_ns + 5 * MS,
                    sent_ns: departed_ns + 5 * MS,
                    count: Some(count),
                    hop_limit: None,
                };
                count += 1;
                exchange = (*fate != Fate::LostDown).then_some(Exchange {
                    departed_ns,
                    far,
                    arrived_ns: departed_ns + 12 * MS,
                });
            }
            match fate {
                Fate::TwiceUp => {
                    again.push((sequence, Some(count)));
                    count += 1;
                }
                Fate::TwiceDown => again.push((sequence, Some(count - 1))),
                _ => {}
            }
            samples.push(Sample {
                sequence,
                scheduled_s: 0.0,
                sent_s: departed_ns as f64 / 1e9,
                sent_monotonic_ns: 0,
                rtt: None,
                residence_ignored: false,
                timestamps: TimestampSource::Kernel,
                duplicates: 0,
                reordered: false,
                late: false,
                size_bytes: 44,
                hop_limit: None,
                exchange,
                phases: None,
            });
        }
        ProbeLog {
            protocol: Protocol::Stamp,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            id: 1,
            samples,
            refused_s: vec![],
            again,
            far_clock: None,
            drops: vec![],
            hop_limit_changes_s: vec![],
            icmp_errors: Default::default(),
            answers: Default::default(),
            started_monotonic_ns: 0,
            duration_s: 1.0,
            notes: vec![],
        }
    }

    use Fate::{Answered, LostDown, LostUp, TwiceDown, TwiceUp};

    #[test]
    fn each_ways_losses_are_its_own() {
        let counted = count(&log(&[
            Answered, LostUp, LostUp, Answered, LostDown, Answered, LostUp, Answered,
        ]))
        .unwrap();
        assert_eq!((counted.up.sent, counted.up.lost), (8, 3));
        assert_eq!((counted.down.sent, counted.down.lost), (5, 1));
        let periods = |way: &Way| way.losses.as_ref().unwrap().periods;
        assert_eq!((periods(&counted.up), periods(&counted.down)), (2, 1));
        // Between the same two answers, which was lost in which direction is unknown.
        let mixed = count(&log(&[Answered, LostUp, LostDown, Answered])).unwrap();
        assert_eq!(
            (mixed.up.lost, mixed.down.lost, mixed.up.losses),
            (1, 1, None)
        );
    }

    #[test]
    fn what_nobody_answered_any_more_has_no_place() {
        let counted = count(&log(&[Answered, Answered, LostUp, LostDown])).unwrap();
        assert_eq!(
            (counted.unplaced, counted.up.lost, counted.down.lost),
            (2, 0, 0)
        );
        assert_eq!(count(&log(&[LostUp])), None);
        let mut uncounted = log(&[Answered, LostUp, Answered]);
        for exchange in uncounted
            .samples
            .iter_mut()
            .filter_map(|s| s.exchange.as_mut())
        {
            exchange.far.count = None;
        }
        assert_eq!(count(&uncounted), None);
    }

    #[test]
    fn delays_are_of_each_way() {
        let [(up, up_min), (down, down_min)] = analyse(&log(&[Answered; 20]), |_| 2 * MS);
        assert_eq!((up_min, down_min), (Some(3 * MS), Some(9 * MS)));
        assert_eq!((up.received, down.received), (20, 20));
        assert_eq!(up.pdv_s.unwrap().max, 0.0);
    }

    proptest! {
        #[test]
        fn losses_and_duplicates_are_counted_whatever_they_are(
            fates in proptest::collection::vec(
                prop_oneof![6 => Just(Answered), 1 => Just(LostUp), 1 => Just(LostDown), 1 => Just(TwiceUp), 1 => Just(TwiceDown)],
                0..100,
            ),
        ) {
            // The last is answered, so that all have a place.
            let fates = [fates, vec![Answered]].concat();
            let counted = count(&log(&fates)).unwrap();
            let number = |fate: Fate| fates.iter().filter(|f| **f == fate).count() as u64;
            prop_assert_eq!(counted.up.sent, fates.len() as u64);
            prop_assert_eq!(counted.up.lost, number(LostUp));
            prop_assert_eq!(counted.down.lost, number(LostDown));
            prop_assert_eq!((counted.up.duplicates, counted.down.duplicates), (number(TwiceUp), number(TwiceDown)));
            prop_assert_eq!(counted.unplaced, 0);
        }
    }
}
