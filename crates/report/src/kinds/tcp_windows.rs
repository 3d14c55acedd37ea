//! The bandwidth-delay product against what both ends' buffers allow one connection.

use plumb_model::context::Phase;
use plumb_model::formula::WINDOW_OF_A_BUFFER;
use plumb_model::results::TcpResult;
use plumb_model::run::Run;
use plumb_model::units::{human_seconds, si};

use crate::phase::flow;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::Table;

impl Show for TcpResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let bytes = |value| si(value, "B");
        let table = Table::of(
            "One TCP connection: bytes that fill the path, and the windows of both ends",
            results::<Self>(run),
        )
        .text("", |r| flow(r.direction))
        .num("min RTT", |r| human_seconds(r.rtt_s))
        .num("fills the path", |r| bytes(r.bdp_bytes))
        .num("sender allows", |r| r.send_window_bytes.map(bytes))
        .num("receiver allows", |r| r.receive_window_bytes.map(bytes))
        .num("about at most", |r| {
            r.one_flow_bps.map(|rate| si(rate, "bit/s"))
        });
        let note = format!(
            "The measured rate times the smallest round trip fills the path; {WINDOW_OF_A_BUFFER}."
        );
        tables.detail(Place::TcpWindows, [table.noted(note)]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }
}
