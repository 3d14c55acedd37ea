//! What UDP did not deliver on this host: counters of the network namespace of the calling thread, of
//! all its sockets together (Linux `net/ipv4/proc.c`, `net/ipv6/proc.c`; RFC 4113 names the first).

use std::time::{Duration, Instant};

/// Datagrams that came to this host and reached no program, since its namespace was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Datagrams not delivered for any reason but a port without a socket (InErrors).
    pub in_errors: u64,
    /// Of them, because a socket's receive buffer was full (RcvbufErrors).
    pub rcvbuf_errors: u64,
    /// Of them, with a wrong checksum (InCsumErrors).
    pub csum_errors: u64,
    /// Of them, because all of UDP had as much memory as it may (MemErrors; udp_mem).
    pub mem_errors: u64,
}

impl UdpCounters {
    /// Their current values, IPv4 and IPv6 together; `None` where the kernel does not report them.
    pub fn read() -> Option<Self> {
        // The thread's: /proc/net follows the first thread of the process.
        let v4 = std::fs::read_to_string("/proc/thread-self/net/snmp").ok()?;
        let v6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
        let v4 = Self::of_snmp(&v4)?;
        Some(v4.combined(Self::of_snmp6(&v6), u64::saturating_add))
    }

    /// How much they have grown since `before`.
    pub fn since(self, before: Self) -> Self {
        self.combined(before, u64::saturating_sub)
    }

    fn combined(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            in_errors: with(self.in_errors, other.in_errors),
            rcvbuf_errors: with(self.rcvbuf_errors, other.rcvbuf_errors),
            csum_errors: with(self.csum_errors, other.csum_errors),
            mem_errors: with(self.mem_errors, other.mem_errors),
        }
    }

    /// Two lines that begin with `Udp:`, names and then numbers.
    fn of_snmp(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
        let (names, values) = (lines.next()?, lines.next()?);
        let value = |name: &str| {
            let both = names.split_whitespace().zip(values.split_whitespace());
            let found = both.into_iter().find(|(known, _)| *known == name);
            found.and_then(|(_, value)| value.parse().ok())
        };
        Some(Self {
            in_errors: value("InErrors")?,
            rcvbuf_errors: value("RcvbufErrors").unwrap_or(0),
            csum_errors: value("InCsumErrors").unwrap_or(0),
            mem_errors: value("MemErrors").unwrap_or(0),
        })
    }

    /// A name and a number on each line.
    fn of_snmp6(text: &str) -> Self {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.filter(|rest| rest.starts_with(char::is_whitespace))
                .and_then(|rest| rest.trim().parse().ok())
                .unwrap_or(0)
        };
        Self {
            in_errors: value("Udp6InErrors"),
            rcvbuf_errors: value("Udp6RcvbufErrors"),
            csum_errors: value("Udp6InCsumErrors"),
            mem_errors: value("Udp6MemErrors"),
        }
    }
}

/// Datagrams that came to a UDP socket and that its program did not get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Because its receive buffer was full; with GRO, trains of datagrams. An upper bound where buffers of other
    /// sockets in the namespace were full too.
    pub full: u64,
    /// Because their checksum was wrong: the path corrupted them.
    pub corrupted: u64,
}

/// Counts the two separately. The kernel counts both as drops of the socket (`sk_drops`: SO_RXQ_OVFL, SO_MEMINFO; Linux
/// `net/ipv4/udp.c`, `__udp_queue_rcv_one_skb` and `udp_recvmsg`); only the counters of the namespace say for which
/// reason.
#[derive(Debug)]
pub struct SocketDrops {
    before: Option<UdpCounters>,
    read: Instant,
    /// What the namespace has counted since.
    since: Option<UdpCounters>,
    all: u64,
}

/// How often the counters are read at most where nothing says that they grew: it takes some 50 µs.
const READ_EVERY: Duration = Duration::from_millis(100);

impl SocketDrops {
    /// Of a socket that has dropped nothing yet.
    pub fn begin() -> Self {
        Self {
            before: UdpCounters::read(),
            read: Instant::now(),
            since: None,
            all: 0,
        }
    }

    /// The drops of a socket, by reason; `all` is their total since the socket was opened.
    pub fn of(&mut self, all: u64) -> Drops {
        if all != self.all {
            self.all = all;
            self.read();
        }
        Drops::of(all, self.since)
    }

    /// The drops of a socket of probes, which are small: up to 76 bytes (`CHECKSUM_BREAK`) the kernel verifies the
    /// checksum before it looks up the socket. So corrupted datagrams to any socket of the namespace count.
    pub(crate) fn of_probes(&mut self, all: Option<u32>) -> Drops {
        let all = all.map_or(self.all, u64::from);
        if all == self.all && self.read.elapsed() >= READ_EVERY {
            self.read();
        }
        let drops = self.of(all);
        let wrong = self.since.map_or(0, |since| since.csum_errors);
        Drops {
            corrupted: drops.corrupted.max(wrong),
            ..drops
        }
    }

    fn read(&mut self) {
        let now = UdpCounters::read().zip(self.before);
        self.since = now.map(|(now, before)| now.since(before));
        self.read = Instant::now();
    }
}

impl Drops {
    /// How many more than `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            full: self.full.saturating_sub(before.full),
            corrupted: self.corrupted.saturating_sub(before.corrupted),
        }
    }

    /// The drops after a message; `all` is the total that the kernel reported with it, if it did. `reasons` exist only
    /// for UDP.
    pub(crate) fn after(self, reasons: Option<&mut SocketDrops>, all: Option<u32>) -> Self {
        match (reasons, all) {
            (Some(reasons), all) => reasons.of_probes(all),
            (None, Some(all)) => Self::of(all.into(), None),
            (None, None) => self,
        }
    }

    /// Splits `all` that a socket dropped by what its namespace counted in the same time.
    fn of(all: u64, since: Option<UdpCounters>) -> Self {
        let full = since.map_or(all, |since| {
            let no_room = since.rcvbuf_errors.saturating_add(since.mem_errors);
            // Drops without a counter, such as by a socket's filter, are this host's doing.
            all.min(no_room).max(all.saturating_sub(since.csum_errors))
        });
        Self {
            full,
            corrupted: all.saturating_sub(full),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_kernels_tables_are_read() {
        let v4 = "Tcp: A B\nTcp: 1 2\n\
                  Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
                  Udp: 10 1 7 12 4 0 2 0 1\nUdpLite: InErrors\nUdpLite: 99\n";
        let v6 =
            "Udp6InDatagrams \t5\nUdp6InErrors  \t3\nUdp6RcvbufErrors\t3\nUdpLite6InErrors 8\n";
        let read = UdpCounters::of_snmp(v4).unwrap();
        assert_eq!(
            read,
            UdpCounters {
                in_errors: 7,
                rcvbuf_errors: 4,
                csum_errors: 2,
                mem_errors: 1
            }
        );
        let both = read.combined(UdpCounters::of_snmp6(v6), u64::saturating_add);
        assert_eq!((both.in_errors, both.rcvbuf_errors), (10, 7));
        assert_eq!(both.since(read).in_errors, 3);
        for nonsense in ["", "Udp:", "Udp: InErrors\n", "Udp: InErrors\nUdp: x\n"] {
            assert_eq!(UdpCounters::of_snmp(nonsense), None);
        }
    }

    #[test]
    fn a_wrong_checksum_is_not_want_of_room() {
        let of = |all, rcvbuf_errors, csum_errors| {
            let since = UdpCounters {
                in_errors: rcvbuf_errors + csum_errors,
                rcvbuf_errors,
                csum_errors,
                mem_errors: 0,
            };
            let Drops { full, corrupted } = Drops::of(all, Some(since));
            (full, corrupted)
        };
        assert_eq!(of(10, 0, 10), (0, 10));
        assert_eq!(of(10, 10, 0), (10, 0));
        assert_eq!(of(10, 7, 3), (7, 3));
        // Other sockets had some, too.
        assert_eq!(of(10, 0, 25), (0, 10));
        assert_eq!(of(10, 25, 4), (10, 0));
        // For a reason that is not counted, and where the kernel reports nothing.
        assert_eq!(of(10, 0, 0), (10, 0));
        let silent = Drops::of(10, None);
        assert_eq!((silent.full, silent.corrupted), (10, 0));
    }

    #[test]
    fn what_a_full_buffer_drops_is_counted() {
        let before = UdpCounters::read().unwrap();
        let full = UdpSocket::bind("127.0.0.1:0").unwrap();
        let small = socket2::SockRef::from(&full);
        small.set_recv_buffer_size(2048).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender
                .send_to(&[0; 1000], full.local_addr().unwrap())
                .unwrap();
        }
        let dropped = UdpCounters::read().unwrap().since(before);
        // Other programs of this namespace may have lost some, too.
        assert!(dropped.rcvbuf_errors > 50, "{dropped:?}");
        assert!(dropped.in_errors >= dropped.rcvbuf_errors);
    }
}
