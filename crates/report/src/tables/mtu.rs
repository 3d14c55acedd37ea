//! How large packets may be.

use plumb_model::results::mtu::{MtuDirection, MtuMethod, MtuResult};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::ABSENT;
use crate::view;

fn bytes(value: Option<u32>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |bytes| bytes.to_string())
}

/// A size that gets through; where it is the largest that was tried of what may be sent, it is a bound.
fn passes(mtu: &MtuResult, value: Option<u32>) -> String {
    match value {
        Some(bytes) if mtu.is_bound(bytes) => format!("≥ {bytes}"),
        other => bytes(other),
    }
}

/// The whole path.
pub(super) fn paths(run: &Run) -> Table {
    let mut table = Table::new(
        "Path MTU, bytes of a whole IP packet",
        &[
            ("", Text),
            ("path takes", Number),
            ("interface", Number),
            ("tried", Number),
            ("known by", Text),
            ("of", Text),
            ("black hole", Text),
        ],
    );
    let mut notes = Vec::new();
    for (_, mtu) in view::mtus(run) {
        table.row([
            mtu.address.clone(),
            passes(mtu, mtu.path_mtu_bytes),
            bytes(mtu.interface_mtu_bytes),
            mtu.largest_tried_bytes.to_string(),
            known_by(mtu.method).to_owned(),
            match mtu.direction {
                MtuDirection::Forward => "the way there",
                MtuDirection::RoundTrip => "both ways",
            }
            .to_owned(),
            black_hole(mtu),
        ]);
        notes.push(tcp(mtu));
    }
    table.note = (!notes.is_empty()).then(|| notes.join(" "));
    table
}

fn known_by(method: MtuMethod) -> &'static str {
    match method {
        MtuMethod::Unlimited => "the largest passed",
        MtuMethod::Told => "routers",
        MtuMethod::Probed => "silence",
        MtuMethod::Mixed => "routers and silence",
    }
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
        None => "says nothing of its probing",
    };
    let known = mtu.tcp.known_mtu_bytes.map_or_else(String::new, |bytes| {
        format!("; before this measurement the kernel held {bytes} bytes for this path")
    });
    format!(
        "TCP of this host {} what routers tell, and {probes}{known}.",
        if listens {
            "goes by"
        } else {
            "does not go by all of"
        }
    )
}

/// Every hop.
pub(super) fn hops(run: &Run) -> Table {
    let mut table = Table::new(
        "Path MTU hop by hop, bytes",
        &[
            ("hop", Number),
            ("", Text),
            ("gets there", Number),
            ("told of the next line", Number),
        ],
    );
    for (_, mtu) in view::mtus(run) {
        for hop in &mtu.hops {
            table.row([
                hop.ttl.to_string(),
                hop.address.clone().unwrap_or_else(|| "*".to_owned()),
                passes(mtu, hop.mtu_bytes),
                hop.told_mtu_bytes
                    .map_or_else(String::new, |told| told.to_string()),
            ]);
        }
    }
    table
}

/// TCP's maximum segment size.
pub(super) fn segments(run: &Run) -> Table {
    let mut table = Table::new(
        "TCP's maximum segment size, bytes",
        &[("", Text), ("announced", Number), ("", Text)],
    );
    for mss in view::mtus(run).filter_map(|(_, mtu)| mtu.mss.as_ref()) {
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
                    "changed on the way".to_owned(),
                ]);
                before = hop.mss_bytes;
            }
        }
        table.row([
            "the answer".to_owned(),
            bytes(mss.answered_bytes),
            match mss.answer_below_path {
                Some(true) => "less than the path takes",
                Some(false) | None => "",
            }
            .to_owned(),
        ]);
    }
    table
}
