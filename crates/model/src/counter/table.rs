//! The counters that are explained.

use super::kind::{Counter, Sense};

/// The counters that are explained, by subject.
pub const COUNTERS: &[Counter] = {
    use Sense::{Bad, Good, Normal, Watch};
    const fn c(name: &'static str, sense: Sense, meaning: &'static str) -> Counter {
        Counter {
            name,
            sense,
            meaning,
        }
    }
    &[
        // Connections.
        c("TcpActiveOpens", Normal, "connections begun by this host"),
        c(
            "TcpPassiveOpens",
            Normal,
            "connections accepted by this host",
        ),
        c(
            "TcpAttemptFails",
            Watch,
            "connections that never came to be: refused, or no answer",
        ),
        c(
            "TcpEstabResets",
            Watch,
            "established connections that a reset ended",
        ),
        c(
            "TcpOutRsts",
            Watch,
            "resets sent: no program listens on that port, or a program closed with data unread",
        ),
        // Loss and how it was repaired.
        c("TcpInSegs", Normal, "segments received"),
        c(
            "TcpOutSegs",
            Normal,
            "segments sent, without retransmissions",
        ),
        c(
            "TcpRetransSegs",
            Watch,
            "segments retransmitted; against TcpOutSegs it is the loss that senders here believed in",
        ),
        c(
            "TcpExtTCPFastRetrans",
            Watch,
            "segments retransmitted because later ones arrived: repaired within a round trip",
        ),
        c(
            "TcpExtTCPSlowStartRetrans",
            Watch,
            "segments retransmitted after a timeout, one window after the other",
        ),
        c(
            "TcpExtTCPLostRetransmit",
            Watch,
            "segments lost again when they were retransmitted: heavy loss, or a policer",
        ),
        c(
            "TcpExtTCPTimeouts",
            Watch,
            "retransmission timers that ran out: each costs at least 200 ms of silence",
        ),
        c(
            "TcpExtTCPSpuriousRTOs",
            Watch,
            "timeouts that were wrong: the answer was only late",
        ),
        c(
            "TcpExtTCPLossProbes",
            Normal,
            "probes of the last segment, so as not to wait for a timeout (RFC 8985)",
        ),
        c(
            "TcpExtTCPLossProbeRecovery",
            Good,
            "losses at the end that such a probe found",
        ),
        c(
            "TcpExtTCPRenoRecovery",
            Watch,
            "losses repaired without SACK: one segment a round trip; something on the path strips the option",
        ),
        c("TcpExtTCPSackRecovery", Normal, "losses repaired with SACK"),
        c(
            "TcpExtTCPSackFailures",
            Watch,
            "repairs with SACK that ended in a timeout",
        ),
        c(
            "TcpExtTCPSACKReneging",
            Watch,
            "receivers that took back what they had acknowledged by SACK",
        ),
        c(
            "TcpExtTCPSACKReorder",
            Watch,
            "segments that SACK showed to have overtaken each other",
        ),
        c(
            "TcpExtTCPTSReorder",
            Watch,
            "segments that timestamps showed to have overtaken each other",
        ),
        c(
            "TcpExtTCPFullUndo",
            Good,
            "windows restored whole: the loss was reordering or delay",
        ),
        c(
            "TcpExtTCPDSACKRecv",
            Watch,
            "answers that said a segment came twice: retransmitted for nothing",
        ),
        c(
            "TcpExtTCPDSACKUndo",
            Good,
            "windows restored after all that was retransmitted had come twice",
        ),
        c(
            "TcpExtTCPOFOQueue",
            Watch,
            "segments that arrived out of order and were kept",
        ),
        c(
            "TcpExtTCPOFODrop",
            Bad,
            "segments that arrived out of order and were dropped: no receive buffer left",
        ),
        c(
            "TcpExtTCPSpuriousRtxHostQueues",
            Bad,
            "segments not retransmitted because the first copy still lay in this host's own queue: the queue below TCP is too long",
        ),
        c(
            "TcpExtTCPRetransFail",
            Bad,
            "segments that could not be retransmitted: the queue below or memory refused",
        ),
        c(
            "TcpExtTCPSynRetrans",
            Watch,
            "SYNs retransmitted: no answer came in time",
        ),
        c(
            "TcpExtTCPHystartDelayDetect",
            Normal,
            "slow starts that growing delay ended",
        ),
        c(
            "TcpExtTCPHystartTrainDetect",
            Normal,
            "slow starts that the length of a train of answers ended",
        ),
        // Buffers and windows.
        c(
            "TcpExtPruneCalled",
            Bad,
            "times that a receive buffer was full and its content had to be squeezed",
        ),
        c(
            "TcpExtTCPRcvCollapsed",
            Bad,
            "segments copied together to save receive buffer: processor time",
        ),
        c(
            "TcpExtRcvPruned",
            Bad,
            "segments dropped because the receive buffer was full",
        ),
        c(
            "TcpExtOfoPruned",
            Bad,
            "segments kept out of order that were thrown away for want of buffer; the sender must send them again",
        ),
        c(
            "TcpExtTCPRcvQDrop",
            Bad,
            "segments dropped because the receive queue had no room",
        ),
        c(
            "TcpExtTCPZeroWindowDrop",
            Bad,
            "segments that came though the window was closed",
        ),
        c(
            "TcpExtTCPToZeroWindowAdv",
            Watch,
            "times that the window closed: the program read too slowly, or the buffer is small",
        ),
        c(
            "TcpExtTCPFromZeroWindowAdv",
            Normal,
            "times that a closed window opened again",
        ),
        c(
            "TcpExtTCPWantZeroWindowAdv",
            Watch,
            "times that the window should have closed, and could not be taken back",
        ),
        c(
            "TcpExtTCPMemoryPressures",
            Bad,
            "times that all TCP together reached the middle value of tcp_mem: windows shrink",
        ),
        c(
            "TcpExtTCPMemoryPressuresChrono",
            Bad,
            "milliseconds spent so",
        ),
        c(
            "TcpExtTCPAbortOnMemory",
            Bad,
            "connections ended because memory or the limit of orphans ran out",
        ),
        c(
            "TcpExtTCPBacklogDrop",
            Bad,
            "segments dropped while the program held the socket: its backlog was full",
        ),
        c(
            "TcpExtPFMemallocDrop",
            Bad,
            "packets dropped because memory for them was reserved for swapping",
        ),
        c(
            "TcpExtTCPBacklogCoalesce",
            Normal,
            "segments joined to one in a socket's backlog",
        ),
        c(
            "TcpExtTCPRcvCoalesce",
            Normal,
            "segments joined to one in the receive queue",
        ),
        c(
            "TcpExtTCPAutoCorking",
            Normal,
            "small writes held back to be joined",
        ),
        // Listening.
        c(
            "TcpExtListenOverflows",
            Bad,
            "connections refused because the listener's queue was full: the program accepts too slowly, or its backlog is small",
        ),
        c(
            "TcpExtListenDrops",
            Bad,
            "SYNs and last answers of a handshake dropped at a listener, for any reason",
        ),
        c(
            "TcpExtTCPReqQFullDrop",
            Bad,
            "SYNs dropped because the queue of half-open connections was full, and cookies are off",
        ),
        c(
            "TcpExtTCPReqQFullDoCookies",
            Watch,
            "SYNs answered with a cookie because that queue was full",
        ),
        c(
            "TcpExtSyncookiesSent",
            Watch,
            "cookies sent: a flood of SYNs, or a small backlog; such connections may lose their options",
        ),
        c(
            "TcpExtSyncookiesRecv",
            Watch,
            "connections made from a cookie",
        ),
        c(
            "TcpExtSyncookiesFailed",
            Watch,
            "cookies that came back and were not ours",
        ),
        c(
            "TcpExtTCPTimeWaitOverflow",
            Bad,
            "connections not kept in TIME_WAIT because tcp_max_tw_buckets was reached",
        ),
        c("TcpExtTW", Normal, "connections that waited out TIME_WAIT"),
        c(
            "TcpExtTWRecycled",
            Good,
            "connections in TIME_WAIT that gave their ports to new ones",
        ),
        c(
            "TcpExtTCPAbortOnData",
            Watch,
            "connections reset because a program closed with data unread",
        ),
        c(
            "TcpExtTCPAbortOnTimeout",
            Watch,
            "connections given up: no answer to all that was retransmitted",
        ),
        c(
            "TcpExtTCPAbortOnLinger",
            Watch,
            "orphans reset by tcp_fin_timeout or SO_LINGER",
        ),
        c(
            "TcpExtTCPAbortFailed",
            Bad,
            "resets that could not be sent for want of memory",
        ),
        c("TcpExtTCPKeepAlive", Normal, "keepalives sent"),
        // Options and checks.
        c(
            "TcpExtPAWSEstab",
            Watch,
            "segments dropped because their timestamp was older than the last (RFC 7323)",
        ),
        c(
            "TcpExtPAWSActive",
            Watch,
            "handshakes dropped for the same reason",
        ),
        c("TcpInErrs", Bad, "segments with a wrong header or checksum"),
        c(
            "TcpInCsumErrors",
            Bad,
            "segments with a wrong checksum: a link, memory or middlebox damages packets",
        ),
        c(
            "TcpExtTCPChallengeACK",
            Watch,
            "answers to segments that do not belong (RFC 5961)",
        ),
        c(
            "TcpExtTCPSYNChallenge",
            Watch,
            "such answers to SYNs in an established connection",
        ),
        c(
            "TcpExtTCPMTUPFail",
            Watch,
            "searches for the path's packet size that a probe's loss ended",
        ),
        c(
            "TcpExtTCPMTUPSuccess",
            Good,
            "probes of a larger packet that arrived (RFC 4821)",
        ),
        c(
            "TcpExtTCPDeliveredCE",
            Watch,
            "segments that arrived marked by a queue on the path (ECN)",
        ),
        c(
            "TcpExtTCPFastOpenActive",
            Good,
            "connections begun with data in the SYN",
        ),
        c(
            "TcpExtTCPFastOpenActiveFail",
            Watch,
            "of these, the data was not taken",
        ),
        c(
            "TcpExtTCPFastOpenBlackhole",
            Watch,
            "times that Fast Open was switched off because SYNs with data vanished",
        ),
        c(
            "TcpExtTCPFastOpenListenOverflow",
            Bad,
            "Fast Open requests refused because the listener's queue of them was full",
        ),
        c(
            "TcpExtTcpTimeoutRehash",
            Watch,
            "connections that took another path after a timeout",
        ),
        // UDP.
        c("UdpInDatagrams", Normal, "datagrams given to programs"),
        c("UdpOutDatagrams", Normal, "datagrams sent"),
        c(
            "UdpNoPorts",
            Watch,
            "datagrams for a port where no program listens",
        ),
        c(
            "UdpInErrors",
            Bad,
            "datagrams not given to programs, for all the reasons below",
        ),
        c(
            "UdpRcvbufErrors",
            Bad,
            "datagrams dropped because a receive buffer was full: QUIC, DNS, video and VPN lose here",
        ),
        c(
            "UdpSndbufErrors",
            Bad,
            "datagrams not sent because a send buffer or the queue below was full",
        ),
        c("UdpInCsumErrors", Bad, "datagrams with a wrong checksum"),
        c(
            "UdpMemErrors",
            Bad,
            "datagrams dropped because all UDP together reached udp_mem",
        ),
        c(
            "Udp6RcvbufErrors",
            Bad,
            "the same over IPv6: receive buffer full",
        ),
        c(
            "Udp6SndbufErrors",
            Bad,
            "the same over IPv6: send buffer full",
        ),
        c(
            "Udp6InErrors",
            Bad,
            "datagrams over IPv6 not given to programs",
        ),
        c(
            "Udp6NoPorts",
            Watch,
            "datagrams over IPv6 for a port where no program listens",
        ),
        // IP.
        c("IpInReceives", Normal, "IPv4 packets received"),
        c("IpForwDatagrams", Normal, "IPv4 packets forwarded"),
        c(
            "IpInHdrErrors",
            Bad,
            "IPv4 packets with a wrong header or an expired time to live",
        ),
        c(
            "IpInAddrErrors",
            Watch,
            "IPv4 packets for an address that is not ours",
        ),
        c(
            "IpInDiscards",
            Bad,
            "IPv4 packets received and dropped for want of memory",
        ),
        c(
            "IpOutDiscards",
            Bad,
            "IPv4 packets to send and dropped: no route entry, no memory, or a filter",
        ),
        c("IpOutNoRoutes", Watch, "IPv4 packets without a route"),
        c("IpReasmReqds", Watch, "IPv4 fragments received"),
        c(
            "IpReasmOKs",
            Normal,
            "IPv4 packets put together from fragments",
        ),
        c(
            "IpReasmFails",
            Bad,
            "IPv4 packets not put together: a fragment was lost, came too late, or memory (ipfrag_high_thresh) ran out",
        ),
        c(
            "IpReasmTimeout",
            Bad,
            "of those, the ones whose time (ipfrag_time) ran out",
        ),
        c("IpFragOKs", Watch, "IPv4 packets cut into fragments here"),
        c(
            "IpFragFails",
            Watch,
            "IPv4 packets that were too large and might not be cut: path MTU discovery at work, or a black hole for UDP",
        ),
        c(
            "IpExtInCsumErrors",
            Bad,
            "IPv4 packets with a wrong checksum",
        ),
        c(
            "IpExtInTruncatedPkts",
            Bad,
            "IPv4 packets shorter than they said",
        ),
        c(
            "IpExtInCEPkts",
            Watch,
            "IPv4 packets marked by a queue on the path (ECN)",
        ),
        c(
            "IpExtReasmOverlaps",
            Watch,
            "IPv4 fragments that overlapped: an attack, or a broken sender",
        ),
        c("Ip6InDiscards", Bad, "IPv6 packets received and dropped"),
        c("Ip6OutDiscards", Bad, "IPv6 packets to send and dropped"),
        c("Ip6OutNoRoutes", Watch, "IPv6 packets without a route"),
        c(
            "Ip6InTooBigErrors",
            Watch,
            "IPv6 packets too large to be forwarded",
        ),
        c(
            "Ip6ReasmFails",
            Bad,
            "IPv6 packets not put together from fragments",
        ),
        c(
            "Ip6ReasmTimeout",
            Bad,
            "of those, the ones whose time ran out",
        ),
        c(
            "TcpExtIPReversePathFilter",
            Watch,
            "packets dropped by rp_filter: they came by another interface than the answer would leave",
        ),
        c(
            "IcmpInDestUnreachs",
            Watch,
            "ICMP said that a packet could not be delivered",
        ),
        c(
            "IcmpOutRateLimitGlobal",
            Watch,
            "ICMP not sent: the limit of all together",
        ),
        c(
            "IcmpOutRateLimitHost",
            Watch,
            "ICMP not sent: the limit of one destination; traceroutes show gaps",
        ),
        c(
            "TcpExtLockDroppedIcmps",
            Watch,
            "ICMP dropped because the socket was busy: path MTU news may be lost",
        ),
    ]
};
