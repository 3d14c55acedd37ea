//! A line whose bits are tokens that come at its rate and are kept up to a burst, as in
//! tc-tbf(8) and tc-htb(8): a packet leaves when there are tokens for all of it. A bucket that
//! keeps none is a line of that rate.

use plumb_model::units::{BitRate, ByteCount};

use super::line::Line;
use super::schedule::{Schedule, time_for};
use super::spec::ShaperSpec;
use crate::time::Time;

/// Work is counted in units of which a line of `rate` bit/s does `rate` in a nanosecond, so
/// that departures are exact without rounding errors that add up.
const WORK_PER_BYTE: u64 = 8_000_000_000;

/// The longest time that a large segment keeps the line, in nanoseconds: the granularity that
/// it adds to the traffic stays below the resolution of a delay measurement.
const WHOLE_NS: u64 = 250_000;

#[derive(Debug)]
struct Bucket {
    schedule: Schedule,
    /// The work that it keeps at most.
    burst: i128,
    /// What is in it at `since`; less than nothing by a fraction of a nanosecond's work after a
    /// departure that was rounded down to a whole one.
    tokens: i128,
    since: Time,
}

impl Bucket {
    fn full(schedule: Schedule, burst: Option<ByteCount>, now: Time) -> Self {
        let burst = burst.map_or(0, |burst| work(burst.bytes()));
        Self {
            schedule,
            burst,
            tokens: burst,
            since: now,
        }
    }

    /// Adds the tokens that come until `now`. For a packet larger than the bucket, of this much work, the bucket holds
    /// as many tokens as it needs.
    fn refill(&mut self, now: Time, packet: i128) {
        self.tokens = self.available(now).min(self.burst.max(packet));
        self.since = now;
    }

    fn available(&self, now: Time) -> i128 {
        self.tokens + self.schedule.work_between(self.since, now)
    }

    /// When there are tokens for this much work.
    fn ready(&self, work: i128) -> Time {
        match work - self.tokens {
            lacking if lacking > 0 => self.schedule.done(self.since, lacking),
            _ => self.since,
        }
    }
}

fn work(bytes: u64) -> i128 {
    i128::from(bytes) * i128::from(WORK_PER_BYTE)
}

#[derive(Debug)]
pub(crate) struct TokenBucket {
    bucket: Bucket,
    /// A line of the peak rate, through which a burst leaves; it keeps no tokens.
    peak: Option<Bucket>,
    /// Work of the packet on the line.
    packet: Option<i128>,
}

impl TokenBucket {
    /// A full bucket that exists from `now` on.
    pub(crate) fn new(spec: &ShaperSpec, now: Time) -> Self {
        Self {
            bucket: Bucket::full(spec.rates(), spec.burst, now),
            peak: peak_of(spec, now),
            packet: None,
        }
    }

    fn buckets(&mut self) -> impl Iterator<Item = &mut Bucket> {
        std::iter::once(&mut self.bucket).chain(&mut self.peak)
    }

    fn ready(&self, work: i128) -> Time {
        let main = self.bucket.ready(work);
        self.peak.as_ref().map_or(main, |p| main.max(p.ready(work)))
    }
}

fn peak_of(spec: &ShaperSpec, now: Time) -> Option<Bucket> {
    let schedule = Schedule::constant(spec.peak_rate?);
    Some(Bucket::full(schedule, None, now))
}

impl Line for TokenBucket {
    type Spec = ShaperSpec;

    fn rate(&self, now: Time) -> BitRate {
        BitRate::from_bps(self.bucket.schedule.rate(now))
    }

    fn start(&mut self, now: Time, wire_bytes: u64) -> Time {
        let packet = work(wire_bytes);
        self.buckets().for_each(|bucket| bucket.refill(now, 0));
        self.packet = Some(packet);
        self.ready(packet)
    }

    fn finish(&mut self, at: Time) {
        let packet = self.packet.take().unwrap_or(0);
        for bucket in self.buckets() {
            bucket.refill(at, packet);
            bucket.tokens -= packet;
        }
    }

    fn rest(&mut self) {}

    fn sent_bytes(&self, now: Time) -> u64 {
        // A byte has left when its end, rounded down to a nanosecond, is at most `now`.
        let next = Time::from_nanos(now.as_nanos().saturating_add(1));
        let done = self.bucket.available(next) - 1;
        u64::try_from(done / i128::from(WORK_PER_BYTE)).unwrap_or(0)
    }

    fn clears(&self, now: Time, more_bytes: u64) -> Time {
        let through = |bucket: &Bucket| {
            let left = self.packet.unwrap_or(0) + work(more_bytes) - bucket.available(now);
            let ns = time_for(left, bucket.schedule.rate(now));
            Time::from_nanos(now.as_nanos().saturating_add(ns))
        };
        let main = through(&self.bucket);
        self.peak.as_ref().map_or(main, |p| main.max(through(p)))
    }

    /// Without a burst, several segments that pass as one leave when the last of them would have left alone, and free
    /// their room one after the other. Only the first ones leave later, by [`WHOLE_NS`] at most, also at the slowest
    /// rate of a schedule. With a burst some would leave and free their room at once, so each passes alone.
    fn whole_bytes(&self) -> u64 {
        if self.bucket.burst > 0 {
            return 0;
        }
        self.bucket.schedule.slowest().saturating_mul(WHOLE_NS) / WORK_PER_BYTE
    }

    fn reconfigure(&mut self, now: Time, spec: &ShaperSpec) -> Option<Time> {
        let packet = self.packet;
        for bucket in self.buckets() {
            // What a nanosecond lacked at the old rate is not made up for at the new one.
            bucket.refill(now, packet.unwrap_or(0));
            bucket.tokens = bucket.tokens.max(0);
        }
        let main = Bucket::full(spec.rates(), spec.burst, now);
        let kept = main.burst.max(packet.unwrap_or(0));
        self.bucket = Bucket {
            tokens: self.bucket.tokens.min(kept),
            ..main
        };
        self.peak = match (self.peak.take(), peak_of(spec, now)) {
            (Some(old), Some(new)) => Some(Bucket {
                tokens: old.tokens,
                ..new
            }),
            (_, new) => new,
        };
        packet.map(|packet| self.ready(packet))
    }
}
