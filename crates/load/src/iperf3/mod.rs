//! The client of iperf3's servers: a phase is one test, of TCP or of datagrams.
//!
//! iperf3's server reports at the end what it counted, and nothing of how its TCP sends. So of a download this end knows
//! what arrived and when, and of an upload what was acknowledged.

mod control;
mod server;
mod tcp;
mod udp;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_net::tcp::{TcpOptions, close_in_order};
use plumb_wire::iperf3::{
    COOKIE_BYTES, Parameters, Results, State, StreamResults, cookie, stream_id,
};

use crate::asked::{Asked, Has, cannot};
use crate::control_client::ClientError;
use crate::one_ended::{Looks, carry, conclude};
use crate::outcome::PhaseOutcome;
use crate::peer::Peer;
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_watch::Progress;
use control::Control;
pub use server::Iperf3;
use server::{ANSWER, CONTROL_SEGMENT_BYTES, Opened, PROTOCOL, TURN};
use udp::Datagrams;

impl Iperf3 {
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
        let options = TcpOptions {
            mss_bytes: Some(CONTROL_SEGMENT_BYTES),
            ..TcpOptions::default()
        };
        let control = Control {
            far: self,
            port,
            socket: self.connect(port, &options)?,
        };
        let _ = control.socket.set_nodelay(true);
        control.write(cookie)?;
        control.expect(State::ParameterExchange, TURN)?;
        Ok(control)
    }
}

/// How much later than the last datagram the server hears of the end: it looks at the connection before it looks at the
/// datagrams, and counts none after the end as received. Twenty times the longest that such a server waits between two looks.
const LAST_DATAGRAM: Duration = Duration::from_millis(20);

/// What a plan asks for.
enum Wanted {
    Tcp(Asked),
    Udp(Datagrams),
}

impl Wanted {
    /// # Errors
    /// What iperf3 cannot do.
    fn of(plan: &PhasePlan, name: &str) -> Result<Self, ClientError> {
        let wanted = match Datagrams::of(plan, name)? {
            Some(datagrams) => Self::Udp(datagrams),
            None => Self::Tcp(Asked::of(plan, name, PROTOCOL, Has::Loads)?),
        };
        let (down, up) = wanted.streams();
        if down > 0 && up > 0 && down != up {
            let what = "test of more streams in one direction than in the other";
            return Err(cannot(name, PROTOCOL, what));
        }
        Ok(wanted)
    }

    /// How many down, and up.
    fn streams(&self) -> (u32, u32) {
        match self {
            Self::Tcp(asked) => (asked.down, asked.up),
            Self::Udp(datagrams) => (datagrams.down, datagrams.up),
        }
    }

    fn parameters(&self, duration: Duration) -> Parameters {
        let (down, up) = self.streams();
        Parameters {
            parallel: down.max(up).into(),
            reverse: up == 0,
            bidirectional: up > 0 && down > 0,
            client_version: concat!("plumb ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..match self {
                Self::Tcp(asked) => tcp::parameters(asked, duration),
                Self::Udp(datagrams) => datagrams.parameters(duration),
            }
        }
    }

    fn open(&self, control: &Control<'_>, cookie: &[u8]) -> Result<Opened, ClientError> {
        match self {
            Self::Tcp(asked) => tcp::open(control.far, control.port, asked, cookie),
            Self::Udp(datagrams) => datagrams.open(control),
        }
    }
}

impl Peer for Iperf3 {
    fn run_phase(
        &mut self,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError> {
        let wanted = Wanted::of(plan, &self.name)?;
        let (_, up) = wanted.streams();
        let mut random = [0; COOKIE_BYTES - 1];
        getrandom::fill(&mut random).map_err(|error| self.local(&error))?;
        let cookie = cookie(random);
        let agree = |control: &Control<'_>| {
            control.write_json(&wanted.parameters(plan.duration))?;
            control.expect(State::CreateStreams, TURN)
        };
        let mut control = self.begin(&cookie)?;
        // The path may carry nothing for a moment, and nothing was measured yet.
        match agree(&control) {
            Err(ClientError::Lost { .. }) => {
                control = self.begin(&cookie)?;
                agree(&control)?;
            }
            agreed => agreed?,
        }
        let Opened {
            streams,
            kept,
            held,
            unanswered,
        } = wanted.open(&control, &cookie)?;
        let started = control.expect(State::TestStart, ANSWER);
        started.map_err(|error| match unanswered {
            Some(stream) => self.no_stream(stream, &"no datagram came back from the server"),
            None => error,
        })?;
        control.expect(State::TestRunning, ANSWER)?;
        let begun = || {
            for (_, socket) in &kept {
                // The server reads on until it hears of the end, and takes a reset for an error.
                let _ = close_in_order(socket);
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
        let ours = counted(&carried.local.report, up);
        if matches!(wanted, Wanted::Udp(_)) && up > 0 {
            std::thread::sleep(LAST_DATAGRAM);
        }
        let theirs = match &carried.watched {
            Ok(_) => control.exchange(&ours, &kept).map(Some),
            Err(_) => Ok(None),
        };
        drop(held);
        let theirs = theirs.unwrap_or_else(|error| {
            carried.watched = Err(error);
            None
        });
        match wanted {
            Wanted::Tcp(_) => {
                let outcome = conclude(&self.name, plan, carried, None)?;
                Ok(with_theirs(outcome, theirs.as_ref(), up))
            }
            Wanted::Udp(_) => {
                let local = &carried.local.report;
                let record =
                    theirs.map(|theirs| udp::record(&theirs, local, control.round_trip_s()));
                let plan = Datagrams::as_sent(plan);
                let mut outcome = conclude(&self.name, &plan, carried, record)?;
                outcome.notes.push(ABOUT_DATAGRAMS.to_owned());
                Ok(outcome)
            }
        }
    }
}

/// What is not known of datagrams.
const ABOUT_DATAGRAMS: &str = "The far end is an iperf3 server: of what it received it reports how much, what was lost and the \
    jitter, but not the order of packets, nor how losses follow each other, nor delays.";

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
        streams: sent
            .chain(received)
            .chain(udp::counted(&report.udp, up))
            .collect(),
        ..Results::default()
    }
}

/// What the server counted besides: segments that it retransmitted.
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
