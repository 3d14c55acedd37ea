//! One copy by SSH cannot fill the path: its channel has a window of 2 MiB.
//!
//! OpenSSH limits what is under way in a channel to 2 MiB whatever TCP could (channels.h, CHAN_SES_WINDOW_DEFAULT, 64 packets of
//! 32 KiB since 4.7), so that scp, sftp and rsync over it carry at most 2 MiB each round trip. SFTP's own requests under way come
//! to the same (64 of 32 KiB, sftp.c). Computed from the round trip, where a check is for transfers or backups; which program
//! copies is not known.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::goal::Purpose;
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;

/// What may be under way in a channel of OpenSSH, in bytes.
const WINDOW_BYTES: f64 = (64 * 32 * 1024) as f64;

/// Above this share of what the path carries the window costs less than TCP's own reserve.
const ENOUGH_RATIO: f64 = 0.9;

/// The window is OpenSSH's; other programs have others.
const CONFIDENCE: f64 = 0.9;

/// The most copies at once that are advised: OpenSSH's server begins to drop new connections at 10 (MaxStartups).
const MOST_AT_ONCE: f64 = 10.0;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a transfer of the same file without SSH, or several by SSH at once, carry more",
    needs: &[Need::Idle, Need::SmallObjects],
    resembles: &[
        (
            Cause::ReceiveBufferSmall,
            "there every program is held back, by the kernel's buffer",
        ),
        (
            Cause::CipherSlow,
            "there a processor is busy, and a nearer far end is no faster",
        ),
    ],
    examine: |case| found(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn found(case: &Case<'_>) -> Option<Finding> {
    let asked = case.asked?;
    matches!(asked.purpose, Some(Purpose::Transfer | Purpose::Backup)).then_some(())?;
    let idle = case.idle()?;
    let rtt_s = idle.result.rtt_s?.p50;
    let directions = [Direction::Up, Direction::Down].into_iter();
    let loads = directions.filter_map(|direction| case.full_load(direction));
    let fastest = loads.max_by(|a, b| a.bps().total_cmp(&b.bps()))?;
    let wanted_bps = asked
        .rate_bps
        .map_or(fastest.bps(), |goal| goal.min(fastest.bps()));
    let ssh_bps = WINDOW_BYTES * 8.0 / rtt_s;
    let missed = asked
        .rate_bps
        .is_some_and(|goal| ssh_bps < goal && goal <= fastest.bps());
    let at_once = (fastest.bps() / ssh_bps).ceil().min(MOST_AT_ONCE);
    (ssh_bps < ENOUGH_RATIO * wanted_bps).then(|| Finding {
        cause: Cause::SshWindow,
        place: Place::ThisHost,
        severity: match missed {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "One copy by SSH (scp, sftp, rsync over it) would carry at most {} of the {} that this path does: OpenSSH lets 2 MiB be under way, and a round trip takes {}.",
            si(ssh_bps, "bit/s"),
            si(fastest.bps(), "bit/s"),
            human_seconds(rtt_s)
        ),
        evidence: vec![fact(
            idle.measurement,
            "rtt_s.p50",
            rtt_s,
            "median of idle round trips, against the longest at which a window of 2 MiB is enough",
            WINDOW_BYTES * 8.0 / wanted_bps,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            format!(
                "For large files, copy about {at_once:.0} at once, or by a program without a window of its own: rsync to its daemon, HTTPS (curl, rclone), or SSH with HPN's patches at both ends."
            ),
            format!("Up to {} together.", si(fastest.bps(), "bit/s")),
        )],
        kb: "copies".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_model::goal::Asked;
    use plumb_model::protocol::Protocol;

    use super::*;
    use crate::testing::{carrying, idle};

    /// What is found on a path of that round trip that carries 500 Mbit/s up.
    fn at(rtt_s: f64, purpose: Option<Purpose>, rate_bps: Option<f64>) -> Vec<Finding> {
        let asked = Asked {
            purpose,
            rate_bps,
            ..Asked::default()
        };
        (CAUSE.examine)(&Case {
            measurements: &[
                idle(Protocol::Udp, 200, 200, rtt_s),
                carrying(Direction::Up, 5e8),
            ],
            local: &Default::default(),
            far: None,
            asked: Some(&asked),
            log: None,
        })
    }

    #[test]
    fn a_long_path_carries_more_than_a_channel() {
        let transfer = Some(Purpose::Transfer);
        let [found] = at(0.1, transfer, None).try_into().unwrap();
        assert_eq!(found.severity, Severity::Info);
        // 2^21 bytes each 100 ms.
        assert!(
            found
                .summary
                .contains("at most 168 Mbit/s of the 500 Mbit/s"),
            "{}",
            found.summary
        );
        assert_eq!(at(0.03, transfer, None), [], "559 Mbit/s are enough");
        assert_eq!(at(0.1, None, None), [], "nobody asked for a copy");
        let [missed] = at(0.1, transfer, Some(4e8)).try_into().unwrap();
        assert_eq!(missed.severity, Severity::Warning);
        assert_eq!(at(0.1, transfer, Some(1e8)), [], "the goal is reached");
    }
}
