//! Streams of TCP: what the server is asked for, and their connections.

use std::time::{Duration, Instant};

use plumb_wire::iperf3::Parameters;

use super::server::{ANSWER, Iperf3, Opened};
use crate::asked::Asked;
use crate::control_client::ClientError;
use crate::frames::write_all_by;
use crate::streams::Stream;
use crate::tcp::TcpLoad;
use crate::tcp::options::options;

/// What iperf3 writes at once over TCP where nothing is said (`DEFAULT_TCP_BLKSIZE`).
const WRITE_BYTES: u64 = 128 * 1024;

/// What the server is asked for beside the streams and their directions.
pub(super) fn parameters(asked: &Asked, duration: Duration) -> Parameters {
    let flow = &asked.flow;
    Parameters {
        tcp: true,
        // The client ends the test; the server only bounds it.
        time: duration.as_secs_f64().ceil().max(1.0) as u64,
        len: flow.write_bytes.map_or(WRITE_BYTES, u64::from),
        bandwidth: flow.pacing_bps.unwrap_or(0),
        fqrate: flow.pacing_bps.unwrap_or(0),
        window: flow.window_bytes.unwrap_or(0).into(),
        mss: flow.mss_bytes.unwrap_or(0).into(),
        nodelay: flow.no_delay,
        tos: u64::from(flow.dscp.unwrap_or(0)) << 2,
        congestion: Some(flow.congestion_control().to_owned()),
        ..Parameters::default()
    }
}

/// The data connections, those that this end sends on first.
pub(super) fn open(
    far: &Iperf3,
    port: u16,
    asked: &Asked,
    cookie: &[u8],
) -> Result<Opened, ClientError> {
    let mut opened = Opened::default();
    for index in 0..asked.up + asked.down {
        let is_sent = index < asked.up;
        let socket = far.connect(port, &options(&asked.flow));
        let socket = socket.map_err(|error| far.no_stream(index, &error))?;
        let greeted = write_all_by(&socket, cookie, Instant::now() + ANSWER);
        greeted.map_err(|error| far.no_stream(index, &error))?;
        let kept = socket.try_clone().map_err(|error| far.local(&error))?;
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
