//! Shapes of load: which flows there are each way, and in which classes of traffic.

use std::time::Duration;

use plumb_model::context::LoadShape;
use plumb_model::direction::OneDirection;
use plumb_model::dscp::{BACKGROUND, BEST_EFFORT, Class, RRUL};
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};

use crate::responsiveness;

/// What flows each way in a phase of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    #[default]
    BestEffort,
    /// The four classes of the RRUL test in turn (flent's `rrul.conf`: CS1, CS0, CS5, EF).
    Rrul,
    /// One flow of best effort against all others as background (flent's `rrul_torrent.conf`,
    /// which has six of them and, where the kernel has it, LEDBAT).
    Torrent,
    /// Connections that grow by one at each interval and are probed once the path is full
    /// ([`responsiveness`]).
    Responsiveness {
        /// Time from one to the next.
        interval: Duration,
    },
}

impl Shape {
    /// The word used in Runs.
    pub fn name(self) -> LoadShape {
        match self {
            Self::BestEffort => LoadShape::BestEffort,
            Self::Rrul => LoadShape::Rrul,
            Self::Torrent => LoadShape::Torrent,
            Self::Responsiveness { .. } => LoadShape::Responsiveness,
        }
    }

    /// The default number of flows each way, as flent's tests of that name have.
    pub fn streams(self) -> u32 {
        match self {
            Self::BestEffort | Self::Rrul => 4,
            Self::Torrent => 7,
            Self::Responsiveness { .. } => responsiveness::CONNECTIONS,
        }
    }

    /// The classes that have at least one of so many flows, each with its share of them.
    pub fn classes(self, streams: u32) -> Vec<(Class, u32)> {
        let shares = match self {
            Self::BestEffort | Self::Responsiveness { .. } => vec![(BEST_EFFORT, streams)],
            Self::Rrul => RRUL
                .into_iter()
                .zip(0..)
                .map(|(class, n)| (class, streams / 4 + u32::from(n < streams % 4)))
                .collect(),
            Self::Torrent => vec![
                (BACKGROUND, streams.saturating_sub(1)),
                (BEST_EFFORT, streams.min(1)),
            ],
        };
        shares.into_iter().filter(|(_, share)| *share > 0).collect()
    }

    /// What else it takes, in whichever direction its load goes.
    pub fn beside(self) -> Option<Flows> {
        matches!(self, Self::Responsiveness { .. }).then(responsiveness::foreign)
    }

    /// The classes that are probed beside best effort, which always is.
    pub fn other_classes(self, streams: u32) -> Vec<Class> {
        let classes = self.classes(streams).into_iter().map(|(class, _)| class);
        classes.filter(|class| *class != BEST_EFFORT).collect()
    }

    /// So many flows of one direction. A shape of several classes has its own DSCPs in place of the DSCP of `flow`.
    pub fn flows(self, role: OneDirection, streams: u32, flow: &Flow) -> Vec<Flows> {
        if let (Self::Responsiveness { interval }, Flow::Tcp(tcp)) = (self, flow) {
            return responsiveness::flows(role, streams, tcp, interval);
        }
        let of = |(class, count): (Class, u32)| {
            let flow = match (self, flow) {
                (Self::Rrul | Self::Torrent, Flow::Tcp(tcp)) => Flow::Tcp(TcpFlow {
                    dscp: Some(class.dscp),
                    ..tcp.clone()
                }),
                (_, flow) => flow.clone(),
            };
            Flows { count, role, flow }
        };
        self.classes(streams).into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(shape: Shape, streams: u32) -> Vec<(&'static str, u32)> {
        let classes = shape.classes(streams).into_iter();
        classes.map(|(class, share)| (class.name, share)).collect()
    }

    #[test]
    fn flows_are_dealt_to_the_classes_in_turn() {
        let one_each = [("BK", 1), ("BE", 1), ("CS5", 1), ("EF", 1)];
        assert_eq!(shares(Shape::Rrul, 4), one_each);
        let six = [("BK", 2), ("BE", 2), ("CS5", 1), ("EF", 1)];
        assert_eq!(shares(Shape::Rrul, 6), six);
        assert_eq!(shares(Shape::Rrul, 2), [("BK", 1), ("BE", 1)]);
        assert_eq!(shares(Shape::Torrent, 7), [("BK", 6), ("BE", 1)]);
        assert_eq!(shares(Shape::Torrent, 1), [("BE", 1)]);
        assert_eq!(shares(Shape::BestEffort, 4), [("BE", 4)]);
    }

    #[test]
    fn best_effort_keeps_the_dscp_that_was_asked_for() {
        let marked = TcpFlow {
            dscp: Some(10),
            ..TcpFlow::default()
        };
        let dscps = |shape: Shape| -> Vec<Option<u8>> {
            let flows = shape.flows(OneDirection::Up, 4, &Flow::Tcp(marked.clone()));
            let of = |flows: &Flows| flows.flow.tcp()?.dscp;
            flows.iter().map(of).collect()
        };
        assert_eq!(dscps(Shape::Rrul), [Some(8), Some(0), Some(40), Some(46)]);
        assert_eq!(dscps(Shape::BestEffort), [Some(10)]);
    }
}
