//! The logs of one direction as series. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plumb_model::results::LimitedTime;
use plumb_model::series::{Series, Unit};
use plumb_wire::native::control::report::{Count, SenderLog, TcpSample};

use crate::limits::shares;
use crate::logs::{DirectionLogs, acknowledged, count_at};

/// The series of [`crate::DirectionOutcome`].
pub(crate) fn series(logs: &DirectionLogs<'_>) -> BTreeMap<String, Series> {
    let mut all = BTreeMap::new();
    let counts: Vec<_> = arrived(logs).into_values().collect();
    all.insert("bps".to_owned(), arrived_rate(logs, &counts));
    let within = |t_s: f64| t_s <= logs.duration_s;
    let sum = |value: fn(&TcpSample) -> u64, unit| {
        over_time(logs.senders, unit, within, |at| {
            Some(at.iter().map(|sample| value(sample) as f64).sum())
        })
    };
    all.insert("cwnd_bytes".to_owned(), sum(|s| s.cwnd_bytes, Unit::Bytes));
    all.insert(
        "in_flight_bytes".to_owned(),
        sum(|s| s.in_flight_bytes, Unit::Bytes),
    );
    let since_first = |count: fn(&TcpSample) -> Option<u64>| {
        let of = |samples: &mut dyn Iterator<Item = &TcpSample>| {
            let counts = samples.map(|sample| Some(count(sample)? as f64));
            counts.sum::<Option<f64>>()
        };
        let before = of(&mut logs.senders.iter().filter_map(|log| log.samples.first()))?;
        Some(over_time(logs.senders, Unit::Count, within, |at| {
            Some(of(&mut at.iter().copied())? - before)
        }))
    };
    let counts = [
        (
            "retransmits",
            since_first(|sample| Some(sample.retransmits)),
        ),
        ("spurious_retransmits", since_first(|sample| sample.twice)),
    ];
    for (name, count) in counts {
        all.extend(count.map(|series| (name.to_owned(), series)));
    }
    all.insert(
        "srtt_s".to_owned(),
        over_time(logs.senders, Unit::Seconds, within, |at| {
            let known: Vec<f64> = at
                .iter()
                .filter(|s| s.srtt_us > 0)
                .map(|s| s.srtt_us as f64 / 1e6)
                .collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        }),
    );
    tcp_rates(logs, &mut all);
    limited(logs, &mut all);
    all
}

/// The rates of the sending TCPs: how fast they may send, and how fast it is acknowledged.
fn tcp_rates(logs: &DirectionLogs<'_>, all: &mut BTreeMap<String, Series>) {
    let within = |t_s: f64| t_s <= logs.duration_s;
    let sum = |value: fn(&TcpSample) -> Option<u64>| {
        over_time(logs.senders, Unit::BitsPerSecond, within, |at| {
            at.iter()
                .map(|sample| value(sample).map(|bps| bps as f64))
                .sum()
        })
    };
    all.insert("pacing_bps".to_owned(), sum(|s| s.pacing_bps));
    all.insert("delivery_bps".to_owned(), sum(|s| Some(s.delivery_bps)));
}

/// What held the senders back since the sample before.
fn limited(logs: &DirectionLogs<'_>, all: &mut BTreeMap<String, Series>) {
    /// The name of a column and its value.
    type Share = (&'static str, fn(&LimitedTime) -> f64);
    let names: [Share; 4] = [
        ("rwnd_limited_ratio", |l| l.rwnd_ratio),
        ("sndbuf_limited_ratio", |l| l.sndbuf_ratio),
        ("app_limited_ratio", |l| l.app_ratio),
        ("network_limited_ratio", |l| l.network_ratio),
    ];
    let mut series = names.map(|_| Series::new(Unit::Ratio));
    let rounds = logs.senders.iter().map(|log| log.samples.len()).max();
    for round in 1..rounds.unwrap_or(0) {
        let pairs = || {
            logs.senders
                .iter()
                .filter_map(move |log| log.samples.get(round - 1).zip(log.samples.get(round)))
        };
        let Some(t_s) = pairs().map(|(_, now)| now.t_s).next() else {
            continue;
        };
        if t_s > logs.duration_s {
            break;
        }
        let shares = shares(pairs());
        for (series, (_, share)) in series.iter_mut().zip(&names) {
            series.push(t_s, shares.as_ref().map(share));
        }
    }
    for (series, (name, _)) in series.into_iter().zip(names) {
        all.insert(name.to_owned(), series);
    }
}

/// One value for each round of samples; all streams of an end are sampled together.
fn over_time(
    senders: &[SenderLog],
    unit: Unit,
    within: impl Fn(f64) -> bool,
    value: impl Fn(&[&TcpSample]) -> Option<f64>,
) -> Series {
    let mut series = Series::new(unit);
    let rounds = senders
        .iter()
        .map(|log| log.samples.len())
        .max()
        .unwrap_or(0);
    for round in 0..rounds {
        let at: Vec<_> = senders
            .iter()
            .filter_map(|log| log.samples.get(round))
            .collect();
        if let Some(t_s) = at
            .first()
            .map(|sample| sample.t_s)
            .filter(|t_s| within(*t_s))
        {
            series.push(t_s, value(&at));
        }
    }
    series
}

/// What each stream carried over time, by its number.
pub(crate) fn stream_rates(logs: &DirectionLogs<'_>) -> BTreeMap<u32, Series> {
    let all = arrived(logs).into_iter();
    all.map(|(stream, counts)| (stream, arrived_rate(logs, &[counts])))
        .collect()
}

/// What arrived of each stream, on the clock of the client: what its receiver counted, or, where the
/// record of that end is missing, what the sender saw acknowledged. TLS has records acknowledged, whose
/// payload is not known.
fn arrived<'a>(logs: &DirectionLogs<'a>) -> BTreeMap<u32, Cow<'a, [Count]>> {
    if logs.receivers.is_empty() && logs.tls.is_none() {
        let senders = logs.senders.iter();
        return senders
            .map(|log| (log.tail.stream, acknowledged(&log.samples).into()))
            .collect();
    }
    let receivers = logs.receivers.iter();
    receivers
        .map(|log| (log.tail.stream, log.counts.as_slice().into()))
        .collect()
}

/// What arrived of some of the streams, over time.
fn arrived_rate(logs: &DirectionLogs<'_>, streams: &[Cow<'_, [Count]>]) -> Series {
    // What a sender knows, it knows on its own clock, and that is the client's.
    let shift_s = match logs.receivers {
        [] => 0.0,
        _ => logs.receiver_shift_s,
    };
    let mut series = Series::new(Unit::BitsPerSecond);
    let Some(longest) = streams.iter().max_by_key(|counts| counts.len()) else {
        return series;
    };
    let mut before = (0.0, 0.0);
    for count in longest.iter() {
        // The last bin ends with the phase; its record may come a little later.
        let t_s = (count.t_s - shift_s).min(logs.duration_s);
        let bytes = streams
            .iter()
            .map(|counts| count_at(counts, t_s + shift_s))
            .sum::<f64>();
        if t_s - before.0 >= SHORTEST_BIN_S {
            series.push(
                (t_s * 1e6).round() / 1e6,
                Some((bytes - before.1) * 8.0 / (t_s - before.0)),
            );
            before = (t_s, bytes);
        }
    }
    series
}

/// Half the interval between samples: a shorter remainder would give the rate of a few packets.
const SHORTEST_BIN_S: f64 = 0.05;
