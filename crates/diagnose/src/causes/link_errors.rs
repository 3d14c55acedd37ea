//! A link damages frames.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, one_in, ratio};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another cable or module, or clean connectors, leaves the counters of errors still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there this machine's counters of errors stand still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let of = |name: &&str| {
                [
                    Dropped::at(
                        counted,
                        name,
                        "rx",
                        &["rx_crc_errors", "rx_frame_errors", "rx_length_errors"],
                    ),
                    Dropped::at(
                        counted,
                        name,
                        "tx",
                        &["tx_carrier_errors", "tx_aborted_errors", "tx_window_errors"],
                    ),
                ]
            };
            counted.interfaces().iter().flat_map(of).collect()
        })
    },
    audits: &[(Subject::FrameErrors, audit)],
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check. A sound cable damages one frame in 80 million (IEEE 802.3), so that ten in some seconds are
/// never chance.
const SAID: Said = Said {
    cause: Cause::LinkErrors,
    place: Place::LocalSegment,
    what: "received damaged, or could not send,",
    warning_ratio: 0.0,
    fix: "Change the cable, then the port, then the optics; damaged frames at both ends with collisions mean a duplex mismatch.",
    kb: "host",
};

/// Share of damaged frames that no sound cable has: 802.3 asks for a bit error rate of 10⁻¹² at
/// 10 Gbit/s, which is one frame in 80 million.
const WARNING_RATIO: f64 = 1e-6;

/// At this loss a CUBIC connection over 50 ms stays below about 200 Mbit/s (RFC 9438, 5.1).
const CRITICAL_RATIO: f64 = 1e-4;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .in_use()
        .map(|(place, interface)| {
            let counters = &interface.counters;
            let name = &interface.name;
            let subject = format!("{name} frame errors");
            let damaged = counters
                .rx_crc_errors
                .saturating_add(counters.rx_frame_errors)
                .saturating_add(counters.rx_length_errors);
            let lost = counters.tx_carrier_errors.saturating_add(counters.tx_aborted_errors);
            let received = ratio(damaged, counters.rx_packets.saturating_add(damaged));
            let sent = ratio(lost, counters.tx_packets.saturating_add(lost));
            let worst = received.max(sent);
            if worst < WARNING_RATIO {
                return fine(
                    subject,
                    format!(
                        "{damaged} of {} frames that {name} received were damaged",
                        counters.rx_packets
                    ),
                );
            }
            let largest = |parts: [(&'static str, u64); 3]| {
                let worst = parts.into_iter().max_by_key(|(_, count)| *count);
                worst.unwrap_or_default()
            };
            let (count, of, (field, part)) = if received >= sent {
                let parts = [
                    ("rx_crc_errors", counters.rx_crc_errors),
                    ("rx_frame_errors", counters.rx_frame_errors),
                    ("rx_length_errors", counters.rx_length_errors),
                ];
                (damaged, "received", largest(parts))
            } else {
                let parts = [
                    ("tx_carrier_errors", counters.tx_carrier_errors),
                    ("tx_aborted_errors", counters.tx_aborted_errors),
                    ("", 0),
                ];
                (lost, "sent", largest(parts))
            };
            found(
                subject,
                Cause::LinkErrors,
                if worst >= CRITICAL_RATIO {
                    Severity::Critical
                } else {
                    Severity::Warning
                },
                &PathKind::ALL,
                format!("{count} frames that {name} {of} were damaged or broken off: {}.", one_in(worst)),
            )
            .place(Place::LocalSegment)
            .evidence(facts.evidence(
                format!("interfaces[{place}].counters.{field}"),
                part as f64,
                "largest counter of its kind",
                0.0,
            ))
            .advice(
                "Change the cable, then the port, then the optics; damaged frames at both ends with collisions mean a duplex mismatch.",
                "The counter stops.",
            )
            .done()
        })
        .collect()
}
