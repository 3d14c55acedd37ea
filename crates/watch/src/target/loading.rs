//! What targets share that load the path to `plumb serve`: a budget of bytes a day, and rest between. The far end's queue is
//! waited in, and it is measured seldom: never at full rate all the time. Only a responder is loaded, which agrees by answering.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::{Caller, Client, ClientError};
use plumb_measure::far_end::FarEnd as Loaded;
use plumb_measure::phase::Group;
use plumb_measure::progress::Nobody;
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_measure::with_far_end::{self, Besides, Plan};
use plumb_model::results::Direction;
use plumb_model::run::Run;
use plumb_model::units::ByteCount;
use plumb_net::egress::Outlet;
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::native::key::Key;
use plumb_wire::native::spec::PORT;

use super::kind::FarEnd;
use super::settings::{Settings, Wrong};

/// So many times as long nothing is loaded: a tenth of the time at most is.
const REST: u32 = 9;

/// How long a responder may take to answer: a lost SYN is retransmitted after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it waits for its turn where the responder serves others, unless the file says otherwise, which is no more.
const PATIENCE: Duration = Duration::from_secs(60);

/// What follows a load at most: what is in its queue, and both ends' reports.
const ENDING: Duration = Duration::from_secs(5);

const DAY_S: f64 = 86_400.0;

/// What is usual of a kind, where the file says nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usual {
    pub(super) per_day: ByteCount,
    /// How long one load lasts at most, and the bounds of that.
    pub(super) lasts: Duration,
    pub(super) lasts_bounds: (Duration, Duration),
}

/// Settings of such a target.
#[derive(Debug)]
pub(super) struct Loading {
    port: u16,
    per_day: ByteCount,
    pub(super) lasts: Duration,
    /// How long it waits for its turn.
    waits: Duration,
    /// A file with the responder's key.
    key_file: Option<PathBuf>,
}

/// What is loaded by how much, and what is measured beside.
#[derive(Debug, Clone)]
pub(super) struct Loads {
    /// One after the other.
    pub(super) directions: Vec<Direction>,
    pub(super) times: Times,
    pub(super) streams: u32,
    /// Whether round trips are measured, before and beside the loads.
    pub(super) latency: bool,
}

/// What came of it.
pub(super) enum Ran {
    Measured(Box<Run>),
    /// The far end is gone, which says something of the path.
    Lost(String),
}

impl Loading {
    pub(super) fn read(settings: &mut Settings, usual: Usual) -> Result<Self, Wrong> {
        let per_day = match settings.take::<String>("bytes_a_day")? {
            None => usual.per_day,
            Some(text) => text.parse().map_err(|_| {
                settings.wrong(
                    "bytes_a_day",
                    "write bytes with their unit, such as \"2GB\"",
                )
            })?,
        };
        let lasts = settings.time("lasts", usual.lasts_bounds)?;
        let waits = settings.time("waits", (Duration::ZERO, PATIENCE))?;
        Ok(Self {
            port: settings.port(PORT)?,
            per_day,
            lasts: lasts.unwrap_or(usual.lasts),
            waits: waits.unwrap_or(PATIENCE),
            key_file: settings.take("key_file")?,
        })
    }

    /// How long so many loads take at most, from looking for the responder to the last report.
    pub(super) fn longest(&self, loads: u32) -> Duration {
        // Connecting has its time, and so has what is said before the first load.
        self.waits + CONNECT_TIMEOUT * 2 + (self.lasts + ENDING) * loads
    }

    /// What one measurement may transfer.
    fn share(&self, every: Duration) -> ByteCount {
        let share = self.per_day.bytes() as f64 * every.as_secs_f64() / DAY_S;
        ByteCount::from_bytes(share as u64)
    }

    /// Whether it may be measured so often, where each measurement is so many loads and transfers that much at least.
    pub(super) fn check(
        &self,
        every: Duration,
        loads: u32,
        least: ByteCount,
    ) -> Result<(), String> {
        let shortest = self.lasts * loads * (REST + 1);
        if every < shortest {
            return Err(format!(
                "a path is loaded a tenth of the time at most: every {} s, or more seldom",
                shortest.as_secs()
            ));
        }
        if self.share(every) < least {
            return Err(format!(
                "of {} a day one measurement gets {}, and {least} are the least: give it more, or measure more seldom",
                self.per_day,
                self.share(every)
            ));
        }
        Ok(())
    }

    fn key(&self) -> Result<Option<Key>, String> {
        let Some(file) = &self.key_file else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("the key in {} cannot be read: {error}", file.display()))?;
        match Key::new(&text) {
            Some(key) => Ok(Some(key)),
            None => Err(format!("{} holds no key of a responder", file.display())),
        }
    }

    /// Loads the path, in turn with other clients of the responder.
    ///
    /// # Errors
    /// When that cannot be, which says nothing of the path: why, in words.
    pub(super) fn run(&self, far: &FarEnd<'_>, loads: Loads) -> Result<Ran, String> {
        let caller = Caller {
            longest: self.waits,
            key: self.key()?,
            ..Caller::PLAIN
        };
        let connected = Client::connect_in_turn(
            &Outlet::default(),
            far.host,
            far.at(self.port),
            CONNECT_TIMEOUT,
            caller,
        );
        let client = match connected {
            Ok(client) => client,
            // A far end that is busy says nothing of the path; one that is gone does.
            Err(
                error @ (ClientError::Refused { .. }
                | ClientError::TimedOut { .. }
                | ClientError::Unreachable { .. }
                | ClientError::Mute { .. }),
            ) => return Ok(Ran::Lost(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        let plan = Plan {
            name: far.host.to_owned(),
            command: vec!["plumb".to_owned(), "watch".to_owned()],
            directions: loads.directions,
            times: loads.times,
            until: None,
            asked: None,
            bytes: None,
            until_steady: false,
            from: None,
            to: None,
            groups: vec![Group {
                streams: loads.streams,
                flow: Flow::Tcp(TcpFlow::default()),
            }],
            shape: Shape::BestEffort,
            applications: Vec::new(),
            budget: self.share(far.every),
            latency: loads.latency,
            judge: false,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let far_end = Loaded::Responder(Box::new(client));
        let measured = with_far_end::run(far_end, &plan, Besides::default(), &Nobody, &stop);
        let run = measured.map_err(|error| error.to_string())?.run;
        Ok(Ran::Measured(Box::new(run)))
    }
}
