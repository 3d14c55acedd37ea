//! The client of iperf3's servers: a phase is one test, of TCP.
//!
//! iperf3's server reports at the end what it counted, and nothing of how its TCP sends. So of a download this end knows
//! what arrived and when, and of an upload what was acknowledged.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumb_net::tcp::{self, TcpOptions};
use plumb_wire::iperf3::{
    COOKIE_BYTES, LENGTH_BYTES, MAX_RESULTS_BYTES, Parameters, Results, State, StreamResults,
    cookie, frame, stream_id,
};

use crate::asked::{Asked, Has, cannot};
use crate::control_client::ClientError;
use crate::frames::{read_exact_by, write_all_by};
use crate::one_ended::{Looks, carry, conclude};
use crate::outcome::PhaseOutcome;
use crate::peer::Peer;
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_watch::Progress;
use crate::streams::{Stream, Streams};
use crate::tcp::TcpLoad;
use crate::tcp::options::options;

/// Where public servers listen: one a port, because each of iperf3's serves one client at a time.
const PORTS: RangeInclusive<u16> = 5201..=5210;

/// How long a server has to answer, and a connection to come about: a lost SYN is sent again after 1 s and 3 s.
const ANSWER: Duration = Duration::from_secs(5);

/// How long `plumb serve` lets a client wait for its turn, and some more.
const TURN: Duration = Duration::from_secs(35);

/// Its name in messages.
const PROTOCOL: &str = "iperf3";

/// What iperf3 writes at once over TCP where nothing is said (`DEFAULT_TCP_BLKSIZE`).
const WRITE_BYTES: u64 = 128 * 1024;

/// A server of iperf3.
#[derive(Debug)]
pub struct Iperf3 {
    name: String,
    address: SocketAddr,
    /// Ports to try, one after the other, where a server is busy.
    ports: RangeInclusive<u16>,
}

impl Iperf3 {
    /// The server at the host of `address`, which the user calls `name`: on its port, or on the first from 5201 to 5210 that
    /// is not busy where that is 0.
    pub fn at(name: &str, address: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            address,
            ports: match address.port() {
                0 => PORTS,
                port => port..=port,
            },
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether something listens on one of its ports.
    pub fn is_there(&self) -> bool {
        self.ports
            .clone()
            .any(|port| self.connect(port, &TcpOptions::default()).is_ok())
    }

    fn connect(&self, port: u16, options: &TcpOptions) -> Result<TcpStream, ClientError> {
        let mut address = self.address;
        address.set_port(port);
        let connected = tcp::connect(address, ANSWER, options);
        connected.map_err(|why| ClientError::Unreachable {
            name: self.name.clone(),
            port,
            why: why.to_string(),
        })
    }

    /// Begins a test with the first server that is not busy; looks again for a while, because a server is busy for a moment
    /// after each test.
    fn begin(&self, cookie: &[u8]) -> Result<Control<'_>, ClientError> {
        /// Looks, and the time between two of them.
        const LOOKS: u32 = 4;
        const BETWEEN: Duration = Duration::from_secs(1);
        let mut last = None;
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(BETWEEN);
            }
            for port in self.ports.clone() {
                match self.begin_at(port, cookie) {
                    Ok(control) => return Ok(control),
                    // A server that is busy says more than a port where there is none.
                    Err(error) if matches!(error, ClientError::Ended { .. }) => last = Some(error),
                    Err(error) => last = last.or(Some(error)),
                }
            }
            if !matches!(
                last,
                Some(ClientError::Ended { .. } | ClientError::Lost { .. })
            ) {
                break;
            }
        }
        Err(last.unwrap_or_else(|| self.broken("there is no port to try")))
    }

    fn begin_at(&self, port: u16, cookie: &[u8]) -> Result<Control<'_>, ClientError> {
        let control = Control {
            far: self,
            port,
            socket: self.connect(port, &TcpOptions::default())?,
        };
        let _ = control.socket.set_nodelay(true);
        control.write(cookie)?;
        control.expect(State::ParameterExchange, TURN)?;
        Ok(control)
    }

    fn broken(&self, why: &str) -> ClientError {
        ClientError::Lost {
            name: self.name.clone(),
            why: why.to_owned(),
        }
    }

    fn local(&self, error: &impl ToString) -> ClientError {
        ClientError::Local {
            name: self.name.clone(),
            why: error.to_string(),
        }
    }

    /// The streams of a plan: how many down and up, and what each is.
    ///
    /// # Errors
    /// What iperf3 cannot do.
    fn asked(&self, plan: &PhasePlan) -> Result<Asked, ClientError> {
        let asked = Asked::of(plan, &self.name, PROTOCOL, Has::Loads)?;
        if asked.down > 0 && asked.up > 0 && asked.down != asked.up {
            let what = "test of more streams in one direction than in the other";
            return Err(cannot(&self.name, PROTOCOL, what));
        }
        Ok(asked)
    }

    /// The data connections, those that this end sends on first.
    fn open(&self, port: u16, asked: &Asked, cookie: &[u8]) -> Result<Opened, ClientError> {
        let mut opened = Opened::default();
        for index in 0..asked.up + asked.down {
            let is_sent = index < asked.up;
            let failed = |why: String| ClientError::Stream {
                name: self.name.clone(),
                stream: index,
                why,
                is_silence: false,
            };
            let socket = self.connect(port, &options(&asked.flow));
            let socket = socket.map_err(|error| failed(error.to_string()))?;
            let greeted = write_all_by(&socket, cookie, Instant::now() + ANSWER);
            greeted.map_err(|error| failed(error.to_string()))?;
            let kept = socket.try_clone().map_err(|error| self.local(&error))?;
            let stream = Stream::Tcp(TcpLoad {
                number: if is_sent { index } else { index - asked.up },
                flow: asked.flow.clone(),
                socket,
                tls: None,
                framing: None,
                file: None,
            });
            match is_sent {
                true => opened.streams.outgoing.push(stream),
                false => opened.streams.incoming.push(stream),
            }
            opened.kept.push((is_sent, kept));
        }
        Ok(opened)
    }
}

/// What the server is asked for.
fn parameters(asked: &Asked, duration: Duration) -> Parameters {
    let flow = &asked.flow;
    Parameters {
        tcp: true,
        // The client ends the test; the server only bounds it.
        time: duration.as_secs_f64().ceil().max(1.0) as u64,
        parallel: asked.down.max(asked.up).into(),
        reverse: asked.up == 0,
        bidirectional: asked.up > 0 && asked.down > 0,
        len: flow.write_bytes.map_or(WRITE_BYTES, u64::from),
        bandwidth: flow.pacing_bps.unwrap_or(0),
        fqrate: flow.pacing_bps.unwrap_or(0),
        window: flow.window_bytes.unwrap_or(0).into(),
        mss: flow.mss_bytes.unwrap_or(0).into(),
        nodelay: flow.no_delay,
        tos: u64::from(flow.dscp.unwrap_or(0)) << 2,
        congestion: Some(flow.congestion_control().to_owned()),
        client_version: concat!("plumb ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..Parameters::default()
    }
}

/// Streams before they run.
#[derive(Default)]
struct Opened {
    streams: Streams,
    /// Each connection once more, and whether this end sends on it: closed when the results are there.
    kept: Vec<(bool, TcpStream)>,
}

impl Peer for Iperf3 {
    fn run_phase(
        &mut self,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError> {
        let asked = self.asked(plan)?;
        let mut random = [0; COOKIE_BYTES - 1];
        getrandom::fill(&mut random).map_err(|error| self.local(&error))?;
        let cookie = cookie(random);
        let control = self.begin(&cookie)?;
        control.write_json(&parameters(&asked, plan.duration))?;
        control.expect(State::CreateStreams, TURN)?;
        let Opened { streams, kept } = self.open(control.port, &asked, &cookie)?;
        control.expect(State::TestStart, ANSWER)?;
        control.expect(State::TestRunning, ANSWER)?;
        let begun = || {
            for (_, socket) in &kept {
                // The server reads on until it hears of the end, and takes a reset for an error.
                let _ = tcp::close_in_order(socket);
            }
        };
        let wait = |within| match control.state(within)? {
            None => Ok(()),
            Some(_) => Err(self.broken("it ended the test")),
        };
        let looks = Looks {
            conductor,
            progress,
            cancel,
        };
        let mut carried = carry(&self.name, streams, None, plan, looks, begun, wait)?;
        let ours = counted(&carried.local.report, asked.up);
        let theirs = match &carried.watched {
            Ok(_) => control.exchange(&ours, &kept).map(Some),
            Err(_) => Ok(None),
        };
        let theirs = theirs.unwrap_or_else(|error| {
            carried.watched = Err(error);
            None
        });
        Ok(with_theirs(
            conclude(&self.name, plan, carried)?,
            theirs.as_ref(),
            asked.up,
        ))
    }
}

/// What this end counted, in iperf3's terms.
fn counted(report: &plumb_wire::native::control::report::Report, up: u32) -> Results {
    let cpu = 100.0 * report.cpu_s / report.elapsed_s.max(f64::MIN_POSITIVE);
    let stream = |index: u32, bytes: u64, retransmits: i64| StreamResults {
        id: stream_id(index).into(),
        bytes: bytes as f64,
        retransmits,
        end_time: report.elapsed_s,
        ..StreamResults::default()
    };
    let sent = report.senders.iter().map(|log| {
        let last = log.samples.last();
        let bytes = last.map_or(0, |s| s.bytes_acked + s.in_flight_bytes + s.notsent_bytes);
        let again = last.map_or(0, |s| i64::try_from(s.retransmits).unwrap_or(i64::MAX));
        stream(log.tail.stream, bytes, again)
    });
    let received = report.receivers.iter().map(|log| {
        let bytes = log.counts.last().map_or(0, |count| count.bytes);
        stream(up + log.tail.stream, bytes, -1)
    });
    Results {
        cpu_util_total: cpu,
        cpu_util_system: cpu,
        sender_has_retransmits: if up > 0 { 1 } else { -1 },
        congestion_used: report.senders.first().map(|log| log.tail.cc.clone()),
        streams: sent.chain(received).collect(),
        ..Results::default()
    }
}

/// What the server counted besides: segments that it sent again.
fn with_theirs(mut outcome: PhaseOutcome, theirs: Option<&Results>, up: u32) -> PhaseOutcome {
    if let (Some(theirs), Some(down)) = (theirs, &mut outcome.down) {
        for stream in &mut down.result.streams {
            let id = i64::from(stream_id(up + stream.id));
            let sent = theirs.streams.iter().find(|theirs| theirs.id == id);
            let again = sent.and_then(|sent| u64::try_from(sent.retransmits).ok());
            stream.retransmits = again.unwrap_or(0);
        }
        let again = down.result.streams.iter().map(|s| s.retransmits);
        down.result.tcp.retransmits = again.fold(0, u64::saturating_add);
    }
    outcome.notes.push(
        "The far end is an iperf3 server: of an upload it is known what its TCP acknowledged, and of a download what arrived, but not what limited it."
            .to_owned(),
    );
    outcome
}

/// The control connection of a test.
struct Control<'a> {
    far: &'a Iperf3,
    port: u16,
    socket: TcpStream,
}

impl Control<'_> {
    fn write(&self, bytes: &[u8]) -> Result<(), ClientError> {
        let written = write_all_by(&self.socket, bytes, Instant::now() + ANSWER);
        written.map_err(|error| self.lost(&error))
    }

    fn write_json(&self, what: &impl serde::Serialize) -> Result<(), ClientError> {
        let json = serde_json::to_string(what).map_err(|error| self.far.local(&error))?;
        self.write(&frame(&json))
    }

    fn lost(&self, error: &io::Error) -> ClientError {
        self.far
            .broken(&format!("iperf3's control connection broke ({error})"))
    }

    /// What the server says within that time, if anything.
    ///
    /// # Errors
    /// When it ends the test, and says why, or is not iperf3.
    fn state(&self, within: Duration) -> Result<Option<State>, ClientError> {
        if !tcp::wait_readable(&self.socket, within).map_err(|error| self.lost(&error))? {
            return Ok(None);
        }
        let mut byte = [0];
        read_exact_by(&self.socket, &mut byte, Instant::now() + ANSWER)
            .map_err(|error| self.lost(&error))?;
        let [byte] = byte;
        let ended = |message: String| ClientError::Ended {
            name: self.far.name.clone(),
            code: plumb_wire::native::control::ErrorCode::Full,
            message,
        };
        match State::of(byte) {
            Some(State::AccessDenied) => Err(ended(format!(
                "the iperf3 server on port {} is busy: try again later, or another port",
                self.port
            ))),
            Some(State::ServerTerminate) => Err(ended("the iperf3 server was stopped".to_owned())),
            Some(State::ServerError) => {
                let mut numbers = [0; 8];
                let read = read_exact_by(&self.socket, &mut numbers, Instant::now() + ANSWER);
                let [a, b, c, d, ..] = numbers;
                let code = i32::from_be_bytes([a, b, c, d]);
                Err(ended(match read {
                    Ok(()) => format!("the iperf3 server refused the test (its error {code})"),
                    Err(_) => "the iperf3 server refused the test".to_owned(),
                }))
            }
            Some(state) => Ok(Some(state)),
            None => Err(ClientError::NotProtocol {
                name: self.far.name.clone(),
                port: self.port,
                protocol: PROTOCOL,
            }),
        }
    }

    fn expect(&self, wanted: State, within: Duration) -> Result<(), ClientError> {
        match self.state(within)? {
            Some(state) if state == wanted => Ok(()),
            Some(_) => Err(self.far.broken("the iperf3 server answered out of turn")),
            None => Err(self.far.broken("the iperf3 server did not answer")),
        }
    }

    /// Ends the test, and exchanges what both ends counted.
    fn exchange(&self, ours: &Results, kept: &[(bool, TcpStream)]) -> Result<Results, ClientError> {
        /// How often what still arrives is read.
        const TICK: Duration = Duration::from_millis(20);
        self.write(&[State::TestEnd.byte()])?;
        let until = Instant::now() + ANSWER;
        loop {
            // A server that cannot write does not hear of the end.
            for (_, socket) in kept.iter().filter(|(is_sent, _)| !is_sent) {
                drain(socket);
            }
            match self.state(TICK)? {
                Some(State::ExchangeResults) => break,
                Some(_) => return Err(self.far.broken("the iperf3 server answered out of turn")),
                None if Instant::now() < until => {}
                None => return Err(self.far.broken("the iperf3 server did not end the test")),
            }
        }
        self.write_json(ours)?;
        let theirs = self.read_results()?;
        // It has what it wants: whether it still says so, and hears this, changes nothing.
        if self.expect(State::DisplayResults, ANSWER).is_ok() {
            let _ = self.write(&[State::Done.byte()]);
        }
        Ok(theirs)
    }

    fn read_results(&self) -> Result<Results, ClientError> {
        let deadline = Instant::now() + ANSWER;
        let mut length = [0; LENGTH_BYTES];
        read_exact_by(&self.socket, &mut length, deadline).map_err(|error| self.lost(&error))?;
        let length = u32::from_be_bytes(length);
        if length > MAX_RESULTS_BYTES {
            return Err(self.far.broken("the iperf3 server's results are too long"));
        }
        let mut json = vec![0; length as usize];
        read_exact_by(&self.socket, &mut json, deadline).map_err(|error| self.lost(&error))?;
        serde_json::from_slice(&json).map_err(|_| {
            self.far
                .broken("the iperf3 server's results are not understood")
        })
    }
}

/// Reads what waits on a connection, and drops it: at most so much at once that the control connection is not forgotten.
fn drain(mut socket: &TcpStream) {
    /// Reads of one call.
    const MOST: u32 = 64;
    let mut buffer = [0; 64 * 1024];
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    for _ in 0..MOST {
        match io::Read::read(&mut socket, &mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
