//! Over the real kernel. Those that need a network of their own make one, which takes root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::clock::monotonic_ns;
use crate::clock::realtime_ns;

const SECOND: u64 = 1_000_000_000;

fn wait_for<T>(
    socket: &mut DatagramSocket,
    mut take: impl FnMut(&mut DatagramSocket) -> Option<T>,
) -> T {
    let deadline = monotonic_ns() + SECOND;
    loop {
        if let Some(found) = take(socket) {
            return found;
        }
        assert!(monotonic_ns() < deadline, "nothing came within a second");
        socket.wait_until(deadline).unwrap();
    }
}

fn receive(socket: &mut DatagramSocket, buffer: &mut [u8]) -> Received {
    wait_for(socket, |s| s.recv(buffer).unwrap())
}

fn notice(socket: &mut DatagramSocket) -> Notice {
    wait_for(socket, |s| s.take_notice().unwrap())
}

fn departure(socket: &mut DatagramSocket, of: SendId) -> u64 {
    match notice(socket) {
        Notice::Departed { id, ns } if id == of => ns,
        other => panic!("not the departure of {of:?}: {other:?}"),
    }
}

/// A network of its own for one thread, with the loopback up.
fn in_own_network(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("a new network namespace (root needed)");
            run("ip link set lo up");
            work();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn run(command: &str) {
    let mut words = command.split(' ');
    assert!(
        Command::new(words.next().unwrap())
            .args(words)
            .status()
            .unwrap()
            .success(),
        "{command}"
    );
}

/// An echo request without payload; the kernel computes the checksum of ICMPv6.
fn echo_request(v4: bool, identifier: u16, sequence: u16) -> Vec<u8> {
    let kind: u16 = if v4 { 0x0800 } else { 0x8000 };
    let sum = u32::from(kind) + u32::from(identifier) + u32::from(sequence);
    let checksum = if v4 {
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    } else {
        0
    };
    [kind, checksum, identifier, sequence]
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

#[test]
fn udp_packets_are_stamped_and_answered_from_the_address_asked() {
    let v4 = ("0.0.0.0:0", IpAddr::from([127, 0, 0, 2]));
    let v6 = ("[::]:0", IpAddr::from(Ipv6Addr::LOCALHOST));
    let mapped = ("[::]:0", IpAddr::from([127, 0, 0, 2]));
    for (bind, target) in [v4, v6, mapped] {
        let server = UdpSocket::bind(bind).unwrap();
        let port = server.local_addr().unwrap().port();
        let mut server = DatagramSocket::bound(server).unwrap();
        let mut client = DatagramSocket::udp((target, port).into()).unwrap();
        let before = realtime_ns();
        let id = client.send(b"ping").unwrap();

        let mut buffer = [0; 16];
        let request = receive(&mut server, &mut buffer);
        assert_eq!(&buffer[..request.len], b"ping");
        assert_eq!(request.to.unwrap().address.to_canonical(), target);
        server
            .send_from(b"pong!", request.to, None, request.from)
            .unwrap();

        let departed = departure(&mut client, id);
        let reply = receive(&mut client, &mut buffer);
        let after = realtime_ns();
        assert_eq!(&buffer[..reply.len], b"pong!");
        assert_eq!(reply.from, (target, port).into());
        let times = [
            before,
            departed,
            request.kernel_ns.unwrap(),
            reply.kernel_ns.unwrap(),
            after,
        ];
        assert!(times.is_sorted(), "{times:?}");
    }
}

#[test]
fn marks_are_sent_and_reported() {
    for target in [IpAddr::from([127, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()] {
        let server = UdpSocket::bind((target, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let mut server = DatagramSocket::bound(server).unwrap();
        let mut client = DatagramSocket::udp((target, port).into()).unwrap();
        client.report_marks().unwrap();
        client.set_marks(34, 2).unwrap();
        client.send(b"ping").unwrap();
        let mut buffer = [0; 16];
        let request = receive(&mut server, &mut buffer);
        assert_eq!((request.dscp, request.ecn), (Some(34), Some(2)));
        server
            .send_from(b"pong", request.to, Some(10), request.from)
            .unwrap();
        let reply = receive(&mut client, &mut buffer);
        assert_eq!((reply.dscp, reply.ecn), (Some(10), Some(0)));
    }
}

#[test]
fn stamps_are_there_from_the_first_packet() {
    for _ in 0..20 {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = server.local_addr().unwrap();
        let mut client = DatagramSocket::udp(target).unwrap();
        server.send_to(b"x", client.local_addr().unwrap()).unwrap();
        assert!(receive(&mut client, &mut [0; 8]).kernel_ns.is_some());
    }
}

#[test]
fn a_closed_port_is_noticed_and_the_next_packet_still_goes() {
    for address in [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        Ipv6Addr::LOCALHOST.into(),
    ] {
        let closed = UdpSocket::bind((address, 0)).unwrap().local_addr().unwrap();
        let mut client = DatagramSocket::udp(closed).unwrap();
        let refused = Failure {
            why: Unreachable::Port,
            by: Reporter::Host(address),
        };
        for _ in 0..2 {
            let id = client.send(b"x").unwrap();
            departure(&mut client, id);
            assert_eq!(notice(&mut client), Notice::Failed(refused));
        }
        // Without looking at the notices in between.
        let mut sent = vec![client.send(b"x").unwrap()];
        std::thread::sleep(Duration::from_millis(5));
        sent.push(client.send(b"x").unwrap());
        let mut errors = 0;
        while !sent.is_empty() || errors < 2 {
            match notice(&mut client) {
                Notice::Departed { id, .. } => sent.retain(|other| *other != id),
                Notice::Failed(failure) => {
                    assert_eq!(failure, refused);
                    errors += 1;
                }
                Notice::Expired(_) => panic!("nothing expires on the loopback"),
            }
        }
        assert!(client.recv(&mut [0; 8]).unwrap().is_none());
    }
}

#[test]
fn drops_of_the_receive_buffer_are_counted() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    let mut client = DatagramSocket::udp(target).unwrap();
    client.socket.set_recv_buffer_size(4096).unwrap();
    let to = client.local_addr().unwrap();
    for _ in 0..100 {
        server.send_to(&[0; 512], to).unwrap();
    }
    // The count travels with the packets that get in, so one more follows whenever there is room.
    let (mut sent, mut received) = (100, 0);
    let drops = wait_for(&mut client, |client| {
        while let Some(packet) = client.recv(&mut [0; 512]).unwrap() {
            received += 1;
            if packet.drops.full + received == sent {
                return Some(packet.drops.full);
            }
        }
        server.send_to(&[0; 512], to).unwrap();
        sent += 1;
        None
    });
    assert!(drops > 0);
}

#[test]
fn icmp_replies_arrive_without_our_own_requests() {
    for address in [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        Ipv6Addr::LOCALHOST.into(),
    ] {
        let (mut socket, access) = DatagramSocket::icmp((address, 0).into()).unwrap();
        let identifier = match access {
            IcmpAccess::Raw => 0x4711,
            IcmpAccess::Ping { identifier } => identifier,
        };
        let request = echo_request(address.is_ipv4(), identifier, 3);
        let id = socket.send(&request).unwrap();
        let departed = departure(&mut socket, id);
        let mut buffer = [0; 128];
        // Other echoes may pass over the loopback meanwhile.
        let reply = loop {
            let reply = receive(&mut socket, &mut buffer);
            assert_eq!(
                buffer[0],
                if address.is_ipv4() { 0 } else { 129 },
                "only echo replies"
            );
            if buffer[4..8] == request[4..8] {
                break reply;
            }
        };
        assert_eq!(reply.len, 8);
        assert!(departed <= reply.kernel_ns.unwrap());
    }
}

#[test]
fn without_raw_sockets_a_ping_socket_serves() {
    in_own_network(|| {
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").unwrap();
        // SAFETY: changes only the effective user of this thread, which ends with the test.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) };
        assert_eq!(result, 0);
        for address in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ] {
            let (mut socket, access) = DatagramSocket::icmp((address, 0).into()).unwrap();
            let IcmpAccess::Ping { identifier } = access else {
                panic!("raw sockets should be refused")
            };
            let id = socket.send(&echo_request(address.is_ipv4(), 0, 5)).unwrap();
            departure(&mut socket, id);
            let mut buffer = [0; 128];
            let reply = receive(&mut socket, &mut buffer);
            assert_eq!(
                buffer[4..8],
                [identifier.to_be_bytes(), 5u16.to_be_bytes()].concat()
            );
            assert_eq!(reply.len, 8);
            assert!(reply.kernel_ns.is_some());
        }
    });
}

#[test]
fn when_nothing_is_allowed_the_error_says_what_to_do() {
    in_own_network(|| {
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", "1 0").unwrap();
        // SAFETY: changes only the effective user of this thread, which ends with the test.
        unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) };
        let error = DatagramSocket::icmp((Ipv4Addr::LOCALHOST, 0).into()).unwrap_err();
        assert_eq!(error.raw.kind(), ErrorKind::PermissionDenied);
        assert!(!crate::privilege::may_echo(true) && !crate::privilege::may_echo(false));
        let says = error.to_string();
        assert!(says.contains("sudo setcap cap_net_raw+ep /"), "{says}");
        assert!(says.contains("ping_group_range"), "{says}");
    });
}

#[test]
fn a_full_queue_of_our_own_is_an_error_and_stamps_stay_with_their_packets() {
    in_own_network(|| {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut client = DatagramSocket::udp(server.local_addr().unwrap()).unwrap();
        let first = client.send(b"1").unwrap();
        run("tc qdisc add dev lo root pfifo limit 0");
        assert_eq!(
            client.send(b"2").unwrap_err().raw_os_error(),
            Some(libc::ENOBUFS)
        );
        run("tc qdisc del dev lo root");
        let before = realtime_ns();
        let third = client.send(b"3").unwrap();
        assert!(departure(&mut client, first) < before);
        assert!(departure(&mut client, third) >= before);
        assert_eq!(client.take_notice().unwrap(), None);
    });
}

#[test]
fn waiting_ends_at_the_deadline() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = DatagramSocket::udp(server.local_addr().unwrap()).unwrap();
    set_exact_timers().unwrap();
    let deadline = monotonic_ns() + 20_000_000;
    client.wait_until(deadline).unwrap();
    let late = monotonic_ns().checked_sub(deadline).expect("not before it");
    assert!(late < SECOND / 2, "{late} ns late");
}
