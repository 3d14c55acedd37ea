//! How long transactions took, in bounded memory, and what that comes to. Pure.

use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::results::{CpuUse, TransactionsResult};
use plumb_model::series::{Series, Unit};
use plumb_model::summary::Summary;
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::spec::SAMPLE_INTERVAL;

/// One transaction that was completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timing {
    /// All of it; from when it was due, where that was earlier than its beginning.
    pub total: Duration,
    /// Until TCP was connected, where it had a connection of its own.
    pub connect: Option<Duration>,
    /// The TLS handshake after that, where there was one.
    pub handshake: Option<Duration>,
    /// From the request to the end of the answer.
    pub response: Duration,
}

/// Instants of completion that are kept: a segment of video a second for an hour.
const MOST_INSTANTS: usize = 4096;

/// What one stream of transactions did, or several together.
#[derive(Debug, Default)]
pub struct TransactionLog {
    streams: u64,
    count: u64,
    total: Times,
    connect: Times,
    handshake: Times,
    response: Times,
    /// Completed in each [`SAMPLE_INTERVAL`].
    completed: Vec<u64>,
    /// When each of the first [`MOST_INSTANTS`] was completed.
    completed_at_s: Vec<f64>,
    failed: u64,
    unfinished: u64,
    delayed: u64,
    error: Option<String>,
}

impl TransactionLog {
    /// The empty log of one stream.
    pub fn of_stream() -> Self {
        Self {
            streams: 1,
            ..Self::default()
        }
    }

    /// The log of a stream that never began.
    pub fn failed(why: impl Into<String>) -> Self {
        let mut log = Self::of_stream();
        log.fail(why.into());
        log
    }

    /// A transaction was completed `at` after the phase began.
    pub fn complete(&mut self, at: Duration, timing: Timing) {
        self.count += 1;
        if self.completed_at_s.len() < MOST_INSTANTS {
            self.completed_at_s.push(at.as_secs_f64());
        }
        self.total.add(timing.total);
        if let Some(connect) = timing.connect {
            self.connect.add(connect);
            // Without a connection of its own the answer is all there is.
            self.response.add(timing.response);
        }
        if let Some(handshake) = timing.handshake {
            self.handshake.add(handshake);
        }
        let bin = (at.as_secs_f64() / SAMPLE_INTERVAL.as_secs_f64()) as usize;
        if self.completed.len() <= bin {
            self.completed.resize(bin + 1, 0);
        }
        if let Some(count) = self.completed.get_mut(bin) {
            *count += 1;
        }
    }

    pub fn fail(&mut self, why: String) {
        self.failed += 1;
        self.error = Some(why);
    }

    /// The phase ended in the middle of one.
    pub fn leave_unfinished(&mut self) {
        self.unfinished += 1;
    }

    /// One began later than it was due.
    pub fn delay(&mut self) {
        self.delayed += 1;
    }

    /// Adds the log of another stream of the same kind.
    pub fn merge(&mut self, other: &Self) {
        self.streams += other.streams;
        self.count += other.count;
        self.total.merge(&other.total);
        self.connect.merge(&other.connect);
        self.handshake.merge(&other.handshake);
        self.response.merge(&other.response);
        if self.completed.len() < other.completed.len() {
            self.completed.resize(other.completed.len(), 0);
        }
        for (all, its) in self.completed.iter_mut().zip(&other.completed) {
            *all += its;
        }
        let room = MOST_INSTANTS.saturating_sub(self.completed_at_s.len());
        let more = other.completed_at_s.iter().take(room);
        self.completed_at_s.extend(more);
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.delayed += other.delayed;
        self.error = other.error.clone().or(self.error.take());
    }

    /// When each of the first [`MOST_INSTANTS`] was completed.
    pub(crate) fn completed_at_s(&self) -> &[f64] {
        &self.completed_at_s
    }

    /// How many were completed.
    pub fn completed(&self) -> u64 {
        self.count
    }

    /// What it comes to after `duration_s`.
    pub fn result(
        &self,
        flow: &TransactionFlow,
        duration_s: f64,
        cpu: CpuUse,
    ) -> TransactionsResult {
        TransactionsResult {
            transport: flow.transport,
            connect: flow.connect,
            request_bytes: flow.request_bytes.into(),
            response_bytes: flow.response_bytes.into(),
            concurrency: self.streams,
            offered_tps: flow.rate_tps.map(|rate| rate * self.streams as f64),
            completed: self.count,
            failed: self.failed,
            unfinished: self.unfinished,
            delayed: self.delayed,
            rate_tps: self.count as f64 / duration_s.max(f64::MIN_POSITIVE),
            latency_s: self.total.distribution(),
            connect_s: self.connect.distribution(),
            tls_handshake_s: self.handshake.distribution(),
            response_s: self.response.distribution(),
            error: self.error.clone(),
            cpu,
        }
    }

    /// Transactions completed since the point before, every [`SAMPLE_INTERVAL`] of the phase.
    pub fn series(&self, duration_s: f64) -> Series {
        let mut series = Series::new(Unit::Count);
        let interval_s = SAMPLE_INTERVAL.as_secs_f64();
        let intervals = (duration_s / interval_s).round() as usize;
        for bin in 0..intervals {
            let count = self.completed.get(bin).copied().unwrap_or(0);
            // Milliseconds, so that tenths are written as tenths.
            let t_s = ((bin + 1) as f64 * interval_s * 1e3).round() / 1e3;
            series.push(t_s, Some(count as f64));
        }
        series
    }
}

/// Times of one kind; nothing is set aside for those that do not come.
#[derive(Debug, Default)]
struct Times(Option<Summary>);

impl Times {
    fn add(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.get_or_insert_default().record(ns, 1);
    }

    fn merge(&mut self, other: &Self) {
        if let Some(times) = &other.0 {
            self.0.get_or_insert_default().merge(times);
        }
    }

    fn distribution(&self) -> Option<Distribution> {
        self.0.as_ref()?.distribution()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_model::protocol::Protocol;

    fn flow(connect: bool) -> TransactionFlow {
        TransactionFlow {
            transport: Protocol::Tls,
            connect,
            request_bytes: 1,
            response_bytes: 1,
            rate_tps: Some(5.0),
            on_demand: false,
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_rate_is_what_was_completed_over_the_phase() {
        let mut log = TransactionLog::of_stream();
        for k in 0..100 {
            let timing = Timing {
                total: ms(30),
                connect: Some(ms(10)),
                handshake: Some(ms(11)),
                response: ms(9),
            };
            log.complete(ms(30 * (k + 1)), timing);
        }
        log.fail("refused".into());
        log.leave_unfinished();
        let mut other = TransactionLog::of_stream();
        other.delay();
        other.merge(&log);
        let result = other.result(&flow(true), 4.0, CpuUse::default());
        assert_eq!(
            (
                result.completed,
                result.failed,
                result.unfinished,
                result.delayed
            ),
            (100, 1, 1, 1)
        );
        assert_eq!(
            (result.rate_tps, result.concurrency, result.offered_tps),
            (25.0, 2, Some(10.0))
        );
        assert_eq!(result.error.as_deref(), Some("refused"));
        let median = |part: Option<Distribution>| (part.unwrap().p50 * 1e5).round();
        let parts = [
            result.latency_s,
            result.connect_s,
            result.tls_handshake_s,
            result.response_s,
        ];
        assert_eq!(parts.map(median), [3000.0, 1000.0, 1100.0, 900.0]);
        let series = other.series(4.0);
        assert_eq!((series.t_s.len(), series.t_s[2]), (40, 0.3));
        assert_eq!(series.points().map(|p| p.1).sum::<f64>(), 100.0);
        assert_eq!(series.values[35], Some(0.0));
    }

    #[test]
    fn nothing_completed_has_no_times() {
        let result = TransactionLog::failed("gone").result(&flow(false), 1.0, CpuUse::default());
        assert_eq!(
            (result.latency_s, result.rate_tps, result.failed),
            (None, 0.0, 1)
        );
    }

    #[test]
    fn the_times_of_several_streams_are_those_of_all() {
        let log_of = |times: &[u64]| {
            let mut log = TransactionLog::of_stream();
            for time in times {
                let total = ms(*time);
                log.complete(
                    total,
                    Timing {
                        total,
                        ..Timing::default()
                    },
                );
            }
            log
        };
        let mut log = log_of(&[10, 30]);
        log.merge(&log_of(&[20]));
        log.merge(&TransactionLog::of_stream());
        let times = log
            .result(&flow(false), 1.0, CpuUse::default())
            .latency_s
            .unwrap();
        assert_eq!((times.count, times.min, times.max), (3, 0.010, 0.030));
        assert!(
            (times.mean - 0.020).abs() < 1e-9 && (times.p50 - 0.020).abs() < 2e-5,
            "{times:?}"
        );
    }
}
