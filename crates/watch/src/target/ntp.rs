//! A time server: the round trip of a question to it, how far its clock is from this host's, and its stratum, which is kept
//! when it changes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use plumb_wire::ntp::{self, NoAnswer, unix_s};

use super::kind::{FarEnd, Kind, Probed, Seen, TIMEOUT};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// The name of its series: the server's clock less this host's. It is right to half of the round trip.
const OFFSET: &str = "offset";

/// Datagrams that are looked at for one answer; more are a flood.
const MOST_DATAGRAMS: u32 = 100;

const MICROSECONDS: f64 = 1e6;

#[derive(Debug)]
struct Ntp {
    port: u16,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    Ok(Box::new(Ntp {
        port: settings.port(ntp::PORT)?,
    }))
}

impl Kind for Ntp {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let to = far.at(self.port);
        let local = |error: std::io::Error| error.to_string();
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(local)?;
        let number = getrandom::u64().map_err(|error| error.to_string())?;
        let mut probed = Probed::now();
        let begun = Instant::now();
        // A line that is down has no route.
        let sent = socket
            .connect(to)
            .and_then(|()| socket.send(&ntp::question(number)));
        if let Err(error) = sent {
            return Ok(probed.lost(error.to_string()));
        }
        for _ in 0..MOST_DATAGRAMS {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(probed.lost("no answer"));
            }
            socket.set_read_timeout(Some(left)).map_err(local)?;
            let mut packet = [0; 2 * ntp::PACKET_BYTES];
            let read = match socket.recv(&mut packet) {
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    return Ok(probed.lost("nothing listens at its port"));
                }
                Err(_) => return Ok(probed.lost("no answer")),
            };
            let rtt_s = begun.elapsed().as_secs_f64();
            let answer = match ntp::answer(packet.get(..read).unwrap_or_default(), number) {
                Ok(answer) => answer,
                Err(NoAnswer::Foreign) => continue,
                Err(why) => return Ok(probed.lost(why.to_string())),
            };
            let sent_s = probed.sent_us as f64 / MICROSECONDS;
            let [received_s, answered_s] =
                [answer.received, answer.sent].map(|time| unix_s(time, sent_s));
            // RFC 5905, section 8, with this host's later time from its monotonic clock.
            let offset_s = ((received_s - sent_s) + (answered_s - (sent_s + rtt_s))) / 2.0;
            let network_s = (rtt_s - (answered_s - received_s).max(0.0)).max(0.0);
            probed.series = vec![Seen::of(OFFSET, Ok(offset_s))];
            probed.state = Some(format!("stratum {}", answer.stratum));
            return Ok(probed.with(network_s));
        }
        Ok(probed.lost("a flood of datagrams, and no answer among them"))
    }

    fn has_series(&self) -> bool {
        true
    }

    fn series(&self, name: &str) -> Option<Unit> {
        (name == OFFSET).then_some(Unit::Seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::target::settings::tests::settings;

    /// Probes a server that answers so.
    fn asked(answer: impl Fn([u8; 48]) -> Vec<u8> + Send + 'static) -> Probed {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut question = [0; 48];
            let (_, from) = server.recv_from(&mut question).unwrap();
            // What others send is passed over.
            server.send_to(&[0x24; 48], from).unwrap();
            server.send_to(&answer(question), from).unwrap();
        });
        let kind = read(&mut settings(&format!("port = {port}"))).unwrap();
        let far = FarEnd {
            host: "localhost",
            address: Ipv4Addr::LOCALHOST.into(),
            trust: None,
            every: Duration::from_secs(10),
        };
        kind.probe(&far).unwrap()
    }

    /// An answer of a server whose clock is an hour ahead.
    fn an_hour_ahead(question: [u8; 48]) -> Vec<u8> {
        let now_us = crate::target::kind::now_us() as u64 + 3_600_000_000;
        let time =
            (now_us / 1_000_000 + 2_208_988_800) << 32 | (((now_us % 1_000_000) << 32) / 1_000_000);
        let mut answer = vec![0; 48];
        (answer[0], answer[1]) = (0x24, 3);
        answer[24..32].copy_from_slice(&question[40..]);
        answer[32..40].copy_from_slice(&time.to_be_bytes());
        answer[40..48].copy_from_slice(&time.to_be_bytes());
        answer
    }

    #[test]
    fn the_offset_of_a_clock_and_its_stratum_are_seen() {
        let probed = asked(an_hour_ahead);
        assert_eq!(probed.state.as_deref(), Some("stratum 3"));
        let [Seen { name, value, .. }] = probed.series.as_slice() else {
            panic!("{probed:?}");
        };
        let (offset_s, rtt_s) = (value.clone().unwrap(), probed.value.unwrap());
        assert_eq!(name, OFFSET);
        // Half of a round trip, and the microsecond to which the time of day is read.
        assert!(
            (offset_s - 3600.0).abs() <= rtt_s / 2.0 + 1e-5,
            "{offset_s} {rtt_s}"
        );
    }

    #[test]
    fn a_refusal_is_said_and_has_no_value() {
        let probed = asked(|question| {
            let mut answer = an_hour_ahead(question);
            answer[1] = 0;
            answer[12..16].copy_from_slice(b"DENY");
            answer
        });
        assert_eq!((probed.value, probed.series), (None, Vec::new()));
        assert_eq!(probed.why.as_deref(), Some("the server refuses: DENY"));
    }
}
