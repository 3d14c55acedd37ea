//! What `bench/lab.sh` compares a link with: two hosts joined by a bare pair of TUN devices. For
//! each direction a thread reads packets from one and writes them to the other.
//!
//!     bare_tun HOLD_US COMMAND [ARGUMENT]...
//!
//! Runs the command on the host 10.0.0.1; the other is 10.0.0.2, and answers nothing by ICMP. The
//! threads keep each packet for HOLD_US microseconds, by the timer of ppoll(2); with 0 they
//! do nothing but read and write. Prints how many packets went to 10.0.0.2, and the processor time
//! of the thread that carried them, in seconds. Needs root.

use std::collections::VecDeque;
use std::error::Error;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use plumb_net::clock::ThreadClock;
use plumb_net::namespace::Namespaces;
use plumb_net::netlink::{Netlink, interface_index};
use plumb_net::sched::set_realtime;
use plumb_net::tun::{MAX_PACKET_BYTES, Tun, VNET_HEADER_BYTES};
use plumb_net::{process, sysctl};

type Failure = Box<dyn Error + Send + Sync>;

/// The priority of the laboratory's drivers.
const PRIORITY: i32 = 50;

fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: bare_tun HOLD_US COMMAND [ARGUMENT]...";
    let hold = Duration::from_micros(arguments.next().ok_or(usage)?.parse()?);
    let mut command = Command::new(arguments.next().ok_or(usage)?);
    command.args(arguments);

    let (here, near) = host("here", Ipv4Addr::new(10, 0, 0, 1))?;
    let (_there, far) = host("there", Ipv4Addr::new(10, 0, 0, 2))?;
    let (near, far) = (Arc::new(near), Arc::new(far));
    let (carried, clock) = start(Arc::clone(&near), Arc::clone(&far), hold)?;
    start(far, near, hold)?;

    process::start_in(&mut command, &Arc::new(here))?;
    let begun = (carried.load(Ordering::Relaxed), clock.read());
    let status = command.status()?;
    let ended = (carried.load(Ordering::Relaxed), clock.read());
    if !status.success() {
        return Err(format!("the command ended with {status}").into());
    }
    let cpu = ended.1.zip(begun.1).ok_or("the thread ended")?;
    println!("{} {}", ended.0 - begun.0, (cpu.0 - cpu.1).as_secs_f64());
    Ok(())
}

/// A host with a TUN device to the 10.0.0.0/24.
fn host(name: &str, address: Ipv4Addr) -> Result<(Namespaces, Tun), Failure> {
    let node = Namespaces::create(name, || Ok::<_, io::Error>(()))?;
    let tun = node.in_network(|| {
        sysctl::write("net.ipv4.icmp_ratelimit", "2147483647")?;
        let tun = Tun::create("tun0")?;
        let mut netlink = Netlink::open()?;
        let index = interface_index("tun0")?;
        netlink.set_up(index, None)?;
        netlink.add_address(index, address.into(), 24)?;
        Ok::<_, Failure>(tun)
    })?;
    Ok((node, tun))
}

/// Starts a thread that carries packets for good; returns what counts them and its clock.
fn start(
    from: Arc<Tun>,
    to: Arc<Tun>,
    hold: Duration,
) -> Result<(Arc<AtomicU64>, ThreadClock), Failure> {
    let count = Arc::new(AtomicU64::new(0));
    let (started, starts) = mpsc::sync_channel(1);
    thread::spawn({
        let count = Arc::clone(&count);
        move || {
            let ready = set_realtime(PRIORITY).and_then(|()| ThreadClock::of_this_thread());
            let _ = started.send(ready);
            if let Err(error) = carry(&from, &to, hold, &count) {
                eprintln!("bare_tun: {error}");
            }
        }
    });
    Ok((count, starts.recv()??))
}

fn carry(from: &Tun, to: &Tun, hold: Duration, count: &AtomicU64) -> io::Result<()> {
    let (mut header, mut packet) = ([0; VNET_HEADER_BYTES], vec![0; MAX_PACKET_BYTES]);
    let mut held: VecDeque<(Instant, [u8; VNET_HEADER_BYTES], Vec<u8>)> = VecDeque::new();
    let write = |header: &[u8; VNET_HEADER_BYTES], packet: &[u8]| {
        count.fetch_add(1, Ordering::Relaxed);
        to.write(header, packet)
    };
    loop {
        while let Some(length) = from.read(&mut header, &mut packet)? {
            let packet = packet.get(..length).unwrap_or_default();
            if hold.is_zero() {
                write(&header, packet)?;
            } else {
                held.push_back((Instant::now() + hold, header, packet.to_vec()));
            }
        }
        while let Some((_, header, packet)) = held.pop_front_if(|(due, ..)| *due <= Instant::now())
        {
            write(&header, &packet)?;
        }
        let left = |(due, ..): &(Instant, _, _)| due.saturating_duration_since(Instant::now());
        let timeout = held.front().map(left).map(TimeSpec::from_duration);
        ppoll(
            &mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)],
            timeout,
            None,
        )?;
    }
}
