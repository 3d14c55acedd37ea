//! The rate of one direction to `plumb serve`, within a budget of bytes a day. The far end's queue is waited in, and it is
//! measured seldom: never at full rate all the time. Only a responder is loaded, which agrees by answering.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::{Caller, Client, ClientError};
use plumb_measure::far_end::FarEnd as Loaded;
use plumb_measure::phase::{Group, carried_bps};
use plumb_measure::progress::Nobody;
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_measure::with_far_end::{self, Besides, Plan};
use plumb_model::direction::OneDirection;
use plumb_model::results::Direction;
use plumb_model::units::ByteCount;
use plumb_net::egress::Outlet;
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::native::key::Key;
use plumb_wire::native::spec::PORT;

use super::kind::{FarEnd, Kind, Probed};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// What may be transferred in a day unless the file says otherwise: 24 measurements of 5 s at 67 Mbit/s.
const PER_DAY: ByteCount = ByteCount::from_bytes(1_000_000_000);

/// The least that a load phase of a few round trips takes, as `plumb rate` has it.
const LEAST: ByteCount = ByteCount::from_bytes(1_000_000);

/// Unless the file says otherwise.
const EVERY: Duration = Duration::from_secs(3600);

/// How long it lasts at most, unless the file says otherwise: slow start is over on most paths.
const LASTS: Duration = Duration::from_secs(5);

/// The bounds of that. Shorter ones show slow start alone, longer ones no more.
const LASTS_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// So many times as long nothing is loaded: a tenth of the time at most is.
const REST: u32 = 9;

/// How long a responder may take to answer: a lost SYN is retransmitted after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it waits for its turn where the responder serves others.
const PATIENCE: Duration = Duration::from_secs(60);

const DAY_S: f64 = 86_400.0;

#[derive(Debug)]
struct Rate {
    direction: OneDirection,
    port: u16,
    per_day: ByteCount,
    lasts: Duration,
    /// A file with the responder's key.
    key_file: Option<PathBuf>,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let direction: String = settings.need("direction", "direction = \"down\", or \"up\"")?;
    let direction = direction
        .parse()
        .map_err(|_| settings.wrong("direction", "a direction is \"up\" or \"down\""))?;
    let per_day = match settings.take::<String>("bytes_a_day")? {
        None => PER_DAY,
        Some(text) => text.parse().map_err(|_| {
            settings.wrong(
                "bytes_a_day",
                "write bytes with their unit, such as \"2GB\"",
            )
        })?,
    };
    Ok(Box::new(Rate {
        direction,
        port: settings.port(PORT)?,
        per_day,
        lasts: settings.time("lasts", LASTS_BOUNDS)?.unwrap_or(LASTS),
        key_file: settings.take("key_file")?,
    }))
}

impl Rate {
    /// What one measurement may transfer.
    fn share(&self, every: Duration) -> ByteCount {
        let share = self.per_day.bytes() as f64 * every.as_secs_f64() / DAY_S;
        ByteCount::from_bytes(share as u64)
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
}

impl Kind for Rate {
    fn check(&self, every: Duration) -> Result<(), String> {
        let least = self.lasts * (REST + 1);
        if every < least {
            return Err(format!(
                "a rate is measured a tenth of the time at most: every {} s, or more seldom",
                least.as_secs()
            ));
        }
        if self.share(every) < LEAST {
            return Err(format!(
                "of {} a day one measurement gets {}, and {LEAST} are the least: give it more, or measure more seldom",
                self.per_day,
                self.share(every)
            ));
        }
        Ok(())
    }

    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let caller = Caller {
            longest: PATIENCE,
            key: self.key()?,
            ..Caller::PLAIN
        };
        let probed = Probed::now();
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
            ) => return Ok(probed.lost(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        let plan = Plan {
            name: far.host.to_owned(),
            command: vec!["plumb".to_owned(), "watch".to_owned()],
            directions: vec![Direction::from(self.direction)],
            times: Times::of_phases(self.lasts),
            until: None,
            asked: None,
            bytes: None,
            until_steady: false,
            from: None,
            to: None,
            groups: vec![Group {
                streams: 1,
                flow: Flow::Tcp(TcpFlow::default()),
            }],
            shape: Shape::BestEffort,
            applications: Vec::new(),
            budget: self.share(far.every),
            latency: false,
            judge: false,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let far_end = Loaded::Responder(Box::new(client));
        let measured = with_far_end::run(far_end, &plan, Besides::default(), &Nobody, &stop);
        let run = measured.map_err(|error| error.to_string())?.run;
        match carried_bps(&run) {
            Some(bps) => Ok(probed.with(bps)),
            None => Ok(probed.lost("nothing was carried")),
        }
    }

    fn unit(&self) -> Unit {
        Unit::BitsPerSecond
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn is_load(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::settings::tests::settings;

    fn rate(text: &str) -> Box<dyn Kind> {
        read(&mut settings(text)).unwrap()
    }

    #[test]
    fn a_tenth_of_the_time_and_a_budget_bound_it() {
        let usual = rate("direction = \"down\"");
        usual.check(usual.usual_every()).unwrap();
        let why = usual.check(Duration::from_secs(49)).unwrap_err();
        assert!(why.contains("every 50 s"), "{why}");
        let little = rate("direction = \"up\"\nbytes_a_day = \"10MB\"");
        let why = little.check(EVERY).unwrap_err();
        assert!(why.contains("are the least"), "{why}");
        little.check(Duration::from_secs(12_000)).unwrap();
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "",
            "direction = \"both\"",
            "direction = \"up\"\nbytes_a_day = \"much\"",
            "direction = \"up\"\nlasts = \"1h\"",
        ] {
            assert!(read(&mut settings(text)).is_err(), "{text}");
        }
    }
}
