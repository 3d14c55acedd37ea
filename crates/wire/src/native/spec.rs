//! Every constant of plumb's own protocol, with its reason.
//!
//! One TCP port carries control connections and data connections; the same port number over
//! UDP echoes probes. The client opens the control connection, asks for a phase of load, opens
//! the phase's data connections, and gets the far end's own record of the phase back:
//!
//! ```text
//! control   C→S  Hello                 S→C  Welcome (token, limits, facts, certificate)
//!           C→S  Start                 S→C  Ready, or Refused
//! data      C→S  48-byte preamble on each connection (token, phase, stream, role),
//!                then a TLS 1.3 handshake where the preamble says so; for a UDP stream a
//!                datagram that says the same, every 100 ms
//! control                              S→C  Started, once all are attached
//! data      both directions run; a connection that is to be probed meanwhile carries records
//!           UDP: each sender ends with a datagram that says how many there were, and repeats it
//!           until it is answered
//! control   C→S  Stop (both ends abort the data connections)
//!                                      S→C  Samples, Counts, UdpSent, UdpReceived …, Result
//!           C→S  Ping every 500 ms     S→C  Pong
//! control   C→S  Trace                 S→C  Traced (the path towards the client), or TraceRefused
//! silent    C→S  32-byte preamble on a connection of its own (token, time); then neither end says
//!                anything for that time, and the server says one byte
//! ```

use std::time::Duration;

/// Port of the responder, TCP and UDP: unassigned at IANA, and "PLUM" on a telephone's keys.
pub const PORT: u16 = 7586;

/// Version of the protocol; it rises when either end would misread the other.
pub const VERSION: u16 = 4;

/// Bytes of the length that precedes each control frame, big-endian.
pub const FRAME_HEADER_BYTES: usize = 4;

/// Largest frame that a client may begin with, before anything is known of it: Hello.
pub const MAX_FIRST_FRAME_BYTES: usize = 1024;

/// Largest frame that a client may send: a Start with the departures of a whole trace
/// ([`MAX_TRACE_PACKETS`](super::control::flow::udp::MAX_TRACE_PACKETS)), of 30 bytes each.
pub const MAX_CLIENT_FRAME_BYTES: usize = 256 * 1024;

/// Largest frame that a server may send: room for [`RECORDS_PER_FRAME`] records of the longest
/// numbers, or the summary of [`MAX_STREAMS`] streams, several times over.
pub const MAX_SERVER_FRAME_BYTES: usize = 256 * 1024;

/// Records of the far end's log in one frame: about 30 kB, which a path of 50 kbit/s still
/// carries within [`SILENCE_TIMEOUT`].
pub const RECORDS_PER_FRAME: usize = 64;

/// First bytes of a data connection. Read as the length of a control frame they are far above
/// [`MAX_FIRST_FRAME_BYTES`], which distinguishes the two.
pub const DATA_MAGIC: [u8; 8] = *b"plumbDAT";

/// Bytes of the preamble of a data connection.
pub const PREAMBLE_BYTES: usize = 48;

/// Bytes of a session's token: 128 bits, which cannot be guessed.
pub const TOKEN_BYTES: usize = 16;

/// Bytes of the fingerprint of a certificate (SHA-256).
pub const FINGERPRINT_BYTES: usize = 32;

/// How often a client says that it is there, and is answered.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// An end from which no complete frame came for so long is gone. Ten heartbeats: longer than
/// any queue that this program should call a queue, and than four TCP retransmissions in a row
/// (0.2 + 0.4 + 0.8 + 1.6 s, RFC 6298).
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for the whole first frame or preamble of a connection, however slowly it trickles.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// Time from Ready until all data connections are attached: connecting takes one round trip
/// and the retransmissions of lost SYNs (1 + 2 + 4 s, RFC 6298).
pub const ATTACH_TIMEOUT: Duration = Duration::from_secs(8);

/// How often a client asks for its UDP streams until the phase has started: a lost datagram
/// costs less than a lost SYN.
pub const ATTACH_INTERVAL: Duration = Duration::from_millis(100);

/// How often a UDP sender says that it has ended, until it is answered.
pub const END_INTERVAL: Duration = Duration::from_millis(50);

/// How long a UDP receiver waits after the end for what it overtook: more than two paths of one route differ by.
pub const OVERTAKEN_WAIT: Duration = Duration::from_millis(250);

/// How long both ends of a UDP stream wait for the end, or its answer, to come through the queue
/// that the stream filled: four times 700 ms. Then the stream ends without, and well within
/// [`SILENCE_TIMEOUT`], since a server answers nothing meanwhile.
pub const LINGER: Duration = Duration::from_secs(3);

/// Time past the end of a phase in which the client's Stop must come: it waits in the queue
/// that the phase filled. Afterwards the server ends the phase by itself.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// How often each end looks at its sockets during a phase: fine enough to see a queue fill,
/// and 6000 records in the longest phase.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Longest phase that a server allows unless configured otherwise: twice flent's usual long test of
/// 300 s, and forty of the 15 s after which a satellite system deals its capacity out anew.
pub const MAX_DURATION: Duration = Duration::from_secs(600);

/// Most streams of one phase, both directions together, unless configured otherwise.
pub const MAX_STREAMS: u32 = 128;

/// Most sessions at once, unless configured otherwise: two threads each while they are idle. What is
/// expensive is load, of which each address has one.
pub const MAX_CLIENTS: usize = 256;

/// Longest that a client may wait for a place or for its turn: half of [`MAX_DURATION`].
pub const MAX_WAIT: Duration = Duration::from_secs(300);

/// How long plumb waits for them: longer than most measurements of other clients, and no longer than a user waits at a
/// terminal on which nothing happens.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often a waiting client gets a message, which shows that the server is there.
pub const QUEUED_INTERVAL: Duration = Duration::from_secs(1);

/// How often the server checks whether it is the client's turn: short against the wait.
pub const QUEUED_LOOK: Duration = Duration::from_millis(100);

/// Clients that wait for a session, a thread each.
pub const MAX_WAITING: usize = 256;

/// The same of one address: half as many as sessions.
pub const MAX_WAITING_PER_ADDRESS: usize = MAX_CLIENTS / 2;

/// Loads that wait for one with the same address: eight of ten seconds are more than [`PATIENCE`].
pub const MAX_LOADS_WAITING: usize = 8;

/// How long a session keeps the turn of its address from one phase to the next: `plumb check` waits up
/// to 5 s for queues to empty, and then watches the path for 2 s.
pub const TURN_KEPT: Duration = Duration::from_secs(8);

/// How long a session may do nothing while others want its place and all are taken: where its address
/// has more than its part of the places, no longer than between two phases.
pub const IDLE_ABOVE_SHARE: Duration = TURN_KEPT;

/// The same where another address only has fewer: longer than any pause of what plumb measures, except
/// where it keeps connections silent.
pub const IDLE_WITHIN_SHARE: Duration = Duration::from_secs(60);

/// How much idle time a load makes up for, as a multiple of its own duration. Of the sessions of one address, which
/// take turns, at most nine can then run often enough to keep their places for ever, and a client that measures for 1 s
/// in every 9 s never counts as idle.
pub const IDLE_PER_RUN: u32 = 8;

/// Connections that have not yet said what they are; above it the oldest from the address with the most of them is
/// closed.
pub const MAX_GREETING: usize = 256;

/// The same from one address: the streams of a phase, which may all come at once, and half as
/// many beside them; above it its own oldest is closed.
pub const MAX_GREETING_PER_ADDRESS: usize = 192;

/// Most streams of one phase that may be configured: as many as one address may have greeting
/// at once, less one for a control connection beside them.
pub const MOST_STREAMS: u32 = MAX_GREETING_PER_ADDRESS as u32 - 1;

/// Congestion control of load unless asked otherwise: what most of the Internet's servers and
/// clients run, and what fills the queues that BBR leaves empty.
pub const DEFAULT_CONGESTION_CONTROL: &str = "cubic";

/// Longest name of a congestion control (TCP_CA_NAME_MAX less its final NUL).
pub const MAX_CC_NAME_BYTES: usize = 15;

/// Longest text inside a message, such as a reason or an error.
pub const MAX_TEXT_BYTES: usize = 512;

/// Longest path that a responder traces towards a client: paths of more than 30 hops are rare, of more
/// than 64 unheard of.
pub const MAX_TRACE_HOPS: u8 = 64;

/// Most probes to each hop of it: 320 in all, whose report of some 45 kB still gets through a path of
/// 100 kbit/s within [`SILENCE_TIMEOUT`].
pub const MAX_TRACE_CYCLES: u8 = 5;

/// How long a responder waits for the answer to a probe: above the round trip over a geostationary
/// satellite.
pub const TRACE_PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest that tracing towards a client takes: two protocols one after the other, each until it
/// has looked as far as it may and waited for [`TRACE_PROBE_TIMEOUT`].
pub const TRACE_TIME: Duration = Duration::from_secs(6);

/// Traces at once, one for each address: with the probes of [`MAX_TRACE_HOPS`] fewer packets than one
/// stream of voice takes.
pub const MAX_TRACES: usize = 4;

/// Traces that wait for one towards the same address: eight of six seconds are as much as [`PATIENCE`].
pub const MAX_TRACES_WAITING: usize = 8;

/// Traces towards one address that may begin without a pause, and how long it takes until there is one more:
/// enough for a user who retries, and then 320 probes a second at the very most.
pub const TRACE_BURST: u32 = 8;
pub const TRACE_EVERY: Duration = Duration::from_secs(1);

/// First bytes of a connection that is to be silent: its first four are no valid frame length, like the first four of
/// [`DATA_MAGIC`], and differ from these.
pub const SILENT_MAGIC: [u8; 8] = *b"hushPLUM";

/// Bytes of its preamble.
pub const SILENT_PREAMBLE_BYTES: usize = 32;

/// Longest silence after which a responder speaks first: above the 2 h 4 min that a NAT should keep a
/// connection (RFC 5382, section 5).
pub const MAX_SILENCE: Duration = Duration::from_secs(3 * 3600);

/// Silent connections of one session: two rounds of eight, and as many that were lost meanwhile.
pub const MAX_SILENT: usize = 32;

/// The same of one address: two people behind it who measure at once.
pub const MAX_SILENT_PER_ADDRESS: usize = 2 * MAX_SILENT;

/// The same in all, where the machine has so many descriptors: of sixteen addresses.
pub const MAX_SILENT_IN_ALL: usize = 16 * MAX_SILENT_PER_ADDRESS;

/// Datagrams a second that the UDP echo answers to one address without a phase of its own, and at once: more
/// than the trains of `plumb capacity` have over 10 Gbit/s.
pub const ECHO_PPS: f64 = 100_000.0;
pub const ECHO_BURST: f64 = 200_000.0;

/// By how much the answers to one address may be longer than its probes, a second: transactions over UDP
/// fill 1 Gbit/s, and what a previous holder of an address can have sent there stays far below the volume of a phase of
/// load.
pub const ECHO_LONGER_BYTES_PER_S: f64 = 125e6;
/// The same at once: a tenth of a second of it.
pub const ECHO_LONGER_BURST_BYTES: f64 = 12.5e6;
