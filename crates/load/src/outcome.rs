//! From the records of both ends to the outcome of a phase. Pure.

use std::collections::BTreeMap;
use std::ops::Range;

use plumb_model::direction::OneDirection;
use plumb_model::results::{CpuUse, Direction, TlsResult, TransactionsResult};
use plumb_model::series::Series;
use plumb_wire::native::control::Start;
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::control::report::quic::QuicReceiverLog;
use plumb_wire::native::control::report::udp::UdpReceiverLog;
use plumb_wire::native::control::report::{ReceiverLog, Report, SenderLog, TcpSample};

use crate::logs::DirectionLogs;
use crate::plausibility::without_the_impossible;
use crate::quic::summary::{self as quic, QuicOutcome};
use crate::summary::{DirectionOutcome, summarise};
use crate::traffic::Done;
use crate::udp::summary::{self as udp, UdpOutcome};

/// Why a phase ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedEarly {
    /// It had carried its `byte_limit`.
    Budget,
    /// The rate had become steady, as the plan asks.
    Steady,
    /// The file that it sent came to its end.
    SourceEnded,
    /// The caller cancelled it.
    Cancelled,
    /// All its streams had failed; each says why.
    StreamsFailed,
    /// The far end went away; there is only what this host saw.
    FarEndLost,
}

/// What a phase came to.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseOutcome {
    /// When the load began, CLOCK_MONOTONIC.
    pub started_monotonic_ns: u64,
    /// How long it ran.
    pub duration_s: f64,
    /// Set when it ended before its time.
    pub ended_early: Option<EndedEarly>,
    /// Why the far end's record is missing, where it is: only what this end saw is known then.
    pub lost: Option<String>,
    /// From the far end; absent without down streams.
    pub down: Option<DirectionOutcome>,
    /// To the far end; absent without up streams.
    pub up: Option<DirectionOutcome>,
    /// The UDP streams of both directions.
    pub udp: Vec<UdpOutcome>,
    pub quic: Vec<QuicOutcome>,
    pub transactions: Vec<TransactionsOutcome>,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

/// What transactions of one kind came to.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionsOutcome {
    pub result: TransactionsResult,
    /// `completed_count`: completed since the point before, every 100 ms.
    pub series: BTreeMap<String, Series>,
    /// When each of the first some thousands was completed, in seconds since the phase began; in
    /// order where one stream asked for them all.
    pub completed_at_s: Vec<f64>,
}

/// Whether anything came in, was acknowledged, answered, or sent by UDP, as far as this end knows.
pub(crate) fn has_carried(local: &Done) -> bool {
    if local
        .transactions
        .iter()
        .any(|(_, log)| log.completed() > 0)
    {
        return true;
    }
    let local = &local.report;
    let received = |log: &ReceiverLog| log.counts.last().is_some_and(|count| count.bytes > 0);
    let acked = |log: &SenderLog| {
        let acked = |sample: Option<&TcpSample>| sample.map_or(0, |sample| sample.bytes_acked);
        acked(log.samples.last()) > acked(log.samples.first())
    };
    let read = |log: &QuicReceiverLog| log.counts.last().is_some_and(|count| count.bytes > 0);
    let came = |log: &UdpReceiverLog| log.receiver.received > 0;
    local.receivers.iter().any(received)
        || local.senders.iter().any(acked)
        || local.udp.receivers.iter().any(came)
        || !local.udp.senders.is_empty()
        || local.quic.receivers.iter().any(read)
        || !local.quic.senders.is_empty()
}

/// Whether a stream ended for a reason of its own.
fn any_failed(report: &Report) -> bool {
    let Report { udp, quic, .. } = report;
    report.senders.iter().any(|log| log.tail.ended.is_some())
        || report.receivers.iter().any(|log| log.tail.ended.is_some())
        || udp.senders.iter().any(|log| log.ended.is_some())
        || udp.receivers.iter().any(|log| log.ended.is_some())
        || quic.senders.iter().any(|log| log.ended.is_some())
        || quic.receivers.iter().any(|log| log.ended.is_some())
}

/// Both ends' records as the results of both directions; this end's alone where the far end's is
/// missing.
pub(crate) fn outcome(
    local: Done,
    remote: Option<Report>,
    start: &Start,
    duration_s: f64,
    ended_early: Option<EndedEarly>,
    [down_tls, up_tls]: &[Option<TlsResult>; 2],
) -> PhaseOutcome {
    let ratio = |report: &Report| {
        if report.elapsed_s > 0.0 {
            (report.cpu_s / report.elapsed_s).max(0.0)
        } else {
            0.0
        }
    };
    let Done {
        report: local,
        transactions,
    } = local;
    let has_record = remote.is_some();
    let mut remote = remote.unwrap_or_default();
    let ended_early = match ended_early {
        // Whole packets spend what may be carried to within one, and those that are lost never come.
        Some(EndedEarly::StreamsFailed)
            if start.byte_limit.is_some()
                && transactions.is_empty()
                && !any_failed(&local)
                && !any_failed(&remote) =>
        {
            Some(EndedEarly::Budget)
        }
        other => other,
    };
    let not_believed = without_the_impossible(&local, &mut remote);
    let mut cpu = CpuUse {
        local_ratio: Some(ratio(&local)),
        remote_ratio: has_record.then(|| ratio(&remote)),
        local_s_per_gb: None,
        remote_s_per_gb: None,
    };
    let transactions = transactions.iter().map(|(flow, log)| TransactionsOutcome {
        result: log.result(flow, duration_s, cpu),
        completed_at_s: log.completed_at_s().to_vec(),
        series: BTreeMap::from([("completed_count".to_owned(), log.series(duration_s))]),
    });
    let transactions = transactions.collect();
    let all_arrived = matches!(
        ended_early,
        Some(EndedEarly::Budget | EndedEarly::SourceEnded)
    );
    let result = |logs: DirectionLogs<'_>| {
        (!logs.senders.is_empty() || !logs.receivers.is_empty()).then(|| summarise(&logs))
    };
    let groups = [OneDirection::Down, OneDirection::Up].map(|role| tcp_groups(&start.flows, role));
    let [down_groups, up_groups] = &groups;
    let mut down = result(DirectionLogs {
        direction: Direction::Down,
        senders: &remote.senders,
        receivers: &local.receivers,
        groups: down_groups,
        duration_s,
        receiver_shift_s: 0.0,
        all_arrived,
        cpu,
        tls: down_tls.as_ref(),
    });
    let mut up = result(DirectionLogs {
        direction: Direction::Up,
        senders: &local.senders,
        receivers: &remote.receivers,
        groups: up_groups,
        duration_s,
        receiver_shift_s: idle_round_trip(&local.senders),
        all_arrived,
        cpu,
        tls: up_tls.as_ref(),
    });
    let mut udp = udp::summarise(&udp::Ends {
        flows: &start.flows,
        local: &local.udp,
        remote: &remote.udp,
        duration_s,
        all_arrived,
        cpu,
    });
    let mut quic = quic::summarise(&quic::Ends {
        flows: &start.flows,
        local: &local.quic,
        remote: &remote.quic,
        duration_s,
        all_arrived,
        cpu,
    });
    let quic_bytes = quic.iter().filter_map(|quic| quic.result.bytes);
    let quic_bytes: u64 = quic_bytes.sum();
    let tcp_bytes = [&down, &up].into_iter().flatten().map(|d| d.result.bytes);
    let gb = tcp_bytes
        .chain(udp.iter().map(UdpOutcome::bytes))
        .chain([quic_bytes])
        .sum::<u64>() as f64
        / 1e9;
    let per_gb = |ratio: f64| (gb > 0.0).then(|| ratio * duration_s / gb);
    cpu.local_s_per_gb = cpu.local_ratio.and_then(per_gb);
    cpu.remote_s_per_gb = cpu.remote_ratio.and_then(per_gb);
    for direction in [&mut down, &mut up].into_iter().flatten() {
        direction.result.cpu = cpu;
    }
    for streams in &mut udp {
        streams.result.cpu = cpu;
    }
    for direction in &mut quic {
        direction.result.cpu = cpu;
    }
    let here = local
        .notes
        .into_iter()
        .map(|note| format!("on this host: {note}"));
    let there = remote
        .notes
        .into_iter()
        .map(|note| format!("on the far host: {note}"));
    PhaseOutcome {
        started_monotonic_ns: 0,
        duration_s,
        ended_early,
        lost: None,
        down,
        up,
        udp,
        quic,
        transactions,
        notes: here.chain(there).chain(not_believed).collect(),
    }
}

/// The numbers of the streams of each group of equal TCP streams.
fn tcp_groups(flows: &[Flows], role: OneDirection) -> Vec<Range<u32>> {
    let mut first = 0_u32;
    let of_role = flows.iter().filter(|flows| flows.role == role);
    let numbered = of_role.map(|flows| {
        let numbers = first..first.saturating_add(flows.count);
        first = numbers.end;
        (numbers, &flows.flow)
    });
    numbered
        .filter(|(_, flow)| matches!(flow, Flow::Tcp(_)))
        .map(|(numbers, _)| numbers)
        .collect()
}

/// The round trip before the load filled any queue: what the client sends at its instant t the
/// server counts at t and one round trip, on a clock that started as it said "started".
fn idle_round_trip(senders: &[SenderLog]) -> f64 {
    let all = senders
        .iter()
        .flat_map(|log| &log.samples)
        .filter_map(|sample| sample.min_rtt_us);
    all.min().map_or(0.0, |us| us as f64 / 1e6)
}
