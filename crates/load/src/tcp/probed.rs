//! A connection that is loaded and probed at once: records of payload as fast as TCP takes them in
//! one direction, and between them, in both, requests and answers. It is the same at both ends.
//!
//! A request that waits behind a send buffer would measure the buffer, so little waits unsent ([`UnsentLimit`]). What is
//! measured is the path through the network, and the waiting for what was lost before.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_net::tcp;
use plumb_wire::native::control::flow::Probed;
use plumb_wire::native::control::report::StreamEnd;
use plumb_wire::native::record::{MAX_BODY_BYTES, Reader, Record};

use super::sender::payload;
use super::unsent::UnsentLimit;
use crate::loaded::{Answered, Loaded};
use crate::phase_state::{POLL_INTERVAL, Stage, retry};
use crate::tls::{Pipe, TlsSession};

/// Bytes of one read: several records of the largest size.
const READ_BYTES: usize = 64 * 1024;

/// Reads before another thread may have the connection.
const READS: usize = 4;

/// What may wait to be sent beside payload: answers to 8,000 requests, while no client sends a hundred a second. A far
/// end that lets more wait does not read.
const MOST_WAITING_BYTES: usize = 64 * 1024;

/// Requests that may be under way on one connection: far more than are sent in the longest round
/// trip that is waited for.
const MOST_ASKED: usize = 1024;

/// Which way the load of a connection goes, seen from this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// This end sends it.
    Sent,
    /// This end receives it.
    Received,
}

/// A connection that is loaded and probed. One thread runs it; another may ask on it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Arc<TcpStream>,
    load: Load,
    starts_after: Duration,
    state: Mutex<State>,
    failed: AtomicBool,
}

#[derive(Debug)]
struct State {
    tls: Option<TlsSession>,
    reader: Reader,
    /// Records that are to go, and how many bytes of them have gone.
    out: Vec<u8>,
    gone: usize,
    asked: VecDeque<(u32, Instant)>,
    next_id: u32,
    answered: Vec<Answered>,
}

impl Loaded for Connection {
    fn is_loaded(&self, elapsed: Duration) -> bool {
        elapsed >= self.starts_after
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        let mut state = self.lock();
        if state.asked.len() >= MOST_ASKED {
            return;
        }
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        state.asked.push_back((id, Instant::now()));
        state.out.extend(Record::Request(id).head());
        // A failure shows to the thread that runs the connection.
        let _ = state.flush(&self.socket);
    }

    fn take_answered(&self) -> Vec<Answered> {
        std::mem::take(&mut self.lock().answered)
    }

    fn unanswered(&self) -> u64 {
        self.lock().asked.len() as u64
    }
}

impl Connection {
    /// A connection after its handshake.
    pub(super) fn new(
        socket: Arc<TcpStream>,
        tls: Option<TlsSession>,
        load: Load,
        probed: &Probed,
    ) -> Self {
        Self {
            socket,
            load,
            starts_after: Duration::try_from_secs_f64(probed.starts_after_s)
                .unwrap_or(Duration::MAX),
            state: Mutex::new(State {
                tls,
                reader: Reader::default(),
                out: Vec::new(),
                gone: 0,
                asked: VecDeque::new(),
                next_id: 0,
                answered: Vec::new(),
            }),
            failed: AtomicBool::new(false),
        }
    }

    /// Runs it until the stage is over or it fails, and returns within [`POLL_INTERVAL`] of that. Adds to `counter` the
    /// payload that came. Returns how it ended when it failed.
    pub(super) fn run(&self, counter: &AtomicU64, stage: &Stage) -> Option<StreamEnd> {
        match self.carry(counter, stage) {
            Ok(()) => None,
            Err(_) if stage.is_over() => None,
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                stage.failed(&error)
            }
        }
    }

    fn carry(&self, counter: &AtomicU64, stage: &Stage) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        self.socket.set_nodelay(true)?;
        let payload = payload(MAX_BODY_BYTES);
        let mut buffer = vec![0; READ_BYTES];
        let mut unsent = UnsentLimit::default();
        let mut more_to_read = false;
        while !stage.is_over() {
            let until_loaded = self.starts_after.saturating_sub(stage.started.elapsed());
            let loads = self.load == Load::Sent && until_loaded.is_zero();
            let has_budget = !stage.budget.is_spent();
            let wait = match (more_to_read, loads) {
                (true, _) => Duration::ZERO,
                (false, true) => POLL_INTERVAL,
                // Whole milliseconds are what poll knows.
                (false, false) => POLL_INTERVAL.min(until_loaded + Duration::from_millis(1)),
            };
            if (loads && has_budget) || self.lock().waits() {
                tcp::wait_readable_or_writable(&self.socket, wait)?;
            } else {
                tcp::wait_readable(&self.socket, wait)?;
            }
            let came = |bytes: usize| {
                counter.fetch_add(bytes as u64, Ordering::Relaxed);
                stage.budget.take_in(bytes as u64);
            };
            more_to_read = self.lock().read(&self.socket, &mut buffer, &came)?;
            let flushed = self.lock().flush(&self.socket)?;
            if loads && flushed {
                let bytes = unsent.follow(&self.socket)?.min(MAX_BODY_BYTES);
                let granted = stage.budget.reserve(bytes as u64) as usize;
                if granted > 0 {
                    let body = payload.get(..granted).unwrap_or(&payload);
                    self.lock().send(&self.socket, body)?;
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether something waits to be sent.
    fn waits(&self) -> bool {
        self.gone < self.out.len() || self.tls.as_ref().is_some_and(TlsSession::keeps_back)
    }

    /// Reads what is there; whether there may be more.
    fn read(
        &mut self,
        socket: &TcpStream,
        buffer: &mut [u8],
        came: &dyn Fn(usize),
    ) -> io::Result<bool> {
        for _ in 0..READS {
            let count = match Pipe::new(socket, self.tls.as_mut()).read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if retry(&error) => return Ok(false),
                Err(error) => return Err(error),
            };
            let mut bytes = buffer.get(..count).unwrap_or_default();
            loop {
                let record = self.reader.next(&mut bytes);
                match record.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))? {
                    None => break,
                    Some(Record::Payload(bytes)) => came(bytes),
                    Some(Record::Request(id)) => self.answer(id)?,
                    Some(Record::Answer(id)) => self.note(id),
                }
            }
        }
        Ok(true)
    }

    fn answer(&mut self, id: u32) -> io::Result<()> {
        if self.out.len() - self.gone > MOST_WAITING_BYTES {
            return Err(io::Error::other("more requests than answers are taken"));
        }
        self.out.extend(Record::Answer(id).head());
        Ok(())
    }

    /// An answer to no request is not counted.
    fn note(&mut self, id: u32) {
        let place = self.asked.iter().position(|(asked, _)| *asked == id);
        if let Some((_, since)) = place.and_then(|place| self.asked.remove(place)) {
            let at = Instant::now();
            self.answered.push(Answered {
                took: at - since,
                at,
            });
        }
    }

    /// Sends what waits, as far as the kernel takes it; whether all of it went.
    fn flush(&mut self, socket: &TcpStream) -> io::Result<bool> {
        let mut pipe = Pipe::new(socket, self.tls.as_mut());
        while self.gone < self.out.len() {
            match pipe.write(self.out.get(self.gone..).unwrap_or_default()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.gone += count,
                Err(error) if retry(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.gone = 0;
        match pipe.flush() {
            Ok(()) => Ok(true),
            Err(error) if retry(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a record of payload, behind what waits.
    fn send(&mut self, socket: &TcpStream, body: &[u8]) -> io::Result<()> {
        self.out.extend(Record::Payload(body.len()).head());
        self.out.extend(body);
        self.flush(socket).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    const PROBED: Probed = Probed {
        starts_after_s: 0.2,
    };

    fn pair() -> [Arc<TcpStream>; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        [near, listener.accept().unwrap().0].map(Arc::new)
    }

    #[test]
    fn requests_are_answered_between_the_payload_whichever_end_sends_it() {
        for (load, far_load) in [(Load::Sent, Load::Received), (Load::Received, Load::Sent)] {
            let [near, far] = pair();
            let near = Arc::new(Connection::new(near, None, load, &PROBED));
            let far = Connection::new(far, None, far_load, &PROBED);
            let stages = [(); 2].map(|()| Stage::begin(Duration::from_secs(10), Some(50_000_000)));
            let (near_stage, far_stage) = (Arc::clone(&stages[0]), Arc::clone(&stages[1]));
            let runs = Arc::clone(&near);
            let near_run = std::thread::spawn(move || {
                let counter = AtomicU64::new(0);
                assert!(runs.run(&counter, &near_stage).is_none());
                counter.into_inner()
            });
            let far_run = std::thread::spawn(move || {
                let counter = AtomicU64::new(0);
                // The near end leaves first.
                let _ = far.run(&counter, &far_stage);
                counter.into_inner()
            });
            let mut answered = Vec::new();
            let (mut asked, began) = (0, Instant::now());
            while answered.len() < 20 && began.elapsed() < Duration::from_secs(30) {
                // Before the load, and beside it.
                if asked < 20 {
                    near.ask();
                    asked += 1;
                }
                std::thread::sleep(Duration::from_millis(20));
                answered.extend(near.take_answered());
            }
            assert_eq!((answered.len(), near.unanswered()), (20, 0));
            assert!(!near.has_failed());
            for stage in &stages {
                stage.stop();
            }
            let carried = near_run.join().unwrap() + far_run.join().unwrap();
            // Nothing was carried beyond the budget.
            assert!((1..=50_000_000).contains(&carried), "{carried}");
        }
    }

    #[test]
    fn what_is_no_record_ends_it() {
        let [near, far] = pair();
        let near = Connection::new(near, None, Load::Received, &PROBED);
        (&*far).write_all(&[9; 100]).unwrap();
        let stage = Stage::begin(Duration::from_secs(10), None);
        let ended = near.run(&AtomicU64::new(0), &stage).unwrap();
        assert!(ended.error.contains("unknown kind 9"), "{}", ended.error);
        assert!(near.has_failed());
    }
}
