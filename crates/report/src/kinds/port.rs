//! TCP ports: whether they answered, what was said, how long silence was kept.

use plumb_model::context::Phase;
use plumb_model::results::port::{FirstWord, NOBODYS_ADDRESS, PortResult, PortState};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::number;
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{MAX, P50, P95, Table, blank};

/// Names of a certificate that are shown.
const MOST_NAMES: usize = 3;

impl Show for PortResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::Ports, [ports(&all), talk(&all), silence(&all)]);
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        let known = results::<Self>(run).filter_map(|port| Some((port, port.state?)));
        known.filter_map(sentence).collect()
    }

    fn bears(&self) -> Ends {
        Ends::default()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let (connect, first) = (self.connect_s, self.first_byte_s);
        Quantities::of(phase, label(self))
            .number("connect_s.p50", ChangeUnit::S, connect.map(|d| d.p50))
            .number("first_byte_s.p50", ChangeUnit::S, first.map(|d| d.p50))
            .found
    }

    /// It comes when the answers are in, beside what else is measured.
    fn fills_its_phase(&self) -> bool {
        false
    }
}

/// What became of a port.
fn sentence((port, state): (&PortResult, PortState)) -> Option<String> {
    let number = port.port;
    if port.address == NOBODYS_ADDRESS.to_string() {
        // Where no host has the address, it is right that nothing answers.
        return (port.connected > 0).then(|| {
            format!("Something on the path answers TCP port {number} in the place of other hosts.")
        });
    }
    let over = match port.address.contains(':') {
        true => " over IPv6",
        false => "",
    };
    Some(match (state, port.connect_s) {
        (PortState::Open, Some(times)) => format!(
            "Port {number} is open{over}, and connects in {} (median).",
            number::seconds(times.p50)
        ),
        (PortState::Refused, _) => {
            format!("Port {number} is closed{over}: the host refuses connections to it.")
        }
        (PortState::Filtered, _) => format!(
            "Port {number} is filtered{over}: nothing comes back, as behind a firewall or where no host is."
        ),
        (PortState::Unreachable, _) => format!(
            "Port {number} is unreachable{over}: a router, a firewall or this host reports that packets do not get there."
        ),
        (PortState::Open, None) => format!("Port {number} is open{over}."),
    })
}

/// The port; with the version of IP where it is IPv6, and with the address where it is no host's.
fn label(port: &PortResult) -> String {
    let number = port.port;
    match port.address.as_str() {
        address if address == NOBODYS_ADDRESS.to_string() => format!("port {number} of {address}"),
        address if address.contains(':') => format!("port {number}, IPv6"),
        _ => format!("port {number}"),
    }
}

/// Whether TCP ports answered.
fn ports(all: &[&PortResult]) -> Table {
    let nobodys = all
        .iter()
        .any(|port| port.address == NOBODYS_ADDRESS.to_string());
    let nobodys = nobodys.then(|| {
        format!(
            "{NOBODYS_ADDRESS} is no host's address (RFC 5737): an answer would come from a machine on the path."
        )
    });
    let notes = all.iter().flat_map(|port| port.hints.clone());
    let notes = notes.chain(nobodys);
    Table::of("TCP port", all)
        .text("", |port| label(port))
        .text("state", |port| blank(port.state.map(|state| state.name())))
        .num("tried", |port| port.tried)
        .num("connected", |port| port.connected)
        .figures(
            [P50, P95, MAX],
            |port| port.connect_s,
            |v| v.map(number::seconds),
        )
        .text("last error", |port| {
            // What the state says is no news.
            let said = matches!(port.state, Some(PortState::Refused | PortState::Filtered));
            blank(port.error.as_ref().filter(|_| !said))
        })
        .noting(notes)
}

/// What was said on the connections, part by part; medians.
fn talk(all: &[&PortResult]) -> Table {
    let connected = all
        .iter()
        .filter(|port| port.state.is_some() && port.connected > 0);
    let alias = all.iter().find_map(|port| port.canonical_name.as_ref());
    let time = |value: Option<f64>| blank(value.map(number::seconds));
    Table::of("Parts of a connection, medians", connected)
        .text("", |port| label(port))
        .num("name", |port| time(port.name_s))
        .num("connect", |port| time(port.connect_s.map(|d| d.p50)))
        .num("TLS", |port| {
            time(port.tls.as_ref().map(|tls| tls.handshake_s.p50))
        })
        .num("first byte", |port| time(port.first_byte_s.map(|d| d.p50)))
        .text("answer", |port| answer(port))
        .text("encryption", |port| {
            let tls = port.tls.as_ref();
            blank(tls.map(|tls| format!("{}, {}", tls.version, tls.cipher_suite)))
        })
        .text("certificate for", |port| {
            blank(port.tls.as_ref().map(|tls| names(&tls.names)))
        })
        .noting(alias.map(|name| format!("The name resolves to {name}.")))
}

/// What the far end said first.
fn answer(port: &PortResult) -> String {
    match (port.http_status, &port.banner) {
        (Some(status), _) => format!("HTTP {status}"),
        (None, Some(banner)) => banner.lines().next().unwrap_or_default().to_owned(),
        (None, None) => match (port.closed_s, port.mute_s) {
            (Some(closed), _) => format!(
                "closed after {} without an answer",
                number::seconds(closed.p50)
            ),
            (None, Some(waited)) => format!("sent nothing in {}", number::seconds(waited)),
            (None, None) => String::new(),
        },
    }
}

/// The first names of a certificate.
fn names(all: &[String]) -> String {
    let shown: Vec<_> = all.iter().take(MOST_NAMES).map(String::as_str).collect();
    match all.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// How long silent connections were kept.
fn silence(all: &[&PortResult]) -> Table {
    let idle = || all.iter().filter_map(|port| Some((port.port, port.idle?)));
    let time = |value: Option<f64>| blank(value.map(number::seconds));
    let mut lost = idle().filter_map(|(_, idle)| Some((idle.kept_s.unwrap_or(0.0), idle.lost_s?)));
    let note = lost.next_back().map(|(kept, lost)| {
        format!(
            "Something on the path forgets connections that are silent for {} to {}: let programs send keep-alives \
             more often (TCP_KEEPIDLE).",
            number::seconds(kept),
            number::seconds(lost)
        )
    });
    Table::of("Silent connections", idle())
        .text("", |(port, _)| format!("port {port}"))
        .num("kept after", |(_, idle)| time(idle.kept_s))
        .num("forgotten after", |(_, idle)| time(idle.lost_s))
        .num("closed by the server after", |(_, idle)| {
            time(idle.closed_s)
        })
        .num("tried", |(_, idle)| idle.tried.to_string())
        .text("spoke first", |(_, idle)| match idle.first_word {
            FirstWord::FarEnd => "the far end",
            FirstWord::ThisHost => "",
        })
        .noting(note)
}
