//! A test by NDT7: messages as fast as TCP takes them, or the taking of those of the client, and reports meanwhile.

use std::io;
use std::time::{Duration, Instant};

use plumb_load::web::Channel;
use plumb_net::tcp;
use plumb_wire::web::ndt7::{
    AppInfo, ConnectionInfo, FIRST_BYTES, LARGEST_BYTES, LASTS, LONGEST, Measurement, TcpInfo,
    Test, next_bytes, until_next_report,
};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message, WebSocket};

use super::loads::Load;
use super::routes::{Client, Site};

/// How long the client has to answer the end.
const FAREWELL: Duration = Duration::from_secs(1);

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
    let config = WebSocketConfig::default()
        .max_message_size(Some(LARGEST_BYTES))
        .max_frame_size(Some(LARGEST_BYTES));
    let socket = WebSocket::from_partially_read(channel, read.to_vec(), Role::Server, Some(config));
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
        report_at: now,
    };
    // A client that goes is a client that has ended its test.
    let _ = match asked {
        Test::Download => running.download(),
        Test::Upload => running.upload(),
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
    report_at: Instant,
}

impl Running<'_> {
    fn download(&mut self) -> Result<(), Error> {
        let payload = Bytes::from_owner(plumb_load::payload(
            plumb_wire::web::ndt7::LARGEST_SENT_BYTES,
        ));
        let mut bytes = FIRST_BYTES;
        let longest = LASTS.min(self.site.gate.longest());
        while self.began.elapsed() < longest {
            self.report()?;
            let message = payload.slice(..bytes.min(payload.len()));
            self.socket.write(Message::Binary(message))?;
            self.flush()?;
            self.carried += bytes as u64;
            self.site.counters.sent(bytes as u64);
            if !self.test.carried(bytes as u64) {
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

    fn upload(&mut self) -> Result<(), Error> {
        let longest = LONGEST.min(self.site.gate.longest());
        while self.began.elapsed() < longest {
            self.report()?;
            let count = self.read()?;
            self.carried += count;
            self.site.counters.received(count);
            if !self.test.carried(count) {
                break;
            }
        }
        self.close()
    }

    /// Reads a message, or waits a moment for one; the bytes of payload in it.
    fn read(&mut self) -> Result<u64, Error> {
        match self.socket.read() {
            Ok(Message::Binary(bytes)) => {
                self.moved = Instant::now();
                Ok(bytes.len() as u64)
            }
            Ok(_) => Ok(0),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.look()?;
                Ok(0)
            }
            Err(error) => Err(error),
        }
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
    fn look(&self) -> Result<(), Error> {
        /// A client on whose connection nothing moves for so long is gone.
        const SILENCE: Duration = Duration::from_secs(5);
        if self.site.gate.is_closed() || self.moved.elapsed() >= SILENCE {
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
        let report = self.measured();
        let json = serde_json::to_string(&report).map_err(io::Error::from)?;
        self.socket.write(Message::Text(json.into()))?;
        self.flush()
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
