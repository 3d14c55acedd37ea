//! What the rates of an application, of TCP and of UDP say beside each other (PERT guides,
//! "Available bandwidth measurements"). Pure.

use plumb_model::results::LimitedTime;
use plumb_model::results::available_bandwidth::RateLimit;

/// A rate below this part of the next one is held back by something of its own. TCP sends in bursts
/// and backs off, so it stays some percent below a steady stream that is allowed to lose 1 %.
const MUCH_LESS: f64 = 0.85;

/// Share of time from which on a limit of TCP is named: most of what it was not the network's.
const MUCH_TIME: f64 = 0.3;

/// Which of the three is the narrow one. `udp_bps` is the highest rate that passed; unless a little
/// more did not, so that it is `known_closely`, nothing can be said of what the path does not carry.
pub fn narrow_one(
    application_bps: Option<f64>,
    tcp_bps: f64,
    tcp_limited: &LimitedTime,
    (udp_bps, known_closely): (Option<f64>, bool),
) -> RateLimit {
    if application_bps.is_some_and(|application| application < MUCH_LESS * tcp_bps) {
        return RateLimit::Application;
    }
    match udp_bps {
        None => RateLimit::Unknown,
        Some(udp) if tcp_bps >= MUCH_LESS * udp => match known_closely {
            true => RateLimit::Path,
            false => RateLimit::Unknown,
        },
        Some(_) if tcp_limited.rwnd_ratio >= MUCH_TIME => RateLimit::TcpReceiveWindow,
        Some(_) if tcp_limited.sndbuf_ratio >= MUCH_TIME => RateLimit::TcpSendBuffer,
        // The sender of the measurement had nothing to send: its host was too slow.
        Some(_) if tcp_limited.app_ratio >= MUCH_TIME => RateLimit::Application,
        Some(_) => RateLimit::TcpCongestionControl,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(rwnd_ratio: f64, sndbuf_ratio: f64, app_ratio: f64) -> LimitedTime {
        LimitedTime {
            rwnd_ratio,
            sndbuf_ratio,
            app_ratio,
            network_ratio: 1.0 - rwnd_ratio - sndbuf_ratio - app_ratio,
        }
    }

    #[test]
    fn the_narrow_one_is_named() {
        let by_network = limited(0.0, 0.05, 0.05);
        let named = |application, tcp, limits: &LimitedTime, udp| {
            narrow_one(application, tcp, limits, (udp, true))
        };
        assert_eq!(named(None, 46e6, &by_network, Some(48e6)), RateLimit::Path);
        assert_eq!(
            named(Some(45e6), 46e6, &by_network, Some(48e6)),
            RateLimit::Path
        );
        assert_eq!(
            named(Some(3e6), 46e6, &by_network, Some(48e6)),
            RateLimit::Application
        );
        assert_eq!(
            named(Some(3e6), 46e6, &by_network, None),
            RateLimit::Application
        );
        assert_eq!(
            named(None, 5e6, &limited(0.9, 0.0, 0.0), Some(48e6)),
            RateLimit::TcpReceiveWindow
        );
        assert_eq!(
            named(None, 5e6, &limited(0.0, 0.8, 0.1), Some(48e6)),
            RateLimit::TcpSendBuffer
        );
        assert_eq!(
            named(None, 5e6, &limited(0.1, 0.0, 0.8), Some(48e6)),
            RateLimit::Application
        );
        assert_eq!(
            named(None, 5e6, &by_network, Some(48e6)),
            RateLimit::TcpCongestionControl
        );
        assert_eq!(named(None, 5e6, &by_network, None), RateLimit::Unknown);
    }

    #[test]
    fn what_passed_without_anything_failing_says_nothing_against_the_path() {
        let by_network = limited(0.0, 0.05, 0.05);
        let named =
            |tcp, limits: &LimitedTime| narrow_one(None, tcp, limits, (Some(17.8e6), false));
        assert_eq!(named(18.8e6, &by_network), RateLimit::Unknown);
        // That the path carries more than TCP had is known all the same.
        assert_eq!(
            named(5e6, &limited(0.9, 0.0, 0.0)),
            RateLimit::TcpReceiveWindow
        );
    }
}
