//! Values over time for the graphs of a result: of the whole capture, and of the connections that carry most.

mod bins;
mod recorder;
mod traffic;

use plumb_model::results::capture::{CaptureGraphs, ConnectionGraph};

use crate::followed::Followed;
use recorder::Recorder;
use traffic::Traffic;

/// Connections that the result has graphs of.
const SHOWN: usize = 5;
/// Connections of which values are kept meanwhile, since which are the heaviest shows at the end: 18 MB at most. When there
/// are more, the lighter half goes; one of these that becomes heavy later has a graph from then on.
const MOST_RECORDED: usize = 256;
/// From this slot on none is used: each recorded connection has a place among them.
const NO_SLOT: u16 = u16::MAX;

/// What is to be drawn.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    traffic: Traffic,
    recorders: Vec<Recorder>,
}

impl Graphs {
    /// Takes in a packet of any kind.
    #[inline]
    pub(crate) fn packet(&mut self, unix_ns: u64, wire_bytes: u32) {
        self.traffic.add(unix_ns, wire_bytes);
    }

    /// Takes in a segment that was followed.
    #[inline]
    pub(crate) fn segment(&mut self, followed: &Followed<'_>) {
        let known = |recorder: &Recorder| recorder.connection == followed.connection;
        let slot = usize::from(followed.slot.get());
        if !self.recorders.get(slot).is_some_and(known) {
            let found = self.recorders.iter().position(known);
            let slot = found.unwrap_or_else(|| self.begin(followed));
            followed.slot.set(u16::try_from(slot).unwrap_or(NO_SLOT));
        }
        if let Some(recorder) = self.recorders.get_mut(usize::from(followed.slot.get())) {
            recorder.add(followed);
        }
    }

    /// The slot of a connection that is not recorded yet.
    #[cold]
    fn begin(&mut self, followed: &Followed<'_>) -> usize {
        if self.recorders.len() >= MOST_RECORDED {
            self.recorders
                .sort_by_key(|recorder| std::cmp::Reverse(recorder.weight()));
            self.recorders.truncate(MOST_RECORDED / 2);
        }
        self.recorders
            .push(Recorder::new(followed.connection, followed.steady_ns));
        self.recorders.len() - 1
    }

    /// All of it. `heaviest` are the numbers of the connections of the result, in their order; times count from `began_ns`.
    pub(crate) fn finish(self, heaviest: &[u32], began_ns: u64) -> CaptureGraphs {
        let recorded = heaviest.iter().enumerate().filter_map(|(place, number)| {
            let mut recorders = self.recorders.iter();
            let recorder = recorders.find(|recorder| recorder.connection == *number)?;
            let graph = ConnectionGraph {
                connection: place as u64,
                ..recorder.graph(began_ns)
            };
            (graph.up.is_some() || graph.down.is_some()).then_some(graph)
        });
        CaptureGraphs {
            connections: recorded.take(SHOWN).collect(),
            traffic: self.traffic.finish(),
        }
    }
}

#[cfg(test)]
#[path = "graphs/tests.rs"]
mod tests;
