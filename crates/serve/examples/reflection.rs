//! What a reflector adds to a bare loop that receives and sends (`bench/serve.sh`).
//!
//!     reflection bare PORT              returns every datagram, as soon as a program can
//!     reflection ask ADDRESS COUNT      sends STAMP packets at 10,000 a second; prints the 50th and 99th percentile of their
//!                                       round trips in microseconds, and how many did not come back
//!
//! Each ends by itself: the loop 10 s after the last datagram.

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// How many packets are sent each second.
const RATE: u32 = 10_000;

fn bare(port: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(("0.0.0.0", port.parse()?))?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        socket.send_to(buffer.get(..length).unwrap_or_default(), from)?;
    }
    Ok(())
}

fn ask(address: &str, count: u32) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    let begun = Instant::now();
    let at = |number: u32| Duration::from_secs(1) * number / RATE;
    let (mut trips, mut sent) = (Vec::new(), 0);
    let mut left = vec![None; count as usize];
    let mut buffer = [0; 2048];
    // Waiting is spinning here: what is measured is what the other end adds, and not this one's wake-ups.
    while begun.elapsed() < at(count) + Duration::from_millis(200) {
        if sent < count && begun.elapsed() >= at(sent) {
            let mut packet = [0u8; 44];
            packet[..4].copy_from_slice(&sent.to_be_bytes());
            if let Some(place) = left.get_mut(sent as usize) {
                *place = Some(Instant::now());
            }
            // A full queue loses it, as the path may.
            let _ = socket.send(&packet);
            sent += 1;
        }
        while let Ok(length) = socket.recv(&mut buffer) {
            // A reflector has the sender's number after its own; a loop has it where it was.
            let number = |place: usize| buffer.get(place..place + 4);
            let place = if address.ends_with(":862") { 24 } else { 0 };
            let number = number(place).filter(|_| length >= 44);
            let number = number
                .and_then(|bytes| bytes.try_into().ok())
                .map(u32::from_be_bytes);
            if let Some(Some(at)) = number.and_then(|number| left.get(number as usize)) {
                trips.push(at.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    trips.sort_by(f64::total_cmp);
    let part = |share: f64| trips.get((trips.len() as f64 * share) as usize).copied();
    println!(
        "{:.1} {:.1} {}",
        part(0.5).unwrap_or(f64::NAN),
        part(0.99).unwrap_or(f64::NAN),
        count as usize - trips.len()
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["bare", port] => bare(port),
        ["ask", address, count] => ask(address, count.parse()?),
        _ => Err("reflection bare PORT, or reflection ask ADDRESS COUNT".into()),
    }
}
