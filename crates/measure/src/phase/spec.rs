//! What a load phase is to be: which streams, which applications beside them, for how long.

use std::time::Duration;

use plumb_load::file::StreamFile;
use plumb_model::context::{Context, Experiment, Load, LoadFlow, Phase};
use plumb_model::direction::OneDirection;
use plumb_model::json;
use plumb_model::protocol::Protocol;
use plumb_model::results::path::EcnField;
use plumb_model::results::{Direction, TransactionsResult};
use plumb_wire::native::control::flow::{Flow, Flows};
use serde_json::{Map, Value};

use crate::profiles;
use crate::profiles::catalogue::{Profile, Stream};
use crate::responsiveness::{self, controller::Controller};
use crate::traffic_classes::Shape;

/// A number of equal streams each way.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub streams: u32,
    /// What each of them is.
    pub flow: Flow,
}

/// What a load phase is to be.
#[derive(Debug, Clone)]
pub struct PhaseSpec {
    /// Which way the load goes.
    pub direction: Direction,
    /// Streams each way; none where the applications beside it are alone.
    pub groups: Vec<Group>,
    /// Which classes they belong to.
    pub shape: Shape,
    /// Which experiment it is; none where the plan asks for it anyway.
    pub experiment: Option<Experiment>,
    /// Applications whose traffic goes beside it, both ways.
    pub applications: Vec<&'static Profile>,
    pub duration: Duration,
    /// Payload after which it ends early.
    pub byte_limit: Option<u64>,
    /// The user asked for that much; otherwise it is a limit.
    pub bytes_are_the_goal: bool,
    /// Whether it ends when its rate has become steady.
    pub until_steady: bool,
    /// What an upload sends; bytes from memory when absent.
    pub from: Option<StreamFile>,
    /// Where a download goes to; nowhere when absent.
    pub to: Option<StreamFile>,
}

impl PhaseSpec {
    /// How many streams there are each way.
    pub(super) fn streams(&self) -> u32 {
        self.groups.iter().map(|group| group.streams).sum()
    }

    /// Whether there is more than applications alone.
    pub fn has_load(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Which phase of a plan it is.
    pub fn phase(&self) -> Phase {
        match self.has_load() {
            true => self.direction.into(),
            false => Phase::Idle,
        }
    }

    /// The word for it in Runs.
    pub fn name(&self) -> String {
        match self.experiment {
            Some(experiment) => format!("{}, {experiment}", self.phase()),
            None => self.phase().to_string(),
        }
    }

    /// What a responder is asked for: the load, then the applications, and last what the shape
    /// takes beside.
    pub(super) fn flows(&self) -> Vec<Flows> {
        let load = [OneDirection::Down, OneDirection::Up]
            .into_iter()
            .filter(|role| self.direction.includes(*role))
            .flat_map(|role| self.groups.iter().map(move |group| (role, group)))
            .flat_map(|(role, group)| self.shape.flows(role, group.streams, &group.flow));
        let applications = profiles::streams(&self.applications);
        let beside = self.shape.beside().filter(|_| !self.groups.is_empty());
        load.chain(applications.map(|(_, stream)| profiles::flows(stream)))
            .chain(beside)
            .collect()
    }

    /// The application that a stream belongs to; none where it is of the load.
    pub(super) fn application(
        &self,
        direction: Direction,
        number: u32,
    ) -> Option<(&'static Profile, &'static Stream)> {
        let role = match direction {
            Direction::Up => OneDirection::Up,
            Direction::Down | Direction::Both => OneDirection::Down,
        };
        let loaded = self.direction.includes(role);
        let of_load = if loaded { self.streams() } else { 0 };
        let place = number.checked_sub(of_load)?;
        profiles::streams(&self.applications)
            .filter(|(_, stream)| profiles::flows(stream).role == role)
            .nth(place as usize)
    }

    /// The application whose questions and answers these are.
    pub(super) fn asking_application(
        &self,
        result: &TransactionsResult,
    ) -> Option<&'static Profile> {
        profiles::streams(&self.applications)
            .find(|(_, stream)| {
                let flow = profiles::flows(stream).flow;
                flow.transactions().is_some_and(|flow| {
                    u64::from(flow.response_bytes) == result.response_bytes
                        && flow.rate_tps == result.offered_tps
                })
            })
            .map(|(profile, _)| profile)
    }

    /// Who conducts it, where it is to show responsiveness.
    pub(super) fn controller(&self) -> Option<Controller> {
        match self.shape {
            Shape::Responsiveness { interval } if !self.groups.is_empty() => {
                Some(responsiveness::controller(self.direction, interval))
            }
            _ => None,
        }
    }

    /// Whether the kernels choose how much they buffer.
    pub(super) fn kernels_choose_buffers(&self) -> bool {
        let pinned = |flow: &Flow| matches!(flow, Flow::Tcp(tcp) if tcp.window_bytes.is_some());
        !self.groups.iter().any(|group| pinned(&group.flow))
    }

    /// When and beside what the phase is measured.
    pub(super) fn context(&self) -> Context {
        let applications = self.applications.iter();
        Context {
            phase: Some(self.phase()),
            load: self.has_load().then(|| self.load()),
            experiment: self.experiment,
            applications: applications
                .map(|profile| profile.name.to_owned())
                .collect(),
            ..Context::default()
        }
    }

    fn load(&self) -> Load {
        let streams = self.streams();
        let classes = self.shape.classes(streams);
        let name = |file: &Option<StreamFile>| file.as_ref().map(|file| file.name.clone());
        Load {
            streams,
            shape: self.shape.name(),
            stream_classes: match classes.len() {
                0 | 1 => Vec::new(),
                _ => classes
                    .iter()
                    .flat_map(|(class, count)| (0..*count).map(|_| class.name.to_owned()))
                    .collect(),
            },
            duration_s: self.duration.as_secs_f64(),
            byte_limit_bytes: self.byte_limit,
            from: name(&self.from),
            to: name(&self.to),
            flows: self
                .groups
                .iter()
                .map(|group| asked(group.streams, &group.flow))
                .collect(),
        }
    }
}

/// A group of equal streams, as the Run has it.
pub(crate) fn asked(streams: u32, flow: &Flow) -> LoadFlow {
    let mut asked = LoadFlow {
        streams,
        protocol: match flow {
            Flow::Tcp(_) => Protocol::Tcp,
            Flow::Udp(_) => Protocol::Udp,
            Flow::Quic(_) => Protocol::Quic,
            Flow::Transactions(_) => Protocol::Transactions,
        },
        cc: None,
        dscp: None,
        ecn: None,
        window_bytes: None,
        mss_bytes: None,
        pacing_bps: None,
        background: false,
        far_disk: false,
        tls: flow.is_tls(),
        options: options(flow),
    };
    match flow {
        Flow::Tcp(tcp) => {
            asked.cc = Some(tcp.congestion_control().to_owned());
            asked.dscp = tcp.dscp;
            asked.window_bytes = tcp.window_bytes;
            asked.mss_bytes = tcp.mss_bytes;
            asked.pacing_bps = tcp.pacing_bps;
            asked.background = tcp.background;
            asked.far_disk = tcp.far_disk;
        }
        Flow::Quic(quic) => {
            asked.cc = Some(quic.congestion_control().to_owned());
            asked.dscp = quic.dscp;
        }
        Flow::Udp(udp) => {
            asked.dscp = udp.dscp;
            asked.ecn = udp.ecn.map(|ecn| EcnField::of_bits(ecn.bits()));
        }
        Flow::Transactions(_) => {}
    }
    asked
}

/// What else was asked for, by its name in the protocol.
fn options(flow: &Flow) -> Map<String, Value> {
    /// What [`LoadFlow`] has fields for.
    const TYPED: [&str; 10] = [
        "protocol",
        "cc",
        "dscp",
        "ecn",
        "window_bytes",
        "mss_bytes",
        "pacing_bps",
        "background",
        "far_disk",
        "tls",
    ];
    let Ok(Value::Object(mut options)) = json::to_value(flow) else {
        return Map::new();
    };
    options.retain(|name, _| !TYPED.contains(&name.as_str()));
    // A trace is as long as it likes, and stands in the file that it came from.
    if let Some(packets) = options
        .get_mut("pattern")
        .and_then(|pattern| pattern.get_mut("packets"))
    {
        *packets = packets.as_array().map_or(0, Vec::len).into();
    }
    options
}
