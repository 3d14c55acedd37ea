//! Packets as they pass an interface.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_capture::{Filter, Frame, Next, ReadError, Sieve, Source, Told};
use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::packet_ring::{Captured, HANDED_OVER, Instruction, Interface, PacketRing};
use plumb_wire::pcapng::Direction;

use super::files::Files;

/// How long it waits before it looks whether it is to end.
const LOOKS: Duration = Duration::from_millis(100);

/// What is to be captured.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The interface by its name; `any` is all of them.
    pub interface: &'a str,
    /// Which packets; all of them without one.
    pub filter: Option<Filter>,
    /// How many bytes are kept of a packet.
    pub snaplen: u32,
    /// Whether packets for other hosts are wanted too.
    pub promiscuous: bool,
    /// Ends after this time; without it the capture lasts until it is stopped.
    pub length: Option<Duration>,
    /// Where the packets are kept.
    pub files: Option<Files>,
}

/// Packets of an interface, which end after a time, when it is to stop, or when the interface is gone.
#[derive(Debug)]
pub struct Live {
    ring: PacketRing,
    link: u16,
    sieve: Option<Sieve>,
    files: Option<Files>,
    until_ns: Option<u64>,
    stop: Arc<AtomicBool>,
    ends: Option<Ends>,
    /// Why it ends before it was to.
    failed: Option<io::Error>,
    /// When there was time for other things last.
    paused_ns: u64,
    has_ended: bool,
    told: Told,
}

/// What is left to take once it is to end: packets that had passed by then.
#[derive(Debug, Clone, Copy)]
struct Ends {
    passed_by_unix_ns: u64,
    until_ns: u64,
}

impl Live {
    /// Begins to capture. It ends within a fifth of a second after `stop` was set.
    ///
    /// # Errors
    /// When there is no such interface, when it may not be captured (CAP_NET_RAW), or when its link type is not one that
    /// the filter knows.
    pub fn begin(wanted: Wanted<'_>, stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let interface = Interface::open(wanted.interface)?;
        let link = interface.link();
        let program = wanted.filter.as_ref().map(|filter| filter.compile(link));
        let program = program.transpose().map_err(io::Error::other)?;
        let program: Vec<Instruction> = program.map_or_else(Vec::new, |program| {
            let each = program.instructions().iter();
            each.map(|i| (i.code, i.jt, i.jf, i.k)).collect()
        });
        let mut files = wanted.files;
        if let Some(files) = &mut files {
            files.begin(wanted.interface, link, wanted.snaplen)?;
        }
        let ring = interface.start(wanted.snaplen, wanted.promiscuous, &program)?;
        Ok(Self {
            ring,
            link,
            sieve: wanted.filter.map(Sieve::new),
            files,
            until_ns: wanted
                .length
                .map(|length| monotonic_ns().saturating_add(nanoseconds(length))),
            stop: Arc::clone(stop),
            ends: None,
            failed: None,
            paused_ns: monotonic_ns(),
            has_ended: false,
            told: Told::default(),
        })
    }

    /// Advances to the next packet that passes the filter, or pauses: when none came for a tenth of a second, and as
    /// often where they come without end.
    fn next(&mut self) -> Result<Next, ReadError> {
        // Each turn takes a packet from the ring, which ends when it is empty, or when it is time to end.
        loop {
            let now_ns = monotonic_ns();
            let is_over = self.until_ns.is_some_and(|until_ns| now_ns >= until_ns)
                || self.stop.load(Ordering::Relaxed)
                || self.failed.is_some();
            if self.ends.is_none() && is_over {
                self.ends = Some(Ends {
                    passed_by_unix_ns: realtime_ns(),
                    until_ns: now_ns.saturating_add(nanoseconds(HANDED_OVER)),
                });
            }
            let until_ns = self.ends.map_or(self.until_ns, |ends| Some(ends.until_ns));
            let left_ns = until_ns.map(|until_ns| until_ns.saturating_sub(now_ns));
            if self.ends.is_some() && left_ns == Some(0) {
                return self.ended();
            }
            if now_ns.saturating_sub(self.paused_ns) >= nanoseconds(LOOKS) {
                self.paused_ns = now_ns;
                return Ok(Next::Nothing);
            }
            let within = left_ns.map_or(LOOKS, |left| LOOKS.min(Duration::from_nanos(left)));
            match self.ring.advance(within) {
                Ok(true) => {}
                Ok(false) => {
                    self.paused_ns = monotonic_ns();
                    return Ok(Next::Nothing);
                }
                // What passed before is handed over yet.
                Err(error) => {
                    self.failed.get_or_insert(why(error));
                    continue;
                }
            }
            let packet = self.ring.packet();
            let passed_by = self.ends.map(|ends| ends.passed_by_unix_ns);
            if passed_by.is_some_and(|ns| packet.unix_ns > ns) {
                return self.ended();
            }
            let frame = frame(self.link, &packet);
            let passes = match &mut self.sieve {
                Some(sieve) => sieve.passes(&frame).map_err(io::Error::other)?,
                None => true,
            };
            if !passes {
                continue;
            }
            if let Some(files) = &mut self.files {
                let direction = match packet.sent {
                    true => Direction::Outbound,
                    false => Direction::Inbound,
                };
                files.packet(&frame, direction)?;
            }
            return Ok(Next::Packet(frame.unix_ns));
        }
    }

    /// The end, or why it came early.
    fn ended(&mut self) -> Result<Next, ReadError> {
        match self.failed.take() {
            Some(why) => Err(why.into()),
            None => Ok(Next::End),
        }
    }

    /// Counts what was lost, and ends the files.
    fn end(&mut self) -> io::Result<()> {
        self.has_ended = true;
        self.told.dropped = self.ring.dropped()?;
        match &mut self.files {
            Some(files) => files.end(self.told.dropped),
            None => Ok(()),
        }
    }
}

impl Source for Live {
    const SEES_STOP: bool = true;

    fn advance(&mut self) -> Result<Next, ReadError> {
        if self.has_ended {
            return Ok(Next::End);
        }
        let next = self.next();
        if matches!(next, Ok(Next::End) | Err(_)) {
            let ended = self.end();
            // What ended the capture comes before what ending it brought.
            return next.and_then(|end| Ok(ended.map(|()| end)?));
        }
        next
    }

    fn frame(&self) -> Frame<'_> {
        frame(self.link, &self.ring.packet())
    }

    fn told(&mut self) -> Told {
        // What cannot be asked for any more is as it was.
        if let Ok(dropped) = self.ring.dropped() {
            self.told.dropped = dropped;
        }
        self.told.clone()
    }

    fn format(&self) -> &'static str {
        "live"
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn frame<'a>(link: u16, packet: &Captured<'a>) -> Frame<'a> {
    Frame {
        unix_ns: packet.unix_ns,
        link,
        bytes: packet.bytes,
        original_bytes: packet.original_bytes,
    }
}

/// The kernel has one number for an interface that is down and one that is gone.
fn why(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NetworkDown => io::Error::other("the interface went down, or is gone"),
        _ => error,
    }
}
