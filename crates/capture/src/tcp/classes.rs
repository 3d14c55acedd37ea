//! Classes of segments, in the terms of Wireshark's TCP analysis.

use plumb_model::results::capture::SegmentCounts;

/// A class of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Retransmission,
    Fast,
    Spurious,
    OutOfOrder,
    Lost,
    DuplicateAck,
    AckedUnseen,
    KeepAlive,
    KeepAliveAck,
    ZeroWindow,
    ZeroWindowProbe,
    ZeroWindowProbeAck,
    WindowUpdate,
    WindowFull,
    PortsReused,
}

/// Classes of one segment, which may have several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Classes(u16);

/// What a segment came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) classes: Classes,
    /// The round trip in nanoseconds that it ended, by sequence numbers.
    pub(crate) rtt_ns: Option<u64>,
}

/// Each class, and what Wireshark calls it: the last part of `tcp.analysis.NAME`.
const NAMES: [(Class, &str); 15] = [
    (Class::Retransmission, "retransmission"),
    (Class::Fast, "fast_retransmission"),
    (Class::Spurious, "spurious_retransmission"),
    (Class::OutOfOrder, "out_of_order"),
    (Class::Lost, "lost_segment"),
    (Class::DuplicateAck, "duplicate_ack"),
    (Class::AckedUnseen, "ack_lost_segment"),
    (Class::KeepAlive, "keep_alive"),
    (Class::KeepAliveAck, "keep_alive_ack"),
    (Class::ZeroWindow, "zero_window"),
    (Class::ZeroWindowProbe, "zero_window_probe"),
    (Class::ZeroWindowProbeAck, "zero_window_probe_ack"),
    (Class::WindowUpdate, "window_update"),
    (Class::WindowFull, "window_full"),
    (Class::PortsReused, "reused_ports"),
];

impl Classes {
    #[inline]
    pub(super) fn add(&mut self, class: Class) {
        self.0 |= 1 << class as u16;
    }

    #[inline]
    pub(crate) fn has(self, class: Class) -> bool {
        self.0 & 1 << class as u16 != 0
    }

    #[inline]
    pub(super) fn any(self) -> bool {
        self.0 != 0
    }

    /// Whether it repeats what was sent before.
    pub(crate) fn repeats(self) -> bool {
        self.has(Class::Retransmission) || self.has(Class::Fast) || self.has(Class::Spurious)
    }

    /// What Wireshark calls them.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        let had = NAMES.into_iter().filter(move |(class, _)| self.has(*class));
        had.map(|(_, name)| name)
    }

    pub(super) fn count(self, counts: &mut SegmentCounts) {
        let fields = [
            (Class::Retransmission, &mut counts.retransmissions),
            (Class::Fast, &mut counts.fast_retransmissions),
            (Class::Spurious, &mut counts.spurious_retransmissions),
            (Class::OutOfOrder, &mut counts.out_of_order),
            (Class::Lost, &mut counts.lost_segments),
            (Class::DuplicateAck, &mut counts.duplicate_acks),
            (Class::AckedUnseen, &mut counts.acked_unseen),
            (Class::KeepAlive, &mut counts.keep_alives),
            (Class::KeepAliveAck, &mut counts.keep_alive_acks),
            (Class::ZeroWindow, &mut counts.zero_windows),
            (Class::ZeroWindowProbe, &mut counts.zero_window_probes),
            (
                Class::ZeroWindowProbeAck,
                &mut counts.zero_window_probe_acks,
            ),
            (Class::WindowUpdate, &mut counts.window_updates),
            (Class::WindowFull, &mut counts.window_full),
            (Class::PortsReused, &mut counts.ports_reused),
        ];
        for (class, count) in fields {
            *count += u64::from(self.has(class));
        }
    }
}
