//! The flows of a capture: each TCP connection in full, everything else in sums. Of what is over, the heaviest
//! connections are kept, and the rest is summed up.

use std::net::SocketAddr;

use plumb_model::results::capture::{ConnectionResult, TcpSums};

use crate::followed::Followed;
use crate::packet::{Address, Network, Segment};
use crate::passing::PassingFlow;
use crate::table::{FlowKey, Table};
use crate::tcp::{CLIENT, Connection};
use crate::watch::Watch;

/// Connections that are kept in detail.
const MOST_CONNECTIONS: usize = 1000;
/// Flows that are kept apart at a time: at first, and at most. A million idle connections take 1.5 GB at most.
const FIRST_LIMIT: usize = 16_384;
const LAST_LIMIT: usize = 1 << 20;
/// Pairs of hosts that are distinguished.
const MOST_PAIRS: usize = 1 << 20;

/// A flow, of whose directions the first goes from the lower end.
#[derive(Debug)]
struct Flow {
    first_ns: u64,
    last_ns: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    /// The connection, and which end is the client.
    tcp: Option<(Box<Connection>, usize)>,
}

/// What two hosts exchanged, the lower address first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pair {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) packets: [u64; 2],
    pub(crate) bytes: [u64; 2],
}

/// A connection that is over, or is summed up.
#[derive(Debug)]
struct Ended {
    key: FlowKey,
    client: usize,
    connection: Box<Connection>,
}

#[derive(Debug, Default)]
pub(crate) struct Flows {
    open: Table<FlowKey, Flow>,
    limit: usize,
    ended: Ending,
    /// Connections that began so far.
    begun: u32,
    /// Bytes of the open flows, in their order, when they were shown last.
    shown_bytes: Vec<[u64; 2]>,
}

/// Where flows go when they are over.
#[derive(Debug, Default)]
struct Ending {
    pairs: Table<(Address, Address), Pair>,
    heaviest: Vec<Ended>,
    sums: TcpSums,
    missed_bytes: u64,
    untracked: u64,
}

/// What all flows come to.
#[derive(Debug, Default)]
pub(crate) struct FlowSums {
    pub(crate) connections: Vec<ConnectionResult>,
    /// Their places in the order in which they began.
    pub(crate) numbers: Vec<u32>,
    pub(crate) tcp: TcpSums,
    pub(crate) missed_bytes: u64,
    pub(crate) untracked: u64,
    pub(crate) pairs: Vec<((Address, Address), Pair)>,
}

impl Flows {
    /// Takes in a packet of TCP, and reports it to the observers.
    #[inline]
    pub(crate) fn segment(
        &mut self,
        segment: &Segment<'_>,
        network: &Network,
        now: u64,
        wire_bytes: u32,
        watch: &mut Watch<'_>,
    ) {
        let began = self.begun;
        let [source, destination] = segment.ports;
        let ends = [(network.source, source), (network.destination, destination)];
        let [source, destination] = ends;
        let (key, from) = FlowKey::new(source, destination, network.protocol);
        let Some(flow) = self.count(key, from, now, wire_bytes) else {
            return;
        };
        let client = || match Connection::is_from_client(segment) {
            true => from,
            false => 1 - from,
        };
        let begin = |reuses| Box::new(Connection::new(now, reuses, began));
        let mut begins = flow.tcp.is_none();
        let (connection, of_client) = flow.tcp.get_or_insert_with(|| (begin(false), client()));
        let mut replaced = None;
        if connection.is_replaced_by(usize::from(from != *of_client), segment) {
            begins = true;
            let connection = std::mem::replace(connection, begin(true));
            replaced = Some(Ended {
                key,
                client: *of_client,
                connection,
            });
            *of_client = client();
        }
        let side = usize::from(from != *of_client);
        let came = connection.segment(side, segment, network, now, wire_bytes);
        if watch.is_any() {
            let client_first = match side {
                CLIENT => ends,
                _ => [destination, source],
            };
            watch.segment(&Followed {
                packet: watch.packet,
                unix_ns: now,
                steady_ns: connection.last_ns(),
                connection: connection.number,
                ends: client_first,
                from: side,
                segment,
                wire_bytes,
                classes: came.classes,
                rtt_ns: came.rtt_ns,
                view: connection.view(side, segment),
                slot: &connection.slot,
            });
        }
        self.begun = self.begun.wrapping_add(u32::from(begins));
        if let Some(ended) = replaced {
            self.ended.connection(ended);
        }
    }

    /// Takes in any other packet of IP.
    #[inline]
    pub(crate) fn packet(&mut self, network: &Network, ports: [u16; 2], now: u64, wire_bytes: u32) {
        let [source, destination] = ports;
        let (source, destination) = ((network.source, source), (network.destination, destination));
        let (key, from) = FlowKey::new(source, destination, network.protocol);
        self.count(key, from, now, wire_bytes);
    }

    #[inline]
    fn count(&mut self, key: FlowKey, from: usize, now: u64, wire_bytes: u32) -> Option<&mut Flow> {
        if self.open.len() >= self.limit.max(FIRST_LIMIT) {
            self.retire(now);
        }
        let flow = self.open.entry(key, || Flow {
            first_ns: now,
            last_ns: now,
            packets: [0; 2],
            bytes: [0; 2],
            tcp: None,
        })?;
        flow.last_ns = flow.last_ns.max(now);
        if let (Some(packets), Some(bytes)) = (flow.packets.get_mut(from), flow.bytes.get_mut(from))
        {
            *packets += 1;
            *bytes += u64::from(wire_bytes);
        }
        Some(flow)
    }

    /// The flows that are open, as they stand. Those that were open when room was made count from then on.
    pub(crate) fn passing(&mut self) -> impl Iterator<Item = PassingFlow> {
        let Self {
            open, shown_bytes, ..
        } = self;
        shown_bytes.resize(open.len(), [0; 2]);
        let flows = open.iter().zip(shown_bytes);
        flows.map(|((key, flow), shown)| {
            let before = std::mem::replace(shown, flow.bytes);
            flow.passing(key, before)
        })
    }

    /// Notes an error that ICMP reports about a flow; how many packets of the flow were captured.
    pub(crate) fn error_about(&mut self, key: &FlowKey) -> u64 {
        let Some(flow) = self.open.get_mut(key) else {
            return 0;
        };
        if let Some((connection, _)) = &mut flow.tcp {
            connection.error();
        }
        flow.packets.iter().sum()
    }

    /// Makes room: by what is over, else by more room, and at the last by what was idle longest.
    #[cold]
    fn retire(&mut self, now: u64) {
        /// Longer than any repetition of a last segment matters.
        const LINGER_NS: u64 = 10_000_000_000;
        let limit = self.limit.max(FIRST_LIMIT);
        let Self { open, ended, .. } = self;
        let over = |flow: &Flow| {
            let done = flow
                .tcp
                .as_ref()
                .is_none_or(|(connection, _)| connection.is_over());
            done && now.saturating_sub(flow.last_ns) > LINGER_NS
        };
        open.retain(|flow| !over(flow), |key, flow| ended.flow(key, flow));
        self.limit = limit;
        if open.len() > limit / 2 && limit < LAST_LIMIT {
            self.limit = limit * 2;
        } else if open.len() > limit / 2 {
            let mut last: Vec<u64> = open.iter().map(|(_, flow)| flow.last_ns).collect();
            let middle = last.len() / 2;
            let (_, median, _) = last.select_nth_unstable(middle);
            let median = *median;
            open.retain(
                |flow| flow.last_ns > median,
                |key, flow| ended.flow(key, flow),
            );
        }
        if !self.shown_bytes.is_empty() {
            self.shown_bytes.clear();
            self.shown_bytes
                .extend(open.iter().map(|(_, flow)| flow.bytes));
        }
    }

    /// All of them, summed up; times count from `began_ns`.
    pub(crate) fn finish(self, began_ns: u64) -> FlowSums {
        let mut ended = self.ended;
        for (key, flow) in self.open.into_entries() {
            ended.flow(key, flow);
        }
        ended.shorten();
        let connections = ended.heaviest.iter().map(|kept| {
            let end = |side: usize| {
                kept.key
                    .ends()
                    .get(side)
                    .map(|end| socket(*end))
                    .unwrap_or_default()
            };
            kept.connection
                .result(end(kept.client), end(1 - kept.client), began_ns)
        });
        FlowSums {
            connections: connections.collect(),
            numbers: ended
                .heaviest
                .iter()
                .map(|kept| kept.connection.number)
                .collect(),
            tcp: ended.sums,
            missed_bytes: ended.missed_bytes,
            untracked: ended.untracked,
            pairs: ended.pairs.into_entries().collect(),
        }
    }
}

impl Flow {
    fn passing(&self, key: &FlowKey, before: [u64; 2]) -> PassingFlow {
        let [lower, upper] = key
            .ends()
            .map(|(address, port)| SocketAddr::new(address.ip(), port));
        let [first, second] = self.bytes;
        let [before_first, before_second] = before;
        let recent = [
            first.saturating_sub(before_first),
            second.saturating_sub(before_second),
        ];
        let [recent_first, recent_second] = recent;
        let (connection, client) = match &self.tcp {
            Some((connection, client)) => (Some(connection), *client),
            None => (None, 0),
        };
        let (ends, bytes, recent_bytes) = match client {
            0 => ([lower, upper], self.bytes, recent),
            _ => (
                [upper, lower],
                [second, first],
                [recent_second, recent_first],
            ),
        };
        PassingFlow {
            protocol: key.protocol,
            ends,
            bytes,
            recent_bytes,
            rtt_ns: connection.and_then(|connection| connection.latest_rtt_ns()),
            retransmissions: connection.map_or(0, |connection| connection.repeated()),
        }
    }
}

impl Ending {
    fn flow(&mut self, key: FlowKey, flow: Flow) {
        let [(a, _), (b, _)] = key.ends();
        let room = self.pairs.len() < MOST_PAIRS || self.pairs.get_mut(&(a, b)).is_some();
        if room {
            let pair = self.pairs.entry((a, b), || Pair {
                first_ns: flow.first_ns,
                ..Pair::default()
            });
            if let Some(pair) = pair {
                pair.first_ns = pair.first_ns.min(flow.first_ns);
                pair.last_ns = pair.last_ns.max(flow.last_ns);
                for (sum, more) in pair.packets.iter_mut().zip(flow.packets) {
                    *sum += more;
                }
                for (sum, more) in pair.bytes.iter_mut().zip(flow.bytes) {
                    *sum += more;
                }
            }
        } else {
            self.untracked += flow.packets.iter().sum::<u64>();
        }
        if let Some((connection, client)) = flow.tcp {
            self.connection(Ended {
                key,
                client,
                connection,
            });
        }
    }

    fn connection(&mut self, ended: Ended) {
        ended.connection.add_to(&mut self.sums);
        self.missed_bytes += ended.connection.missed_bytes();
        self.heaviest.push(ended);
        if self.heaviest.len() >= 2 * MOST_CONNECTIONS {
            self.shorten();
        }
    }

    /// Keeps the heaviest, the earliest of those that are equal.
    fn shorten(&mut self) {
        self.heaviest.sort_by(|a, b| {
            let weight = |ended: &Ended| std::cmp::Reverse(ended.connection.payload_bytes());
            let order = weight(a).cmp(&weight(b));
            let order = order.then(a.connection.first_ns().cmp(&b.connection.first_ns()));
            order.then_with(|| (a.key.ends(), a.key.protocol).cmp(&(b.key.ends(), b.key.protocol)))
        });
        self.heaviest.truncate(MOST_CONNECTIONS);
    }
}

/// An address with a port, as people write it.
pub(crate) fn socket((address, port): (Address, u16)) -> String {
    std::net::SocketAddr::new(address.ip(), port).to_string()
}
