//! Packets at a constant rate that need no receiver: what fills a link whether or not a program listens.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use plumb_model::direction::OneDirection;
use plumb_model::results::udp::UdpSender;
use plumb_model::units::BitRate;
use plumb_net::bulk::BulkSocket;
use plumb_wire::native::control::Token;
use plumb_wire::native::control::flow::{Flow, Flows, udp::Pattern, udp::UdpFlow};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::datagram::Tag;
use plumb_wire::native::spec::TOKEN_BYTES;

use super::marks::Marks;
use super::sender::Sending;
use crate::phase_state::Stage;

#[derive(Debug, Clone, Copy)]
pub struct Flood {
    pub to: SocketAddr,
    /// IP bits a second.
    pub rate: BitRate,
    /// UDP payload of each packet in bytes.
    pub payload_bytes: u16,
    pub duration: Duration,
}

impl Flood {
    fn flow(&self, header_bytes: u32) -> UdpFlow {
        let bits = f64::from(u32::from(self.payload_bytes) + header_bytes) * 8.0;
        let pps = self.rate.bps() as f64 / bits;
        UdpFlow::new(self.payload_bytes, Pattern::Constant { pps })
    }

    /// Sends, and returns when the time is over. `left_out` is shown what was sent whenever a
    /// packet that was due was not.
    ///
    /// # Errors
    /// When that cannot be sent, there can be no socket, or there is no way to the far end.
    pub fn send(&self, left_out: &mut dyn FnMut(&UdpSender)) -> io::Result<UdpSender> {
        self.send_by(&BulkSocket::connect(self.to)?, left_out)
    }

    fn send_by(
        &self,
        socket: &BulkSocket,
        left_out: &mut dyn FnMut(&UdpSender),
    ) -> io::Result<UdpSender> {
        let flow = self.flow(socket.header_bytes());
        Flows {
            count: 1,
            role: OneDirection::Up,
            flow: Flow::Udp(flow.clone()),
        }
        .check()
        .map_err(|(_, why)| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let sending = Sending {
            number: 0,
            flow,
            marks: Marks::Tagged(Tag::of(&Preamble {
                token: Token([0; TOKEN_BYTES]),
                phase: 0,
                stream: 0,
                role: OneDirection::Up,
                tls: false,
            })),
            duration: self.duration,
        };
        sending.unheard(socket, &Stage::begin(self.duration, None), left_out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use plumb_net::namespace::Namespaces;
    use plumb_net::netlink::{Netlink, interface_index};
    use std::net::UdpSocket;
    use std::process::Command;
    use std::sync::mpsc;

    fn flood(to: &str, rate_bps: u64) -> Flood {
        Flood {
            to: to.parse().unwrap(),
            rate: BitRate::from_bps(rate_bps),
            payload_bytes: 972,
            duration: Duration::from_millis(100),
        }
    }

    #[test]
    fn the_rate_counts_headers() {
        let pps = |header| {
            flood("127.0.0.1:9", 8_000_000)
                .flow(header)
                .pattern
                .mean_pps()
        };
        assert_eq!(pps(28), Some(1000.0));
        assert!((pps(48).unwrap() - 1e6 / 1020.0).abs() < 1e-6);
    }

    #[test]
    fn sends_what_is_due_and_counts_the_rest() {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap().to_string();
        let sent = flood(&to, 800_000).send(&mut |_| {}).unwrap();
        // One every 10 ms, from 0 to 90 ms, however the machine schedules it.
        assert_eq!(sent.sent + sent.refused + sent.missed, 10);
        assert_eq!(listener.recv(&mut [0; 2000]).unwrap(), 972);
    }

    #[test]
    fn nobody_has_to_listen() {
        let mut shown = 0;
        let mut left_out = |sent: &UdpSender| shown = sent.missed + sent.refused;
        let sent = flood("127.0.0.1:9", 8_000_000).send(&mut left_out).unwrap();
        assert_eq!(shown, sent.missed + sent.refused);
        // A hundred, each of which is answered with an ICMP error; a machine that is late misses some.
        assert!(sent.sent > 0, "{sent:?}");
        assert_eq!(sent.sent + sent.refused + sent.missed, 100);
        assert!(flood("127.0.0.1:9", 0).send(&mut |_| {}).is_err());
    }
    #[test]
    fn a_route_that_vanishes_ends_no_flood_and_holds_none_up() {
        let (done, waits) = mpsc::channel();
        std::thread::spawn(move || {
            let network = Namespaces::create("flood", || Ok::<_, io::Error>(())).unwrap();
            let sent = network.in_network(|| {
                let mut netlink = Netlink::open().unwrap();
                netlink.add_bridge("br").unwrap();
                let bridge = interface_index("br")?;
                let here = "192.0.2.1".parse().unwrap();
                netlink.add_address(bridge, here, 24).unwrap();
                netlink.set_up(bridge, None).unwrap();
                let flood = flood("192.0.2.9:9", 8_000_000);
                let socket = BulkSocket::connect(flood.to)?;
                let mut ip = Command::new("ip");
                assert!(ip.args(["link", "del", "dev", "br"]).status()?.success());
                flood.send_by(&socket, &mut |_| {})
            });
            done.send(sent).unwrap();
        });
        let sent = waits.recv_timeout(Duration::from_secs(10));
        let sent = sent.expect("it never ends").unwrap();
        assert_eq!(sent.sent, 0, "{sent:?}");
        assert_eq!(sent.refused + sent.missed, 100);
    }
}
