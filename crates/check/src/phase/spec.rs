//! What a load phase is to be: which streams, which applications beside them, for how long.

use std::time::Duration;

use plumb_load::file::StreamFile;
use plumb_model::results::{Direction, TransactionsResult};
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::control::frame::Role;
use serde_json::{Map, Value};

use crate::profiles;
use crate::profiles::catalogue::{Profile, Stream};
use crate::responsiveness::{self, controller::Controller};
use crate::shape::Shape;

/// A number of equal streams each way.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// How many.
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
    /// Applications whose traffic goes beside it, both ways.
    pub applications: Vec<&'static Profile>,
    /// How long.
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

    /// The word for it in Runs.
    pub fn name(&self) -> &'static str {
        if self.groups.is_empty() {
            "idle"
        } else {
            self.direction.name()
        }
    }

    /// What a responder is asked for: the load, then the applications, and last what the shape
    /// takes beside.
    pub(super) fn flows(&self) -> Vec<Flows> {
        let loaded = |way: Direction| self.direction == way || self.direction == Direction::Both;
        let ways = [(Role::Down, Direction::Down), (Role::Up, Direction::Up)];
        let load = ways
            .into_iter()
            .filter(|(_, way)| loaded(*way))
            .flat_map(|(role, _)| self.groups.iter().map(move |group| (role, group)))
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
        let loaded = self.direction == direction || self.direction == Direction::Both;
        let of_load = if loaded { self.streams() } else { 0 };
        let place = number.checked_sub(of_load)?;
        let role = match direction {
            Direction::Up => Role::Up,
            Direction::Down | Direction::Both => Role::Down,
        };
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
            .find(|(_, stream)| match profiles::flows(stream).flow {
                Flow::Transactions(flow) => {
                    u64::from(flow.response_bytes) == result.response_bytes
                        && flow.rate_tps == result.offered_tps
                }
                Flow::Tcp(_) | Flow::Udp(_) | Flow::Quic(_) => false,
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

    /// Whether the ends' buffers are what their kernels make them.
    pub(super) fn kernels_choose_buffers(&self) -> bool {
        let pinned = |flow: &Flow| matches!(flow, Flow::Tcp(tcp) if tcp.window_bytes.is_some());
        !self.groups.iter().any(|group| pinned(&group.flow))
    }

    /// What was asked for, for the Run.
    pub(super) fn params(&self) -> Map<String, Value> {
        let mut params = Map::new();
        params.insert("phase".to_owned(), self.name().into());
        let streams = self.streams();
        params.insert("streams".to_owned(), streams.into());
        params.insert("shape".to_owned(), self.shape.name().into());
        let classes = self.shape.classes(streams);
        if classes.len() > 1 {
            let of_streams = classes
                .iter()
                .flat_map(|(class, count)| (0..*count).map(|_| class.name));
            params.insert("stream_classes".to_owned(), of_streams.collect());
        }
        params.insert("duration_s".to_owned(), self.duration.as_secs_f64().into());
        match self.groups.as_slice() {
            [] => {}
            [alike] => params.extend(asked(&alike.flow)),
            groups => {
                let group = |group: &Group| {
                    let mut params = asked(&group.flow);
                    params.insert("streams".to_owned(), group.streams.into());
                    Value::Object(params)
                };
                params.insert("flows".to_owned(), groups.iter().map(group).collect());
            }
        }
        if !self.applications.is_empty() {
            let names = self.applications.iter().map(|profile| profile.name);
            params.insert("applications".to_owned(), names.collect());
        }
        for (name, file) in [("from", &self.from), ("to", &self.to)] {
            if let Some(file) = file {
                params.insert(name.to_owned(), file.name.clone().into());
            }
        }
        // A trace is as long as it likes, and stands in the file that it came from.
        if let Some(packets) = params
            .get_mut("pattern")
            .and_then(|pattern| pattern.get_mut("packets"))
        {
            *packets = packets.as_array().map_or(0, Vec::len).into();
        }
        if let Some(limit) = self.byte_limit {
            params.insert("byte_limit_bytes".to_owned(), limit.into());
        }
        params
    }
}

/// The options that were asked for, by their names in the protocol.
fn asked(flow: &Flow) -> Map<String, Value> {
    let mut params = Map::new();
    if let Flow::Tcp(tcp) = flow {
        params.insert("cc".to_owned(), tcp.congestion_control().into());
    }
    if let Ok(Value::Object(asked)) = serde_json::to_value(flow) {
        params.extend(asked);
    }
    params
}
