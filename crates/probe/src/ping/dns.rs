//! Probes that are questions to a DNS server, over one UDP socket whose packets the kernel stamps.

use std::io;

use plumb_wire::dns::{Query, RecordKind};

use crate::ping::channel::Channel;
use crate::ping::plan::{Plan, ProbeError};
use crate::ping::sample::{Answer, Said};
use crate::ping::socket::random_u32;
use crate::ping::strategy::{Event, Network};

/// The network of questions to one server.
pub(crate) struct DnsQuestions {
    channel: Channel,
    query: Query,
    session: u32,
    /// Number of the latest probe.
    latest: u32,
}

impl DnsQuestions {
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let query = question(plan.ask.as_deref())?;
        Ok(Self {
            channel: Channel::udp(plan)?,
            query,
            session: random_u32(&plan.far_end())?,
            latest: 0,
        })
    }
}

/// Asks for a name, by default for the servers of the root, which every server knows.
pub(crate) fn question(ask: Option<&str>) -> Result<Query, ProbeError> {
    let (name, kind) = match ask {
        Some(name) => (name, RecordKind::A),
        None => (".", RecordKind::Ns),
    };
    Query::new(name, kind).map_err(ProbeError::Name)
}

/// The id of a question: the lower half of its number, counted from anywhere.
pub(crate) fn id(number: u64, session: u32) -> u16 {
    (number as u16).wrapping_add(session as u16)
}

/// The lower half of the number of the question of that id.
pub(crate) fn lower_half(id: u16, session: u32) -> u16 {
    id.wrapping_sub(session as u16)
}

/// The number of which `lower` is the lower half, and that is not above `latest`.
fn number(lower: u16, latest: u32) -> Option<u32> {
    latest.checked_sub((latest as u16).wrapping_sub(lower).into())
}

impl Network for DnsQuestions {
    fn id(&self) -> u32 {
        self.session
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        self.latest = sequence;
        let id = id(sequence.into(), self.session);
        self.channel.send(Some(sequence), &self.query.write(id))
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let Self {
            channel,
            query,
            session,
            latest,
        } = self;
        channel.receive_datagram(until_ns, |packet, at| {
            let answer = query.answer(packet)?;
            let lower = lower_half(answer.id, *session);
            Some(Answer {
                said: Some(Said::Dns(answer.code)),
                ..Answer::at(at, number(lower, *latest)?)
            })
        })
    }
}
