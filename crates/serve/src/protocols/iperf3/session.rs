//! One test of a client, from its cookie to its results.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_wire::iperf3::{
    COOKIE_BYTES, ErrorCode, Limits, MAX_PARAMETERS_BYTES, MAX_RESULTS_BYTES, Parameters, Results,
    State, Test,
};

use super::control::{Control, Ended};
use super::datagrams::Datagrams;
use super::running::Running;
use super::sessions::{Place, Sessions, Stream};
use super::tcp::Connections;
use crate::admission::Turn;
use crate::gate::{Gate, Heavy};
use crate::shared::STOP_INTERVAL;

/// How long a client waits for its turn, which shows it nothing meanwhile: what it takes for a test of others twice over.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a test is taken for before its parameters are known: iperf3's default of ten seconds on one stream.
const USUAL: Duration = Duration::from_secs(10);

/// How long the parameters may take to come. Real clients send them at once, and no other client has the turn
/// meanwhile. Lost packets are retransmitted after 0.2, 0.6, 1.4 and 3 s.
const PARAMETERS: Duration = Duration::from_secs(5);

/// How long all streams have to be opened.
const OPENING: Duration = Duration::from_secs(10);

/// How long a test may run beyond its time, as with iperf3's own server (`create_server_timers`).
const GRACE: Duration = Duration::from_secs(5);

/// Runs a test, until the client is gone, the protocol is broken, the test has taken [`GRACE`] longer than it may, or the gate
/// is closed, which is seen within [`STOP_INTERVAL`].
pub(super) fn run(
    socket: TcpStream,
    peer: IpAddr,
    cookie: [u8; COOKIE_BYTES],
    sessions: &Sessions,
    gate: &Gate,
) -> Result<(), Ended> {
    let socket = Arc::new(socket);
    let control = Control {
        socket: &socket,
        gate,
    };
    let _ = socket.set_nodelay(true);
    let served = (|| {
        let visit = gate.visit(peer).map_err(|_| Ended::Busy)?;
        let place = sessions.enter(cookie, peer, &socket);
        let mut heavy = visit.heavy(PATIENCE);
        wait(&control, &mut heavy, 1, USUAL)?;
        control.send(State::ParameterExchange)?;
        let parameters: Parameters = control.read_within(MAX_PARAMETERS_BYTES, PARAMETERS)?;
        let limits = Limits {
            longest: gate.longest(),
            streams: gate.most_streams(),
        };
        let test = parameters
            .test(limits)
            .map_err(|code| Ended::Refused(code, 0))?;
        wait(&control, &mut heavy, test.receives + test.sends, test.lasts)?;
        serve(&control, &place, &test, &mut heavy)
    })();
    served.inspect_err(|ended| control.report(ended))
}

/// Waits for the client's turn.
fn wait(
    control: &Control<'_>,
    heavy: &mut Heavy,
    streams: u32,
    lasts: Duration,
) -> Result<(), Ended> {
    loop {
        match heavy.turn(streams, lasts) {
            Turn::Now => return Ok(()),
            Turn::Never(_) => return Err(Ended::Busy),
            Turn::Wait(_) if control.is_over() => return Err(Ended::Link),
            Turn::Wait(_) => control.pause()?,
        }
    }
}

/// Opens the streams, runs the test and exchanges the results.
fn serve(
    control: &Control<'_>,
    place: &Place<'_>,
    test: &Test,
    heavy: &mut Heavy,
) -> Result<(), Ended> {
    place.waits_for(test.receives + test.sends, test.is_udp);
    control.send(State::CreateStreams)?;
    let streams = open(control, place, test)?;
    control.send(State::TestStart)?;
    control.send(State::TestRunning)?;
    let running: Box<dyn Running> = match test.is_udp {
        true => Box::new(Datagrams::start(test, streams, heavy.byte_limit())?),
        false => Box::new(Connections::start(
            test,
            streams,
            heavy.byte_limit(),
            GRACE,
        )?),
    };
    let ended = watch(control, test, &*running, heavy);
    let mut results = running.finish(test.omit);
    ended?;
    if test.wants_output {
        results.server_output_text = Some(text(&results));
    }
    control.send(State::ExchangeResults)?;
    // What the client counted is its own to show.
    let _: Results = control.read(MAX_RESULTS_BYTES)?;
    control.write_json(&results)?;
    control.send(State::DisplayResults)?;
    // It says that it is done, or goes.
    let _ = control.state(GRACE)?;
    Ok(())
}

/// Waits until all streams are there.
fn open(control: &Control<'_>, place: &Place<'_>, test: &Test) -> Result<Vec<Stream>, Ended> {
    let deadline = Instant::now() + OPENING;
    let mut streams = Vec::new();
    while streams.len() < (test.receives + test.sends) as usize {
        match place.opened.recv_timeout(STOP_INTERVAL) {
            Ok(stream) => streams.push(stream),
            Err(_) if control.is_over() => return Err(Ended::Link),
            Err(_) if control.gate.is_closed() => return Err(Ended::Closed),
            Err(_) if Instant::now() >= deadline => {
                return Err(Ended::Refused(ErrorCode::AcceptStream, 0));
            }
            Err(_) => {}
        }
    }
    Ok(streams)
}

/// Waits until the client ends the test.
fn watch(
    control: &Control<'_>,
    test: &Test,
    running: &dyn Running,
    heavy: &mut Heavy,
) -> Result<(), Ended> {
    let latest = Instant::now() + test.lasts + GRACE;
    loop {
        let state = control.state(STOP_INTERVAL);
        heavy.carried(running.carried_bytes());
        match state? {
            Some(State::TestEnd) => return Ok(()),
            Some(State::TestStart) => {}
            Some(_) => return Err(Ended::Link),
            None if control.gate.is_closed() => return Err(Ended::Closed),
            None if Instant::now() >= latest => return Err(Ended::Closed),
            None => {}
        }
    }
}

/// What this end counted, as text.
fn text(results: &Results) -> String {
    let mut text = "plumb serve\n".to_owned();
    for stream in &results.streams {
        let rate = stream.bytes * 8.0 / stream.end_time.max(f64::MIN_POSITIVE) / 1e6;
        text += &format!(
            "[{:3}] {:.2} s  {:.0} bytes  {rate:.2} Mbit/s\n",
            stream.id, stream.end_time, stream.bytes
        );
    }
    text
}
