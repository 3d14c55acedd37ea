//! What TCP remembers of other ends (`linux/tcp_metrics.h`, `net/ipv4/tcp_metrics.c`).

use plumb_model::results::host::CachedMetrics;

use super::NetlinkError;
use super::attribute::{attributes, find};
use super::generic::Family;

/// `TCP_METRICS_CMD_GET`.
const GET: u8 = 1;

/// What is remembered in the namespace of the calling thread.
///
/// # Errors
/// Errors of the kernel.
pub fn tcp_metrics() -> Result<Vec<CachedMetrics>, NetlinkError> {
    let mut family = Family::open("tcp_metrics", "cached TCP metrics")?;
    let answers = family.list(GET, &[])?;
    Ok(answers.iter().filter_map(|body| metrics(body)).collect())
}

fn metrics(body: &[u8]) -> Option<CachedMetrics> {
    let address = |kinds: [u16; 2]| {
        let found = kinds.into_iter().find_map(|kind| find(body, kind));
        found.and_then(|a| a.address()).map(|a| a.to_string())
    };
    let mut read = CachedMetrics {
        remote: address([1, 2])?,
        local: address([11, 12]),
        // TCP_METRICS_ATTR_AGE, milliseconds.
        age_s: find(body, 3)
            .and_then(|a| a.u64())
            .map(|ms| ms as f64 / 1e3),
        ..CachedMetrics::default()
    };
    // TCP_METRICS_ATTR_VALS: each `enum tcp_metric_index` plus one. The smoothed round trip is
    // kept times eight and its deviation times four (Jacobson's fixed point).
    let values = find(body, 6).map(|a| a.value).unwrap_or_default();
    for value in attributes(values) {
        let number = value.u32();
        match value.kind {
            3 => read.ssthresh_segments = number,
            4 => read.cwnd_segments = number,
            5 => read.reordering_segments = number,
            6 => read.rtt_s = number.map(|n| f64::from(n) / 8e6),
            7 => read.rttvar_s = number.map(|n| f64::from(n) / 4e6),
            _ => {}
        }
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::attribute::encode;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_entry_is_read_in_seconds() {
        let values = [
            encode(3, &20_u32.to_ne_bytes()),
            encode(4, &31_u32.to_ne_bytes()),
            encode(6, &800_000_u32.to_ne_bytes()),
            encode(7, &40_000_u32.to_ne_bytes()),
        ];
        let body = [
            encode(1, &[192, 0, 2, 1]),
            encode(3, &2500_u64.to_ne_bytes()),
            encode(6, &values.concat()),
            encode(11, &[192, 0, 2, 2]),
        ];
        let read = metrics(&body.concat()).unwrap();
        assert_eq!(
            (read.remote.as_str(), read.local.as_deref()),
            ("192.0.2.1", Some("192.0.2.2"))
        );
        assert_eq!(
            (read.rtt_s, read.rttvar_s, read.age_s),
            (Some(0.1), Some(0.01), Some(2.5))
        );
        assert_eq!(
            (read.ssthresh_segments, read.cwnd_segments),
            (Some(20), Some(31))
        );
        assert_eq!(metrics(&[]), None, "nobody is remembered");
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..150)) {
            let _ = metrics(&body);
        }
    }
}
