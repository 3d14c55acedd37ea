//! A test by NDT7: sends messages as fast as TCP takes them, or receives the client's, and reports meanwhile.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use plumb_load::web::Channel;
use plumb_net::tcp;
use plumb_wire::web::frames::Frames;
use plumb_wire::web::ndt7::{
    AppInfo, ConnectionInfo, FIRST_BYTES, LARGEST_BYTES, LASTS, LONGEST, Measurement, TcpInfo,
    Test, next_bytes, until_next_report,
};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use super::loads::Load;
use super::routes::{Client, Site};

/// How long the client has to answer the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// The most of what a client says during a download: reports, of a kilobyte at most.
const REPORT_BYTES: usize = 64 * 1024;

/// Bytes that are read at once: what the upload is taken in, and what the library reads reports in.
const READ_BYTES: usize = 64 * 1024;
const READ_REPORT_BYTES: usize = 4 * 1024;

/// Runs a test until its time is over, the client ends it or is gone, or the gate is closed.
pub(super) fn run(
    channel: Channel,
    read: &[u8],
    asked: Test,
    test: &Load,
    site: &Site,
    client: &Client,
) {
    let _ = tcp::set_congestion_control(channel.socket(), "bbr");
    // A message is written when it is made: no second one is kept.
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_REPORT_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(REPORT_BYTES))
        .max_frame_size(Some(REPORT_BYTES));
    let first = match asked {
        Test::Download => read.to_vec(),
        // Its messages are as long as the client likes, and are taken as they come.
        Test::Upload => Vec::new(),
    };
    let socket = WebSocket::from_partially_read(channel, first, Role::Server, Some(config));
    let now = Instant::now();
    let mut running = Running {
        socket,
        asked,
        test,
        site,
        client,
        began: now,
        moved: now,
        carried: 0,
        tcp_moved: 0,
        report_at: now,
    };
    // A client that goes is a client that has ended its test.
    let _ = match asked {
        Test::Download => running.download(),
        Test::Upload => running.upload(read),
    };
}

struct Running<'a> {
    socket: WebSocket<Channel>,
    asked: Test,
    test: &'a Load,
    site: &'a Site,
    client: &'a Client,
    began: Instant,
    /// When the connection last took or brought something.
    moved: Instant,
    carried: u64,
    /// What TCP had moved when it was last looked at, in both directions.
    tcp_moved: u64,
    report_at: Instant,
}

impl Running<'_> {
    fn download(&mut self) -> Result<(), Error> {
        // One payload for all clients, and no message of which a client that reads nothing makes this host keep much.
        let payload = self.site.payload.clone();
        let mut bytes = FIRST_BYTES;
        let longest = LASTS.min(self.site.gate.longest());
        while self.began.elapsed() < longest {
            self.report()?;
            let message = payload.slice(..bytes.min(payload.len()));
            let sent = message.len() as u64;
            self.write(Message::Binary(message))?;
            self.carried += sent;
            self.site.counters.sent(sent);
            if !self.test.carried(sent) {
                break;
            }
            // What the client reports is its own to show.
            while tcp::wait_readable(self.socket.get_ref().socket(), Duration::ZERO)? {
                self.read()?;
            }
            bytes = next_bytes(bytes, self.carried);
        }
        self.close()
    }

    fn upload(&mut self, first: &[u8]) -> Result<(), Error> {
        let longest = LONGEST.min(self.site.gate.longest());
        let mut frames = Frames::new(LARGEST_BYTES as u64);
        let mut buffer = vec![0; READ_BYTES];
        let mut came = self.take(&mut frames, first)?;
        while came.is_some() && self.began.elapsed() < longest {
            self.report()?;
            if !self.test.carried(came.unwrap_or_default()) {
                break;
            }
            came = self.take_next(&mut frames, &mut buffer)?;
        }
        self.socket.close(None)?;
        let until = Instant::now() + FAREWELL;
        while came.is_some() && Instant::now() < until {
            let _ = self.socket.flush();
            came = self.take_next(&mut frames, &mut buffer)?;
        }
        let _ = self.socket.flush();
        Ok(())
    }

    /// Reads what has come of an upload, or waits a moment for it; the bytes of payload in it, and nothing once the client closes.
    fn take_next(&mut self, frames: &mut Frames, buffer: &mut [u8]) -> Result<Option<u64>, Error> {
        match self.socket.get_mut().read(buffer) {
            Ok(0) => Err(Error::ConnectionClosed),
            Ok(count) => self.take(frames, buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.look()?;
                Ok(Some(0))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self, frames: &mut Frames, bytes: &[u8]) -> Result<Option<u64>, Error> {
        let taken = frames.take(bytes).map_err(io::Error::other)?;
        match taken.payload {
            0 => self.look()?,
            _ => self.moved = Instant::now(),
        }
        self.carried += taken.payload;
        self.site.counters.received(taken.payload);
        if let Some(ping) = taken.ping {
            self.write(Message::Pong(ping.into()))?;
        }
        Ok((!taken.closes).then_some(taken.payload))
    }

    /// Reads a message of the client of a download, or waits a moment for one. It means nothing to this end.
    fn read(&mut self) -> Result<(), Error> {
        match self.socket.read() {
            Ok(_) => Ok(()),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => self.look(),
            Err(error) => Err(error),
        }
    }

    /// Writes a message, and waits until the connection has taken it.
    fn write(&mut self, message: Message) -> Result<(), Error> {
        match self.socket.write(message) {
            // The client has taken nothing for a moment. The message is kept.
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => self.look()?,
            written => written?,
        }
        self.flush()
    }

    /// Writes all that is to be written.
    fn flush(&mut self) -> Result<(), Error> {
        let acked = |running: &Self| {
            tcp::tcp_info(running.socket.get_ref().socket()).map_or(0, |info| info.bytes_acked)
        };
        let mut before = acked(self);
        loop {
            match self.socket.flush() {
                Ok(()) => {
                    // Reports that are taken are no upload.
                    if self.asked == Test::Download {
                        self.moved = Instant::now();
                    }
                    return Ok(());
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    let now = acked(self);
                    if std::mem::replace(&mut before, now) != now {
                        self.moved = Instant::now();
                    }
                    self.look()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the test may go on.
    fn look(&mut self) -> Result<(), Error> {
        /// A client on whose connection nothing moves for so long is gone.
        const SILENCE: Duration = Duration::from_secs(5);
        let before = self.tcp_moved;
        if let Ok(info) = tcp::tcp_info(self.socket.get_ref().socket()) {
            self.tcp_moved = info.bytes_acked.saturating_add(info.bytes_received);
        }
        let more = self.tcp_moved.saturating_sub(before);
        let has_lost_turn = self.test.is_over(Instant::now(), more);
        let is_silent = self.moved.elapsed() >= SILENCE;
        if is_silent {
            // Or the kernel would send what it holds again and again to a client that takes nothing.
            let _ = tcp::abort_on_close(self.socket.get_ref().socket());
        }
        if has_lost_turn || self.site.gate.is_closed() || is_silent {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        Ok(())
    }

    /// Reports what was carried, if it is time for that.
    fn report(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.report_at {
            return Ok(());
        }
        // Where the system gives no random numbers, the mean.
        let random =
            getrandom::u32().map_or((-1.0_f64).exp(), |r| f64::from(r) / f64::from(u32::MAX));
        self.report_at = now + until_next_report(random);
        self.look()?;
        let report = self.measured();
        let json = serde_json::to_string(&report).map_err(io::Error::from)?;
        self.write(Message::Text(json.into()))
    }

    fn measured(&self) -> Measurement {
        let us = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let elapsed_time = us(self.began.elapsed());
        let socket = self.socket.get_ref().socket();
        let address = |address: io::Result<std::net::SocketAddr>| {
            address.map_or_else(|_| String::new(), |address| address.to_string())
        };
        Measurement {
            app_info: Some(AppInfo {
                elapsed_time,
                num_bytes: signed(self.carried),
            }),
            connection_info: (self.carried == 0).then(|| ConnectionInfo {
                client: address(socket.peer_addr()),
                server: address(socket.local_addr()),
                uuid: format!("{}-{}", self.client.peer, self.began.elapsed().as_nanos()),
            }),
            origin: Some("server".to_owned()),
            test: Some(self.asked.name().to_owned()),
            tcp_info: tcp::tcp_info(socket).ok().map(|info| TcpInfo {
                elapsed_time,
                busy_time: signed(info.busy_us),
                bytes_acked: signed(info.bytes_acked),
                bytes_received: signed(info.bytes_received),
                bytes_sent: signed(info.bytes_sent.unwrap_or(0)),
                bytes_retrans: signed(info.bytes_retrans.unwrap_or(0)),
                min_rtt: info.min_rtt_us.unwrap_or(0).into(),
                rtt: info.srtt_us.into(),
                rwnd_limited: signed(info.rwnd_limited_us),
                snd_buf_limited: signed(info.sndbuf_limited_us),
                total_retrans: info.total_retransmits.into(),
            }),
        }
    }

    /// Says that the test is over, and reads what is still on its way.
    fn close(&mut self) -> Result<(), Error> {
        self.socket.close(None)?;
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            let _ = self.socket.flush();
            self.read()?;
        }
        Ok(())
    }
}
