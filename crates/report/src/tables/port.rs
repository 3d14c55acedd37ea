//! TCP ports: whether they answered, what was said, how long silence was kept.

use plumb_model::results::port::FirstWord;
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};
use crate::view;

/// Names of a certificate that are shown.
const MOST_NAMES: usize = 3;

/// Whether TCP ports answered.
pub(super) fn ports(run: &Run) -> Table {
    let mut table = Table::new(
        "TCP port",
        &[
            ("", Text),
            ("state", Text),
            ("tried", Number),
            ("connected", Number),
            ("p50", Number),
            ("p95", Number),
            ("max", Number),
            ("last error", Text),
        ],
    );
    for (_, port) in view::ports(run) {
        let time = |v: Option<f64>| v.map_or_else(|| ABSENT.to_owned(), number::seconds);
        table.row([
            format!("port {}", port.port),
            port.state
                .map_or_else(String::new, |state| state.name().to_owned()),
            port.tried.to_string(),
            port.connected.to_string(),
            time(port.connect_s.map(|d| d.p50)),
            time(port.connect_s.map(|d| d.p95)),
            time(port.connect_s.map(|d| d.max)),
            port.error.clone().unwrap_or_default(),
        ]);
    }
    let hints: Vec<_> = view::ports(run)
        .flat_map(|(_, port)| &port.hints)
        .cloned()
        .collect();
    table.note = (!hints.is_empty()).then(|| hints.join(" "));
    table
}

/// What was said on the connections, part by part; medians.
pub(super) fn talk(run: &Run) -> Table {
    let mut table = Table::new(
        "Parts of a connection, medians",
        &[
            ("", Text),
            ("name", Number),
            ("connect", Number),
            ("TLS", Number),
            ("first byte", Number),
            ("answer", Text),
            ("encryption", Text),
            ("certificate for", Text),
        ],
    );
    for (_, port) in view::ports(run).filter(|(_, port)| port.state.is_some() && port.connected > 0)
    {
        let time = |v: Option<f64>| v.map_or_else(String::new, number::seconds);
        let answer = match (port.http_status, &port.banner) {
            (Some(status), _) => format!("HTTP {status}"),
            (None, Some(banner)) => banner.lines().next().unwrap_or_default().to_owned(),
            (None, None) => match (port.closed_s, port.mute_s) {
                (Some(closed), _) => format!(
                    "closed after {}, without a word",
                    number::seconds(closed.p50)
                ),
                (None, Some(waited)) => format!("said nothing in {}", number::seconds(waited)),
                (None, None) => String::new(),
            },
        };
        let tls = port.tls.as_ref();
        let names = tls.map_or_else(String::new, |tls| {
            let shown: Vec<_> = tls
                .names
                .iter()
                .take(MOST_NAMES)
                .map(String::as_str)
                .collect();
            match tls.names.len().saturating_sub(MOST_NAMES) {
                0 => shown.join(", "),
                more => format!("{} and {more} more", shown.join(", ")),
            }
        });
        table.row([
            format!("port {}", port.port),
            time(port.name_s),
            time(port.connect_s.map(|d| d.p50)),
            time(tls.map(|tls| tls.handshake_s.p50)),
            time(port.first_byte_s.map(|d| d.p50)),
            answer,
            tls.map_or_else(String::new, |tls| {
                format!("{}, {}", tls.version, tls.cipher_suite)
            }),
            names,
        ]);
    }
    let alias = view::ports(run).find_map(|(_, port)| port.canonical_name.as_ref());
    table.note = alias.map(|name| format!("The name stands for {name}."));
    table
}

/// How long silent connections were kept.
pub(super) fn silence(run: &Run) -> Table {
    let mut table = Table::new(
        "Silent connections",
        &[
            ("", Text),
            ("kept after", Number),
            ("forgotten after", Number),
            ("closed by the server after", Number),
            ("tried", Number),
            ("spoke first", Text),
        ],
    );
    for (_, port) in view::ports(run) {
        let Some(idle) = port.idle else { continue };
        let time = |v: Option<f64>| v.map_or_else(String::new, number::seconds);
        table.row([
            format!("port {}", port.port),
            time(idle.kept_s),
            time(idle.lost_s),
            time(idle.closed_s),
            idle.tried.to_string(),
            match idle.first_word {
                FirstWord::FarEnd => "the far end".to_owned(),
                FirstWord::ThisHost => String::new(),
            },
        ]);
        if let Some(lost) = idle.lost_s {
            let kept = idle.kept_s.unwrap_or(0.0);
            table.note = Some(format!(
                "Something on the way forgets connections that are silent for {} to {}: let programs send keep-alives \
                 more often (TCP_KEEPIDLE).",
                number::seconds(kept),
                number::seconds(lost)
            ));
        }
    }
    table
}
