//! What held the senders back: shares of time between two samples. Pure.
//!
//! The counters are the kernel's `tcp_chrono_*` (Linux `net/ipv4/tcp_output.c`). They tick in milliseconds and are read
//! one after the other, so what they leave over or exceed goes to the application or is cut.

use plumb_model::results::LimitedTime;
use plumb_wire::native::control::report::{SenderLog, TcpSample};

/// Shares of the senders' time, from the first sample to the last one of the phase; all of it the
/// application's where there is no time, and nothing where they reported nothing.
pub(crate) fn limited_time(senders: &[SenderLog], duration_s: f64) -> LimitedTime {
    let app_ratio = if senders.is_empty() { 0.0 } else { 1.0 };
    let ends = senders.iter().filter_map(|log| {
        let within = log
            .samples
            .partition_point(|sample| sample.t_s <= duration_s);
        // A phase shorter than the interval has only the sample at its end.
        let last = log
            .samples
            .get(within.saturating_sub(1))
            .filter(|_| within > 1)
            .or(log.samples.last());
        began(&log.samples).zip(last)
    });
    shares(ends).unwrap_or(LimitedTime {
        rwnd_ratio: 0.0,
        sndbuf_ratio: 0.0,
        app_ratio,
        network_ratio: 0.0,
    })
}

/// The last sample before a sender's first byte, from where on something held it back: streams of a load may begin one after
/// the other. `None` where none was sent.
fn began(samples: &[TcpSample]) -> Option<&TcpSample> {
    let first = samples.first()?;
    let idle = samples.partition_point(|sample| sample.busy_us <= first.busy_us);
    (idle < samples.len()).then(|| samples.get(idle.saturating_sub(1)))?
}

/// Shares of time between pairs of samples, each of one sender.
pub(crate) fn shares<'a>(
    pairs: impl Iterator<Item = (&'a TcpSample, &'a TcpSample)>,
) -> Option<LimitedTime> {
    let (mut elapsed, mut busy, mut rwnd, mut sndbuf) = (0.0, 0.0, 0.0, 0.0);
    for (first, last) in pairs {
        let since = |counter: fn(&TcpSample) -> u64| {
            counter(last).saturating_sub(counter(first)) as f64 / 1e6
        };
        elapsed += last.t_s - first.t_s;
        busy += since(|s| s.busy_us);
        rwnd += since(|s| s.rwnd_limited_us);
        sndbuf += since(|s| s.sndbuf_limited_us);
    }
    let network = (busy - rwnd - sndbuf).max(0.0);
    let app = (elapsed - busy).max(0.0);
    let whole = rwnd + sndbuf + network + app;
    (whole > 0.0).then(|| LimitedTime {
        rwnd_ratio: rwnd / whole,
        sndbuf_ratio: sndbuf / whole,
        app_ratio: app / whole,
        network_ratio: network / whole,
    })
}
