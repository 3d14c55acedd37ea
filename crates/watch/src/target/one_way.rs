//! The one-way delay of one direction, against `plumb serve`, a STAMP reflector or an irtt server.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_measure::conductor::Conductor;
use plumb_measure::error::MeasureError;
use plumb_measure::owd::{Clocks, OneWay};
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_probe::Plan;
use plumb_wire::native::spec::PORT;
use plumb_wire::{irtt, stamp};

use super::kind::{FarEnd, Kind, Probed, TIMEOUT};
use super::settings::{Settings, Wrong};

/// Probes of one measurement: the smallest of their round trips bounds what the comparison of the clocks may be off by.
const PROBES: u32 = 10;

/// The time between two of them.
const APART: Duration = Duration::from_millis(20);

/// Ten probes a minute are not more than one in 10 s by much; strangers get fewer.
const EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct OneWayDelay {
    direction: OneDirection,
    protocol: Protocol,
    port: u16,
    same_clock: bool,
    /// DSCP of the packets (RFC 2474).
    dscp: Option<u8>,
}

/// DSCP has six bits.
const MOST_DSCP: u8 = 63;

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let direction: String = settings.need("direction", "direction = \"up\", or \"down\"")?;
    let direction = direction
        .parse()
        .map_err(|_| settings.wrong("direction", "a direction is \"up\" or \"down\""))?;
    let word: Option<String> = settings.take("protocol")?;
    let (protocol, usual) = match word.as_deref() {
        None | Some("udp") => (Protocol::Udp, PORT),
        Some("stamp") => (Protocol::Stamp, stamp::PORT),
        Some("irtt") => (Protocol::Irtt, irtt::PORT),
        Some(other) => {
            let why =
                format!("'{other}' has no times of the far end; udp, stamp and irtt have them");
            return Err(settings.wrong("protocol", why));
        }
    };
    let dscp: Option<u8> = settings.take("dscp")?;
    if dscp.is_some_and(|dscp| dscp > MOST_DSCP) {
        return Err(settings.wrong("dscp", "dscp is a number from 0 to 63, such as 46 for EF"));
    }
    Ok(Box::new(OneWayDelay {
        dscp,
        direction,
        protocol,
        port: settings.port(usual)?,
        same_clock: settings.take("same_clock")?.unwrap_or_default(),
    }))
}

impl Kind for OneWayDelay {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let mut plan = Plan::new(self.protocol, far.host, far.at(self.port));
        plan.count = Some(PROBES.into());
        plan.interval = APART;
        plan.timeout = TIMEOUT;
        plan.dscp = self.dscp;
        let clocks = match self.same_clock {
            true => Clocks::Same,
            false => Clocks::Judge,
        };
        let probed = Probed::now();
        let stop = Arc::new(AtomicBool::new(false));
        let command = vec!["plumb".to_owned(), "watch".to_owned()];
        let conductor = Conductor::towards(command, far.host, far.address, &Nobody, &stop);
        let run = match conductor.only(&mut OneWay { plan, clocks }, Judgement::Part) {
            Ok(conducted) => conducted.run,
            Err(error @ MeasureError::Silence { .. }) => return Ok(probed.lost(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        let result = run
            .measurements
            .iter()
            .find_map(|measured| match &measured.outcome {
                Outcome::Owd(result) => Some(result),
                _ => None,
            });
        let direction = result.map(|result| match self.direction {
            OneDirection::Up => &result.up,
            OneDirection::Down => &result.down,
        });
        let delay = direction.and_then(|direction| direction.delay.as_ref());
        match delay {
            Some(delay) => Ok(probed.with(delay.delay_s.p50)),
            None => Err("the clocks of both ends cannot be compared".to_owned()),
        }
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn probes(&self) -> u32 {
        PROBES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::settings::tests::settings;

    #[test]
    fn a_direction_is_needed_and_a_protocol_with_times() {
        for (text, words) in [
            ("", "it lacks direction"),
            ("direction = \"both\"", "\"up\" or \"down\""),
            ("direction = \"up\"\ndscp = 64", "from 0 to 63"),
            (
                "direction = \"up\"\nprotocol = \"icmp\"",
                "has no times of the far end",
            ),
        ] {
            let (_, why) = read(&mut settings(text)).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        read(&mut settings("direction = \"down\"\nprotocol = \"stamp\"")).unwrap();
    }
}
