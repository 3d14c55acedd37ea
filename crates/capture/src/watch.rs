//! Observers of connections while they are followed. Without one, nothing is worked out for them.

use crate::anonymise::Anonymiser;
use crate::followed::{Followed, Observer};
use crate::graphs::Graphs;
use crate::passing::Viewer;
use crate::read::Frame;

/// Keeps the packets that count, in the order in which they are taken in.
pub trait Keeper {
    /// Takes the next packet.
    fn packet(&mut self, frame: &Frame<'_>);

    /// Learns that there are no more, and how many the capture lost.
    fn end(&mut self, dropped: u64);

    /// Whether it can take no more, so that the capture need not be read on.
    fn has_failed(&self) -> bool;
}

/// Those who look on, if anybody does.
#[derive(Default)]
pub struct Watch<'a> {
    /// What is drawn for the result.
    pub(crate) graphs: Option<Box<Graphs>>,
    pub(crate) observer: Option<&'a mut dyn Observer>,
    pub(crate) viewer: Option<&'a mut dyn Viewer>,
    keeper: Option<&'a mut dyn Keeper>,
    /// Who replaces addresses before anybody sees them.
    pub(crate) anonymiser: Option<Box<Anonymiser>>,
    /// Place of the current packet in the capture, from 1.
    pub(crate) packet: u64,
}

impl<'a> Watch<'a> {
    /// Without an observer: nothing is worked out.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// The result is to have graphs.
    #[must_use]
    pub fn with_graphs(self) -> Self {
        Self {
            graphs: Some(Box::default()),
            ..self
        }
    }

    /// This one learns of each segment.
    #[must_use]
    pub fn with_observer(self, observer: &'a mut dyn Observer) -> Self {
        Self {
            observer: Some(observer),
            ..self
        }
    }

    /// This one is shown the flows while they pass.
    #[must_use]
    pub fn with_viewer(self, viewer: &'a mut dyn Viewer) -> Self {
        Self {
            viewer: Some(viewer),
            ..self
        }
    }

    /// This one keeps the packets.
    #[must_use]
    pub fn with_keeper(self, keeper: &'a mut dyn Keeper) -> Self {
        Self {
            keeper: Some(keeper),
            ..self
        }
    }

    /// All that is made of the packets is to have other addresses and no payload.
    #[must_use]
    pub fn anonymised(self, anonymiser: Anonymiser) -> Self {
        Self {
            anonymiser: Some(Box::new(anonymiser)),
            ..self
        }
    }

    /// Passes a packet that counts on to who keeps it.
    #[inline]
    pub(crate) fn keep(&mut self, frame: &Frame<'_>) {
        if let Some(keeper) = &mut self.keeper {
            keeper.packet(frame);
        }
    }

    /// Reports to the keeper of packets that there are no more.
    pub(crate) fn end(&mut self, dropped: u64) {
        if let Some(keeper) = &mut self.keeper {
            keeper.end(dropped);
        }
    }

    /// Whether anybody looks on at segments.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.graphs.is_some() || self.observer.is_some()
    }

    /// Passes a packet of any kind on to them.
    #[inline]
    pub(crate) fn packet(&mut self, unix_ns: u64, wire_bytes: u32) {
        self.packet += 1;
        if let Some(graphs) = &mut self.graphs {
            graphs.packet(unix_ns, wire_bytes);
        }
        if self.packet == 1
            && let Some(observer) = &mut self.observer
        {
            observer.begin(unix_ns);
        }
    }

    /// Passes a segment on to them.
    pub(crate) fn segment(&mut self, followed: &Followed<'_>) {
        if let Some(graphs) = &mut self.graphs {
            graphs.segment(followed);
        }
        if let Some(observer) = &mut self.observer {
            observer.segment(followed);
        }
    }

    /// Whether one can take no more.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        let keeper = self.keeper.as_ref();
        let observer = self.observer.as_ref();
        observer.is_some_and(|observer| observer.has_failed())
            || keeper.is_some_and(|keeper| keeper.has_failed())
    }
}
