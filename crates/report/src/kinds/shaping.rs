//! The rate of a shaper and the trade that it makes, and the framing of a line.

use std::iter;

use plumb_model::context::Phase;
use plumb_model::results::shaping::{FramingResult, ShapedRateResult};
use plumb_model::run::Run;

use crate::number;
use crate::phase::flow;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for ShapedRateResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        let table = Table::of("Rate of a shaper", &all)
            .text("", |r| flow(r.direction))
            .num("rate", |r| blank(r.rate_bps.map(number::rate)))
            .num("without it", |r| {
                blank(r.trade.map(|t| number::rate(t.off_bps)))
            })
            .num("latency +", |r| {
                blank(r.trade.map(|t| number::seconds(t.off_added_s)))
            })
            .num("with it", |r| {
                blank(r.trade.map(|t| number::rate(t.on_bps)))
            })
            .num("latency +", |r| {
                blank(r.trade.map(|t| number::seconds(t.on_added_s)))
            })
            .text("", |r| r.ended.shown());
        let note = "Rates with framing; latency is the 95th percentile above the idle path. Without and with took turns.";
        let processor = all.iter().filter_map(|r| {
            let most = number::rate(r.processor_bps?);
            Some(format!(
                "{}: this machine's processor is full at {most} with the shaper; a higher rate cannot be carried here.",
                flow(r.direction)
            ))
        });
        let notes = [note.to_owned()].into_iter().chain(processor);
        tables.add(Place::Shaping, [table.noting(notes)]);
        let blocks = all
            .iter()
            .flat_map(|result| result.blocks.iter().map(|block| (result.direction, block)));
        let measured = blocks
            .clone()
            .any(|(_, block)| block.busiest_processor_ratio.is_some());
        let emptied =
            "One load went on through all of them; between them the line's queue was emptied.";
        let busiest = measured.then_some("The processor column is this machine's busiest core.");
        let notes = iter::once(emptied).chain(busiest).map(str::to_owned);
        let blocks = Table::of("Blocks of the search", blocks)
            .text("", |(direction, _)| flow(*direction))
            .num("rate", |(_, b)| match b.rate_bps {
                Some(bps) => number::rate(bps),
                None => "off".to_owned(),
            })
            .num("carried", |(_, b)| number::rate(b.carried_bps))
            .num("latency +", |(_, b)| {
                blank(b.added_p95_s.map(number::seconds))
            })
            .num("processor", |(_, b)| {
                blank(b.busiest_processor_ratio.map(number::percent))
            })
            .noting(notes);
        tables.detail(Place::Shaping, [blocks]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }
}

impl Show for FramingResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        let table = Table::of("What the line adds to a packet", &all)
            .text("", |r| flow(r.direction))
            .text("framing", |r| blank(r.framing.clone()))
            .text("or", |r| blank(r.or.clone()))
            .num("rate", |r| blank(r.rate_bps.map(number::rate)))
            .num("packets/s", |r| {
                blank(r.packets_per_s.map(|pps| format!("{pps:.0}")))
            })
            .num("error", |r| blank(r.error_ratio.map(number::percent)));
        let note = "In the words of tc-cake(8), as --framing takes them. PTM is known by its overhead alone.";
        tables.add(Place::Shaping, [table.noted(note)]);
        let floods = all
            .iter()
            .flat_map(|result| result.floods.iter().map(|flood| (result.direction, flood)));
        let floods = Table::of("Floods", floods)
            .text("", |(direction, _)| flow(*direction))
            .num("bytes", |(_, f)| f.ip_bytes.to_string())
            .num("sent/s", |(_, f)| format!("{:.0}", f.sent_pps))
            .num("received/s", |(_, f)| format!("{:.0}", f.received_pps))
            .noted("Bytes are of the IP packet. A flood of which nearly all arrived did not fill the line, and is left out.");
        tables.detail(Place::Shaping, [floods]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }
}
