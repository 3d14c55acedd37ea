//! The bandwidth-delay product against the windows that both ends allow.

use plumb_model::formula::{
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, bandwidth_delay_product, window_limited_rate,
};
use plumb_model::results::{Direction, TcpResult, ThroughputResult};
use plumb_model::run::HostFacts;

/// Below this round trip, in seconds, the kernel's default windows (4 MB and more) carry over 20
/// Gbit/s: processors limit then, and what windows come to in bit/s says nothing.
const MIN_RTT_S: f64 = 0.001;

/// What one connection could carry in the direction of `throughput`; `None` where TCP reported no round trip, or one so
/// short that windows do not matter.
pub fn windows(
    throughput: &ThroughputResult,
    local: &HostFacts,
    far: Option<&HostFacts>,
) -> Option<TcpResult> {
    let rtt_s = throughput.tcp.min_rtt_s.filter(|rtt| *rtt >= MIN_RTT_S)?;
    let rate_bps = throughput.steady_bps.unwrap_or(throughput.bps);
    let (sender, receiver) = match throughput.direction {
        Direction::Down => (far, Some(local)),
        Direction::Up | Direction::Both => (Some(local), far),
    };
    let usable =
        |limits: Option<[u64; 3]>, ratio: f64| limits.map(|[_, _, largest]| largest as f64 * ratio);
    let send_window_bytes = usable(sender.and_then(|h| h.tcp_wmem_bytes), SEND_WINDOW_RATIO);
    let receive_window_bytes = usable(
        receiver.and_then(|h| h.tcp_rmem_bytes),
        RECEIVE_WINDOW_RATIO,
    );
    let one_flow_bps = send_window_bytes
        .zip(receive_window_bytes)
        .map(|(send, receive)| window_limited_rate(send.min(receive), rtt_s));
    Some(TcpResult {
        direction: throughput.direction,
        rate_bps,
        rtt_s,
        bdp_bytes: bandwidth_delay_product(rate_bps, rtt_s),
        send_window_bytes,
        receive_window_bytes,
        one_flow_bps,
    })
}
