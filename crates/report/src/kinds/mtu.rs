//! How large packets may be.

use plumb_model::context::Phase;
use plumb_model::results::mtu::MtuResult;
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::map::{Map, note};
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{Cell, Kind, Table, blank};

impl Show for MtuResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.detail(Place::Mtu, [paths(&all)]);
        tables.add(Place::Mtu, [hops(&all)]);
        tables.detail(Place::Mtu, [segments(&all)]);
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        results::<Self>(run).flat_map(sentences).collect()
    }

    fn bears(&self) -> Ends {
        Ends::default()
    }

    fn on_map(&self, map: &mut Map) {
        let bytes = self.path_mtu_bytes.map(|bytes| {
            let least = if self.path_mtu_at_least {
                "at least "
            } else {
                ""
            };
            format!("packets of {least}{bytes} B pass")
        });
        note(&mut map.whole, bytes);
        for hop in &self.hops {
            map.hop(hop.ttl).is(hop.address.as_deref(), None);
        }
        if let Some(after) = self.black_hole_after {
            let line = &mut map.hop(after.saturating_add(1)).line;
            note(line, "large packets vanish from here on".to_owned());
        }
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let bytes = self.path_mtu_bytes.map(f64::from);
        Quantities::of(phase, None)
            .number("path_mtu_bytes", ChangeUnit::Bytes, bytes)
            .found
    }
}

/// How large packets may be, and what becomes of larger ones.
fn sentences(mtu: &MtuResult) -> Vec<String> {
    let Some(bytes) = mtu.path_mtu_bytes else {
        return vec![format!(
            "The path MTU is unknown: {} did not answer.",
            mtu.address
        )];
    };
    let interface = mtu.interface_mtu_bytes.filter(|sent| *sent > bytes);
    let beyond = match (mtu.black_hole_after, interface) {
        (Some(_), _) => format!(
            "; larger ones vanish {} without a message (a black hole)",
            black_hole(mtu)
        ),
        (None, Some(sent)) if !mtu.is_bound(bytes) => format!("; the interface sends up to {sent}"),
        (None, _) => String::new(),
    };
    let at_least = if mtu.is_bound(bytes) { "at least " } else { "" };
    let first = format!(
        "Packets of up to {at_least}{bytes} bytes reach {}{beyond}.",
        mtu.address
    );
    let back = mtu
        .way_back_bytes
        .map(|bytes| format!("On the reverse path only packets of up to {bytes} bytes arrive."));
    [Some(first), back].into_iter().flatten().collect()
}

/// A size that gets through; where it is the largest that was tried of what may be sent, it is a bound.
fn passes(mtu: &MtuResult, value: Option<u32>) -> String {
    match value {
        Some(bytes) if mtu.is_bound(bytes) => format!("≥ {bytes}"),
        other => other.cell(),
    }
}

fn paths(all: &[&MtuResult]) -> Table {
    Table::of("Path MTU, bytes of a whole IP packet", all)
        .text("", |mtu| mtu.address.clone())
        .num("path takes", |mtu| passes(mtu, mtu.path_mtu_bytes))
        .num("interface", |mtu| mtu.interface_mtu_bytes)
        .num("tried", |mtu| mtu.largest_tried_bytes.to_string())
        .text("known by", |mtu| mtu.method.shown())
        .text("of", |mtu| mtu.direction.shown())
        .text("black hole", |mtu| black_hole(mtu))
        .noting(all.iter().map(|mtu| tcp(mtu)))
}

fn black_hole(mtu: &MtuResult) -> String {
    match mtu.black_hole_after {
        None => String::new(),
        Some(0) => "behind this host".to_owned(),
        Some(hop) => format!("behind hop {hop}"),
    }
}

/// What TCP here will do.
fn tcp(mtu: &MtuResult) -> String {
    let listens = mtu.tcp.no_pmtu_disc.is_none_or(|mode| mode == 0);
    let probes = match mtu.tcp.mtu_probing {
        Some(0) => "never probes for itself (tcp_mtu_probing 0)",
        Some(1) => "probes for itself once packets keep vanishing (tcp_mtu_probing 1)",
        Some(_) => "probes for itself always (tcp_mtu_probing 2)",
        None => "does not report whether it probes",
    };
    let known = mtu.tcp.known_mtu_bytes.map_or_else(String::new, |bytes| {
        format!("; before this measurement the kernel held {bytes} bytes for this path")
    });
    format!(
        "TCP of this host {} what routers report, and {probes}{known}.",
        if listens {
            "goes by"
        } else {
            "does not go by all of"
        }
    )
}

fn hops(all: &[&MtuResult]) -> Table {
    let hops = all
        .iter()
        .flat_map(|mtu| mtu.hops.iter().map(move |hop| (mtu, hop)));
    Table::of("Path MTU hop by hop, bytes", hops)
        .num("hop", |(_, hop)| hop.ttl)
        .text("", |(_, hop)| hop.address.as_deref().unwrap_or("*"))
        .num("arrives", |(mtu, hop)| passes(mtu, hop.mtu_bytes))
        .num("reported of the next line", |(_, hop)| {
            blank(hop.told_mtu_bytes)
        })
        .done()
}

/// TCP's maximum segment size.
fn segments(all: &[&MtuResult]) -> Table {
    let mut table = Table::new(
        "TCP's maximum segment size, bytes",
        &[
            ("", Kind::Text),
            ("announced", Kind::Number),
            ("", Kind::Text),
        ],
    );
    for mss in all.iter().filter_map(|mtu| mtu.mss.as_ref()) {
        table.row([
            format!("our SYN to port {}", mss.port),
            mss.sent_bytes.to_string(),
            String::new(),
        ]);
        let mut before = mss.sent_bytes;
        for hop in mss
            .hops
            .iter()
            .filter(|hop| hop.mss_bytes != mss.sent_bytes)
        {
            // Only where it changes.
            if hop.mss_bytes != before {
                table.row([
                    format!("the SYN at hop {}, {}", hop.ttl, hop.address),
                    hop.mss_bytes.to_string(),
                    "changed on the path".to_owned(),
                ]);
                before = hop.mss_bytes;
            }
        }
        table.row([
            "the answer".to_owned(),
            mss.answered_bytes.cell(),
            match mss.answer_below_path {
                Some(true) => "less than the path takes",
                Some(false) | None => "",
            }
            .to_owned(),
        ]);
    }
    table
}
