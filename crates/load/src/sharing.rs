//! How the streams of one direction shared it. Pure.

use std::ops::Range;

use plumb_model::distribution::Distribution;
use plumb_model::fairness::jain_index;
use plumb_model::results::StreamResult;
use plumb_model::results::sharing::{GroupShare, Sharing};
use plumb_model::series::{Series, Unit};

use crate::logs::{DirectionLogs, congestion_controls, count_at};

/// Fairness is looked at in seconds: in tenths of them, how segments happen to fall decides.
const BIN_S: f64 = 1.0;

/// How they shared it; none with fewer than two streams.
pub(crate) fn sharing(logs: &DirectionLogs<'_>, streams: &[StreamResult]) -> Option<Sharing> {
    if streams.len() < 2 {
        return None;
    }
    let rates: Vec<f64> = streams.iter().map(|stream| stream.bps).collect();
    let all: f64 = rates.iter().sum();
    let group = |numbers: &Range<u32>| {
        let bps: f64 = streams
            .iter()
            .filter(|stream| numbers.contains(&stream.id))
            .map(|stream| stream.bps)
            .sum();
        GroupShare {
            cc: congestion_controls(
                logs.senders
                    .iter()
                    .filter(|log| numbers.contains(&log.tail.stream)),
            ),
            first_stream: numbers.start,
            streams: numbers.len() as u32,
            bps,
            share_ratio: if all > 0.0 { bps / all } else { 0.0 },
            even_share_ratio: numbers.len() as f64 / streams.len() as f64,
        }
    };
    Some(Sharing {
        jain_index: jain_index(&rates),
        jain_index_each_second: Distribution::of(
            index_over_time(logs).points().map(|(_, index)| index),
        ),
        groups: logs.groups.iter().map(group).collect(),
    })
}

/// `jain_index` over time, where there are several streams.
pub(crate) fn index_series(logs: &DirectionLogs<'_>) -> Option<(String, Series)> {
    let several = logs.receivers.len() > 1;
    several.then(|| ("jain_index".to_owned(), index_over_time(logs)))
}

/// Jain's index of each whole second of the phase, at its end.
fn index_over_time(logs: &DirectionLogs<'_>) -> Series {
    let mut series = Series::new(Unit::Count);
    let bins = (logs.duration_s / BIN_S) as u32;
    let at = |bin: u32| f64::from(bin) * BIN_S;
    for bin in 1..=bins {
        let carried = logs.receivers.iter().map(|log| {
            let until = |t_s: f64| count_at(&log.counts, t_s + logs.receiver_shift_s);
            until(at(bin)) - until(at(bin - 1))
        });
        series.push(at(bin), jain_index(&carried.collect::<Vec<_>>()));
    }
    series
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::summary::{DirectionOutcome, summarise};
    use plumb_model::results::{CpuUse, Direction};
    use plumb_wire::native::control::report::{
        Count, ReceiverLog, ReceiverTail, SenderLog, SenderTail,
    };

    /// A stream that carries so many megabits in each second.
    fn stream(number: u32, cc: &str, mbps: &[f64]) -> (SenderLog, ReceiverLog) {
        let mut bytes = 0.0;
        let mut counts = vec![Count::default()];
        for tenth in 0..mbps.len() * 10 {
            bytes += mbps[tenth / 10] * 1e6 / 80.0;
            counts.push(Count {
                t_s: (tenth + 1) as f64 / 10.0,
                bytes: bytes as u64,
                ..Count::default()
            });
        }
        let tail = SenderTail {
            stream: number,
            cc: cc.to_owned(),
            ..SenderTail::default()
        };
        let sender = SenderLog {
            tail,
            samples: Vec::new(),
        };
        let tail = ReceiverTail {
            stream: number,
            ..ReceiverTail::default()
        };
        (sender, ReceiverLog { tail, counts })
    }

    fn summary(
        senders: &[SenderLog],
        receivers: &[ReceiverLog],
        groups: &[Range<u32>],
        duration_s: f64,
    ) -> DirectionOutcome {
        summarise(&DirectionLogs {
            direction: Direction::Down,
            senders,
            receivers,
            groups,
            duration_s,
            receiver_shift_s: 0.0,
            all_arrived: false,
            cpu: CpuUse::default(),
            tls: None,
        })
    }

    #[test]
    fn shares_by_hand() {
        // 3 and 1, then 2 and 2, then 1 and 3 Mbit/s beside 4, 4 and 4.
        let (senders, receivers): (Vec<_>, Vec<_>) = [
            stream(0, "cubic", &[3.0, 2.0, 1.0]),
            stream(1, "cubic", &[1.0, 2.0, 3.0]),
            stream(2, "bbr", &[4.0, 4.0, 4.0]),
        ]
        .into_iter()
        .unzip();
        let outcome = summary(&senders, &receivers, &[0..2, 2..3], 3.0);
        let shared = outcome.result.sharing.unwrap();
        // 2, 2 and 4 Mbit/s in all: 8² / (3 · 24).
        assert!((shared.jain_index.unwrap() - 64.0 / 72.0).abs() < 1e-6);
        let [cubic, bbr] = shared.groups.as_slice() else {
            panic!("{:?}", shared.groups)
        };
        assert_eq!(
            (cubic.cc.as_str(), cubic.first_stream, cubic.streams),
            ("cubic", 0, 2)
        );
        assert_eq!(
            (bbr.cc.as_str(), bbr.first_stream, bbr.streams),
            ("bbr", 2, 1)
        );
        assert!((cubic.bps - 4e6).abs() < 10.0 && (bbr.bps - 4e6).abs() < 10.0);
        assert!((cubic.share_ratio - 0.5).abs() < 1e-6);
        assert!((cubic.even_share_ratio - 2.0 / 3.0).abs() < 1e-9);
        // Of the seconds: 8² / (3 · 26), 8² / (3 · 24), 8² / (3 · 26).
        let index: Vec<_> = outcome.series["jain_index"].points().collect();
        for ((t_s, index), (at, squares)) in
            index.iter().zip([(1.0, 26.0), (2.0, 24.0), (3.0, 26.0)])
        {
            assert!((t_s - at).abs() < 1e-9 && (index - 64.0 / (3.0 * squares)).abs() < 1e-6);
        }
        assert_eq!(index.len(), 3);
        let each = shared.jain_index_each_second.unwrap();
        assert!((each.max - 64.0 / 72.0).abs() < 1e-6 && each.count == 3);
    }

    #[test]
    fn one_stream_shares_with_nobody() {
        let (sender, receiver) = stream(0, "cubic", &[1.0]);
        let one = std::slice::from_ref(&(0..1));
        let outcome = summary(&[sender], &[receiver], one, 1.0);
        assert_eq!(outcome.result.sharing, None);
        assert!(!outcome.series.contains_key("jain_index"));
    }
}
