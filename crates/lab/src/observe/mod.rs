//! Observers of a link that carries packets: a log of what became of each, and captures at the ends. An observer never
//! holds up the link: what is not taken in time is counted instead.

mod capture;
mod in_order;
mod log;
mod scribe;
mod tap;

use std::io::{self, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::capture::Capture;
use self::log::Log;
pub(crate) use self::scribe::Scribe;
pub(crate) use self::tap::Tap;
use self::tap::{Observation, Wants};
use crate::error::LabError;
use crate::instance::Instance;
use crate::scenario::LinkEnd;
use plumb_model::direction::OneDirection;

/// What an observer is to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// What becomes of every packet in these directions, `LINK.up` or `LINK.down`; in all when
    /// there are none. A line of JSON each.
    Log(Vec<String>),
    /// The packets that pass an end of a link, as pcapng.
    Capture {
        link: String,
        /// The node at that end.
        node: String,
    },
}

/// An observer, which writes down what there is to see.
pub(crate) enum Observer {
    Log(Log),
    Capture(Capture),
}

impl Observer {
    /// Begins to look on, and to write.
    pub(crate) fn begin(
        instance: &Instance,
        sight: &Sight,
        out: &mut impl Write,
    ) -> Result<Self, LabError> {
        let observation = Observation::new();
        let scenario = instance.scenario();
        let started = instance.started_unix_ns();
        match sight {
            Sight::Log(ends) => {
                let ends: Vec<LinkEnd> = match ends.is_empty() {
                    true => instance.directions()?.cloned().collect(),
                    false => ends
                        .iter()
                        .map(|end| LinkEnd::try_from(end.clone()).map_err(LabError::Control))
                        .collect::<Result<_, _>>()?,
                };
                for end in ends {
                    instance.add_tap(&end, observation.tap(end.clone(), Wants::Outcomes))?;
                }
                let log = Log(observation);
                log.begin(out, &scenario.name, scenario.seed, started)?;
                Ok(Self::Log(log))
            }
            Sight::Capture { link, node } => {
                let name = format!("{link} at {node}");
                if let Some(cable) = instance.cable(link, node)? {
                    let capture = Capture::of_kernel(cable);
                    capture.begin(out, &scenario.name, &name)?;
                    return Ok(Self::Capture(capture));
                }
                let [first, second] = instance.ends(link)?;
                let [up, down] = if node == first {
                    [Wants::AtSender, Wants::AtReceiver]
                } else if node == second {
                    [Wants::AtReceiver, Wants::AtSender]
                } else {
                    return Err(LabError::no_end(link, node, &[first, second]));
                };
                for (way, wants) in [(OneDirection::Up, up), (OneDirection::Down, down)] {
                    let link = link.clone();
                    let end = LinkEnd { link, way };
                    instance.add_tap(&end, observation.tap(end.clone(), wants))?;
                }
                let capture = Capture::of_carried(observation, started);
                capture.begin(out, &scenario.name, &name)?;
                Ok(Self::Capture(capture))
            }
        }
    }

    /// Writes what there is to see within a time; `false` when that was nothing.
    pub(crate) fn write(&mut self, out: &mut impl Write, within: Duration) -> io::Result<bool> {
        match self {
            Self::Log(log) => log.write(out, within),
            Self::Capture(capture) => capture.write(out, within),
        }
    }
}
