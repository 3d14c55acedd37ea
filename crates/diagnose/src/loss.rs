//! Packets lost while nothing loads the path: by radio, a bad line, or a queue that others fill.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::loss::at_least_ratio;
use plumb_model::results::ProbeProtocol;

use crate::Case;
use crate::evidence::Idle;

/// Loss that TCP feels on long paths: at 100 ms CUBIC carries some 4 Mbit/s (RFC 9438, section 5.1).
pub(crate) const LOSS_WARNING: f64 = 0.001;
/// Loss that calls feel, whatever they do to hide it: it takes G.711 with concealment from an R of 93
/// to 77 (G.113 appendix I, G.107), where users begin to complain; and it leaves TCP a few Mbit/s.
pub(crate) const LOSS_CRITICAL: f64 = 0.05;

/// A host that is asked for more echoes than it answers loses none: what is known by ICMP alone is
/// as good as a guess.
const ICMP_CONFIDENCE: f64 = 0.6;

pub(crate) fn examine(case: &Case<'_>) -> Vec<Finding> {
    case.idle().and_then(finding).into_iter().collect()
}

fn finding(idle: Idle<'_>) -> Option<Finding> {
    let ping = idle.result;
    let (sent, lost) = (idle.sent(), idle.lost());
    let least = at_least_ratio(sent, lost);
    if least < LOSS_WARNING {
        return None;
    }
    let by_icmp = ping.protocol == ProbeProtocol::Icmp;
    if ping.received == 0 {
        // Where no probe at all is answered they are filtered, which is common and no loss.
        return None;
    }
    let doubt = match by_icmp {
        true => ", or the far end answers seldom",
        false => "",
    };
    Some(Finding {
        cause: Cause::PathLoss,
        place: Place::Path,
        severity: match least >= LOSS_CRITICAL && !by_icmp {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        // One lost probe may be chance; ten are not.
        confidence: match by_icmp {
            true => ICMP_CONFIDENCE,
            false => (1.0 - 0.5f64.powf(lost as f64)).min(0.99),
        },
        matters_for: Vec::new(),
        summary: format!(
            "Packets are lost while nothing of ours loads the path: {lost} of {sent} probes got no answer ({:.1} %, and of all at least {:.1} %){doubt}.{}",
            lost as f64 / sent as f64 * 100.0,
            least * 100.0,
            match ping.corrupted {
                0 => String::new(),
                corrupted => format!(
                    " {corrupted} of the answers came with a wrong checksum: the path corrupts packets."
                ),
            },
        ),
        evidence: vec![Evidence {
            measurement: idle.measurement.id.clone(),
            field: "result.loss_ratio".to_owned(),
            value: (lost as f64 / sent as f64).into(),
            rule: "share of idle probes lost, but for those that this host dropped itself (result.dropped_here); a finding where so many losses would be unlikely (2.5 %) under the threshold".to_owned(),
            threshold: LOSS_WARNING.into(),
        }],
        fixes: vec![Fix {
            on: Actor::ThisHost,
            summary: "Try a cable in place of Wi-Fi; then look where the loss begins: `plumb path HOST --continuous`. From the provider's first router on, it is the provider's to fix.".to_owned(),
            action: None,
            commands: Vec::new(),
            expect: "No probes are lost while the path is idle.".to_owned(),
        }],
        kb: "loss".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::testing::measurement;
    use plumb_model::context::Phase;
    use plumb_model::results::udp::LossPattern;
    use plumb_model::results::{Outcome, PingResult, TimestampSource};
    use plumb_model::run::HostFacts;
    use std::collections::BTreeMap;

    fn found(protocol: ProbeProtocol, [sent, received, dropped_here]: [u64; 3]) -> Vec<Finding> {
        let ping = PingResult {
            protocol,
            address: "192.0.2.1".to_owned(),
            sent,
            received,
            loss_ratio: Some((sent - received) as f64 / sent as f64),
            duplicates: 0,
            reordered: 0,
            late: 0,
            losses: LossPattern::default(),
            hop_limits: Vec::new(),
            hop_limit_changes: 0,
            icmp_errors: BTreeMap::new(),
            answers: BTreeMap::new(),
            phases: None,
            sizes: Vec::new(),
            send_errors: 0,
            dropped_here,
            corrupted: 0,
            rtt_s: None,
            lateness_s: None,
            timestamps: TimestampSource::Kernel,
        };
        let mut idle = measurement(Outcome::Ping(ping));
        idle.context.phase = Some(Phase::Idle);
        examine(&Case {
            measurements: &[idle],
            local: &HostFacts::default(),
            far: None,
        })
    }

    #[test]
    fn as_many_losses_as_chance_does_not_explain_are_a_finding() {
        use ProbeProtocol::{Icmp, Udp};
        assert_eq!(found(Udp, [100, 100, 0]), []);
        assert_eq!(found(Udp, [100, 99, 0]), [], "one may be chance");
        assert_eq!(found(Udp, [100, 90, 10]), [], "lost here");
        let some = found(Udp, [100, 97, 0]);
        assert_eq!(some[0].severity, Severity::Warning);
        assert!(some[0].summary.contains("3 of 100"), "{}", some[0].summary);
        assert_eq!(found(Udp, [100, 80, 0])[0].severity, Severity::Critical);
        let guessed = &found(Icmp, [100, 80, 0])[0];
        assert_eq!(guessed.severity, Severity::Warning);
        assert!(guessed.confidence < 0.7);
        assert_eq!(found(Icmp, [50, 0, 0]), [], "filtered");
        assert_eq!(found(Udp, [250, 0, 0]), [], "filtered");
    }
}
