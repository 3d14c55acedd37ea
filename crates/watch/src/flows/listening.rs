//! The socket of a collector, and the thread that reads it.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::DatagramSocket;
use plumb_wire::flow_export::MAX_MESSAGE_BYTES;

use super::collector::Collector;
use super::minute::Tops;
use super::settings::FlowSource;
use super::state::State;
use crate::target::kind::now_us;

/// Asked of the kernel: half a second of 50,000 datagrams a second, as routers send them in bursts when flows end together.
const RECEIVE_BUFFER_BYTES: u32 = 32 << 20;

/// How soon a word to stop, or the end of a minute, is seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Datagrams that are read before the time is looked at again.
const DATAGRAMS_A_TIME: u32 = 256;

/// After the first datagram more are waited for, so that one system call is enough for each of them: a receive buffer of 200 kB,
/// which any user has, takes 90,000 a second meanwhile.
const GATHER: Duration = Duration::from_millis(1);

const MINUTE_S: i64 = 60;

/// A collector that listens.
#[derive(Debug)]
pub struct Listener {
    socket: DatagramSocket,
    collector: Collector,
    buffer: Vec<u8>,
    /// Whether more datagrams may wait than were read.
    has_more: bool,
}

impl Listener {
    /// # Errors
    /// When the address cannot be had.
    pub fn bind(source: FlowSource) -> io::Result<Self> {
        let socket = DatagramSocket::bound(UdpSocket::bind(source.listen)?)?;
        socket.set_receive_buffer(RECEIVE_BUFFER_BYTES)?;
        Ok(Self {
            socket,
            collector: Collector::new(source, now_us() / 1000),
            buffer: vec![0; MAX_MESSAGE_BYTES],
            has_more: false,
        })
    }

    /// Reads what is there, or waits for a moment.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn listen(&mut self) -> io::Result<()> {
        if !self.has_more {
            let look_ns = u64::try_from(LOOK_EVERY.as_nanos()).unwrap_or(u64::MAX);
            let until_ns = monotonic_ns().saturating_add(look_ns);
            self.socket.wait_until(until_ns)?;
            thread::sleep(GATHER);
        }
        let now_ms = now_us() / 1000;
        self.has_more = true;
        for _ in 0..DATAGRAMS_A_TIME {
            let Some(received) = self.socket.recv(&mut self.buffer)? else {
                self.has_more = false;
                break;
            };
            self.collector.note_dropped(received.drops.full);
            let datagram = self.buffer.get(..received.len).unwrap_or_default();
            self.collector.hear(received.from.ip(), datagram, now_ms);
        }
        Ok(())
    }

    pub fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }
}

/// What a place had in a minute.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) source: String,
    /// When the minute began, s since 1970.
    pub(crate) start_s: i64,
    pub(crate) tops: Tops,
    pub(crate) state: State,
}

/// All places that are listened at, each in a thread of its own.
#[derive(Debug)]
pub(crate) struct Listening {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    heard: mpsc::Receiver<Heard>,
}

impl Listening {
    /// Listens at these places.
    ///
    /// # Errors
    /// Which of them cannot be listened at, and why.
    pub(crate) fn begin(sources: &[FlowSource]) -> Result<Self, (FlowSource, io::Error)> {
        let (to, heard) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut this = Self {
            threads: Vec::new(),
            stop: Arc::clone(&stop),
            heard,
        };
        for source in sources {
            let begin = || {
                let listener = Listener::bind(source.clone())?;
                let (name, to, stop) = (source.name.clone(), to.clone(), Arc::clone(&stop));
                let work = move || read(listener, &name, &to, &stop);
                thread::Builder::new().name("flows".into()).spawn(work)
            };
            match begin() {
                Ok(thread) => this.threads.push(thread),
                Err(error) => {
                    this.end();
                    return Err((source.clone(), error));
                }
            }
        }
        Ok(this)
    }

    /// What was heard in minutes that are over.
    pub(crate) fn heard(&self) -> impl Iterator<Item = Heard> {
        self.heard.try_iter()
    }

    /// Whether it was ended.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Stops to listen, and returns what was heard since the last minutes that were taken.
    pub(crate) fn end(&mut self) -> Vec<Heard> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        self.heard.try_iter().collect()
    }
}

/// Reads until it is to stop, within [`LOOK_EVERY`], and sends what came of each minute.
fn read(mut listener: Listener, name: &str, to: &mpsc::Sender<Heard>, stop: &AtomicBool) {
    let minute = || now_us().div_euclid(1_000_000).div_euclid(MINUTE_S);
    let send = |listener: &mut Listener, minute: i64| {
        let collector = listener.collector();
        let heard = Heard {
            source: name.to_owned(),
            start_s: minute * MINUTE_S,
            tops: collector.take_tops(),
            state: collector.state(),
        };
        // It is no error if the receiver is gone.
        let _ = to.send(heard);
    };
    let mut begun = minute();
    while !stop.load(Ordering::Relaxed) {
        let now = minute();
        if now != begun {
            send(&mut listener, begun);
            begun = now;
        }
        // An error of the socket, such as that memory is short, is over at some time.
        if listener.listen().is_err() {
            thread::sleep(LOOK_EVERY);
        }
    }
    send(&mut listener, begun);
}
