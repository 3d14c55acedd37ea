//! What the gateway reports of its line.

use plumb_model::results::gateway::GatewayResult;
use plumb_model::run::Run;

use crate::map::{Map, note};
use crate::number;
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for GatewayResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        tables.add(Place::Gateway, [table(results(run))]);
    }

    fn bears(&self) -> Ends {
        Ends::default()
    }

    fn on_map(&self, map: &mut Map) {
        map.hop(1).is(Some(&self.address), self.model.as_deref());
        let most = |what: &str, bps: Option<f64>| {
            bps.map(|bps| format!("the gateway reports at most {} {what}", number::rate(bps)))
        };
        note(&mut map.lines, most("down", self.down_bps));
        note(&mut map.lines, most("up", self.up_bps));
        note(&mut map.lines, self.access.clone());
    }

    /// It is asked beside what else is measured.
    fn fills_its_phase(&self) -> bool {
        false
    }
}

fn table<'a>(all: impl Iterator<Item = &'a GatewayResult>) -> Table {
    Table::of("Gateway, as it reports itself", all)
        .text("", |gateway| gateway.address.clone())
        .text("model", |gateway| blank(gateway.model.as_ref()))
        .text("line", |gateway| {
            let kind = gateway.access.as_deref().unwrap_or_default();
            let state = match gateway.connected {
                Some(false) => "not connected",
                _ => "",
            };
            [kind, state].join(" ").trim().to_owned()
        })
        .num("down at most", |gateway| {
            blank(gateway.down_bps.map(number::rate))
        })
        .num("up at most", |gateway| {
            blank(gateway.up_bps.map(number::rate))
        })
        .text("its address on the line", |gateway| {
            blank(gateway.external_address.as_ref())
        })
        .num("counters read", |gateway| gateway.readings)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reported_is_left_out() {
        let gateway = GatewayResult {
            address: "192.168.1.1".to_owned(),
            down_bps: Some(5e7),
            ..GatewayResult::default()
        };
        let table = table([&gateway].into_iter()).without_empty_columns();
        let row = table.rows.first().map(|row| row.cells.join(" | "));
        assert_eq!(row.as_deref(), Some("192.168.1.1 | 50.0 Mbit/s | 0"));
    }
}
