//! What was found in both captures, as a result.

use plumb_model::direction::OneDirection;
use plumb_model::results::capture::sides::{CaptureSideFile, CaptureSidesResult, CaptureWay};

use super::changes::Changes;
use super::clocks;
use super::delays::Delays;
use super::feed::Feed;
use super::pairs::{FlowId, Pairs};

/// All of both captures, of the client's side first.
pub(super) struct Found {
    pub(super) feeds: [Feed; 2],
    pub(super) pairs: [Pairs; 2],
    pub(super) delays: Delays,
    pub(super) changes: Changes,
    pub(super) forgotten: [u64; 2],
}

impl Found {
    pub(super) fn result(self) -> CaptureSidesResult {
        let [first, second] = &self.pairs;
        let compared = clocks::compare(&self.delays, &|flow| first.voted(flow));
        let known = compared.ok();
        let offset = |ns: u64| {
            let ns = i64::try_from(ns).ok()?;
            known.map(|compared| compared.offset_at(ns))
        };
        let direction = |flow: FlowId| first.direction(flow, &offset);
        let (mut up, mut down) = (CaptureWay::default(), CaptureWay::default());
        let mut sides: Vec<CaptureSideFile> = Vec::new();
        for (side, pairs) in [first, second].into_iter().enumerate() {
            let mut file = CaptureSideFile::default();
            for (id, pair, flow) in pairs.flows() {
                let unmatched = flow.missing + flow.copies + flow.alike;
                if !pair.is_matched() {
                    file.elsewhere_packets += unmatched + flow.outside;
                    continue;
                }
                file.outside_packets += flow.outside;
                let (way, sends) = match pairs.direction(id, &offset) {
                    OneDirection::Up => (&mut up, side == 0),
                    OneDirection::Down => (&mut down, side == 1),
                };
                if sends {
                    way.both += flow.both;
                    way.lost += flow.missing;
                    file.twice_packets += flow.copies;
                    match flow.is_captured_twice() {
                        true => file.twice_packets += flow.alike,
                        false => way.lost += flow.alike,
                    }
                } else {
                    way.far_only += flow.missing;
                    way.duplicated += flow.copies + flow.alike;
                    way.reordered += flow.late;
                }
            }
            sides.push(file);
        }
        for (way, of) in [(&mut up, OneDirection::Up), (&mut down, OneDirection::Down)] {
            let sent = way.both + way.lost;
            way.loss_ratio = (sent > 0).then(|| way.lost as f64 / sent as f64);
            let is_of = |flow: FlowId| direction(flow) == of;
            let up = of == OneDirection::Up;
            clocks::fill(way, &self.delays, known.as_ref(), &is_of, up);
        }
        let changes = self.changes.finish(&direction);
        for ((file, feed), forgotten) in sides.iter_mut().zip(self.feeds).zip(self.forgotten) {
            file.not_ip_packets = feed.not_ip;
            file.joined_segments = feed.joined;
            file.unwritten_checksums = feed.unwritten;
            file.forgotten_packets = forgotten;
            file.file = feed.told;
        }
        let one_way = (up.both == 0) != (down.both == 0);
        CaptureSidesResult {
            sides,
            up,
            down,
            clocks: clocks::told(compared, one_way),
            changes,
        }
    }
}
