//! The numbers of a Run as tables of text, for the terminal and the page alike.

use plumb_model::grade::Grade;
use plumb_model::results::TcpSender;
use plumb_model::run::Run;
use plumb_model::units::{human_seconds, si};
use serde::Serialize;

use Kind::{Number, Text};

use crate::number::{self, ABSENT, Scale};
use crate::view::{self, Phase};

pub(crate) use changes::{before_and_after, changes, what};
pub(crate) use facts::{facts, lab};

mod app;
mod available;
mod capacity;
mod changes;
mod facts;
mod host;
pub(crate) mod host_facts;
mod limits;
mod loaded;
mod mtu;
mod owd;
mod path;
mod ping;
mod pings;
mod port;
mod quic;
pub(crate) mod rates;
mod responsiveness;
mod speed;
mod tls;
mod transactions;
mod transfer;
mod tune;
mod udp;
mod way_back;

/// A table whose cells are text.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Table {
    /// What it shows, with the unit where the whole table has one.
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What must be known to read it.
    pub(crate) note: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// What a column holds, which decides how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Words, set from the left.
    Text,
    /// Numbers, set from the right.
    Number,
    /// A mark.
    Grade,
    /// A sentence, as long as it has to be; only in the last column.
    Sentence,
}

/// A row of a table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// In a comparison, whether the change is for the better.
    pub(crate) better: Option<bool>,
}

/// What a table shows of a value that may not be known.
fn or_absent<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), show)
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[(&'static str, Kind)]) -> Self {
        let columns = columns
            .iter()
            .map(|(name, kind)| Column { name, kind: *kind })
            .collect();
        Self {
            title: title.into(),
            columns,
            rows: Vec::new(),
            note: None,
        }
    }

    /// The same without the columns that hold nothing in any row.
    fn without_empty_columns(mut self) -> Self {
        for index in (0..self.columns.len()).rev() {
            let empty = |row: &Row| row.cells.get(index).is_none_or(String::is_empty);
            if self.rows.iter().all(empty) {
                self.columns.remove(index);
                for row in self.rows.iter_mut().filter(|row| index < row.cells.len()) {
                    row.cells.remove(index);
                }
            }
        }
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row {
            cells: cells.into_iter().collect(),
            better: None,
        });
    }
}

/// Every table of a Run that has a row, the most telling first.
pub(crate) fn of_run(run: &Run) -> Vec<Table> {
    let tables = [
        rates::averages(run),
        speed::disk(run),
        speed::cipher(run),
        host::audit(run),
        host::counters(run),
        host::interfaces(run),
        host::queues(run),
        host::connections(run),
        host::listeners(run),
        host::cached(run),
        host::machine(run),
        tune::table(run),
        app::table(run),
        available::rates(run),
        available::steps(run),
        responsiveness::table(run),
        latency(run),
        loaded::classes(run),
        loaded::places(run),
        loaded::periodic(run),
        rate(run),
        transfer::transfer(run),
        shares(run),
        quic::table(run),
        udp::packets(run),
        udp::delays(run),
        udp::order(run),
        tcp(run),
        limits::table(run),
        tls::table(run),
        transactions::table(run),
        transactions::phases(run),
        windows(run),
        ping::probes(run),
        ping::spread(run),
        ping::phases(run),
        ping::sizes(run),
        ping::losses(run),
        pings::together(run),
        pings::targets(run),
        port::ports(run),
        port::talk(run),
        port::silence(run),
        owd::delays(run),
        owd::packets(run),
        owd::clocks(run),
        mtu::paths(run),
        mtu::hops(run),
        mtu::segments(run),
        capacity::lines(run),
        capacity::trains(run),
    ];
    path::tables(run)
        .into_iter()
        .chain(tables)
        .filter(|table| !table.rows.is_empty())
        .map(Table::without_empty_columns)
        .collect()
}

/// The bandwidth-delay product against what both ends' buffers allow one connection.
fn windows(run: &Run) -> Table {
    let mut table = Table::new(
        "One TCP connection: what the path holds, and the windows that the ends allow",
        &[
            ("", Text),
            ("min RTT", Number),
            ("path holds", Number),
            ("sender allows", Number),
            ("receiver allows", Number),
            ("about at most", Number),
        ],
    );
    for row in view::windows(run) {
        let bytes = |value: Option<f64>| or_absent(value, |v| si(v, "B"));
        table.row([
            Phase::from(row.direction).title().to_owned(),
            human_seconds(row.rtt_s),
            bytes(Some(row.bdp_bytes)),
            bytes(row.send_window_bytes),
            bytes(row.receive_window_bytes),
            or_absent(row.one_flow_bps, |rate| si(rate, "bit/s")),
        ]);
    }
    table.note = Some(
        "The path holds the measured rate times the smallest round trip; about 0.8 of a send buffer and 0.65 of a receive buffer count."
            .to_owned(),
    );
    table
}

/// Round trips idle and under each load.
fn latency(run: &Run) -> Table {
    let rows = view::latencies(run);
    let scale = Scale::seconds(rows.iter().filter_map(|row| row.rtt_s.map(|d| d.p50)));
    let mut table = Table::new(
        format!("Round-trip time, {}", scale.unit),
        &[
            ("", Text),
            ("probe", Text),
            ("p50", Number),
            ("p95", Number),
            ("p99", Number),
            ("max", Number),
            ("p95 over idle", Number),
            ("loss", Number),
            ("grade", Kind::Grade),
        ],
    );
    for row in &rows {
        let rtt = |get: fn(&plumb_model::distribution::Distribution) -> f64| {
            scale.show(row.rtt_s.map(get))
        };
        table.row([
            row.phase.title().to_owned(),
            row.protocol.name().to_owned(),
            rtt(|d| d.p50),
            rtt(|d| d.p95),
            rtt(|d| d.p99),
            rtt(|d| d.max),
            row.increase_s
                .map_or_else(String::new, |d| scale.show(Some(d.p95))),
            or_absent(row.loss_ratio, number::percent),
            row.grade.map_or_else(String::new, |g| g.name().to_owned()),
        ]);
    }
    table.note = loaded::grades(run);
    table
}

/// What each direction carried.
fn rate(run: &Run) -> Table {
    let rows = view::rates(run);
    let scale = Scale::rates(rows.iter().map(|row| row.result.bps));
    let mut table = Table::new(
        format!("Rate, {}", scale.unit),
        &[
            ("", Text),
            ("received", Number),
            ("after 2 s", Number),
            ("data", Number),
            ("flows", Number),
            ("Jain", Number),
            ("CPU here", Number),
            ("CPU far", Number),
        ],
    );
    for row in &rows {
        let result = row.result;
        table.row([
            view::flow_in_phase(row.phase, result.direction),
            scale.show(Some(result.bps)),
            scale.show(result.steady_bps),
            number::bytes(result.bytes as f64),
            result.streams.len().to_string(),
            result
                .sharing
                .as_ref()
                .and_then(|sharing| sharing.jain_index)
                .map_or_else(String::new, |index| format!("{index:.3}")),
            number::percent(result.cpu.local_ratio),
            or_absent(result.cpu.remote_ratio, number::percent),
        ]);
    }
    table.note = (!rows.is_empty())
        .then(|| "Payload that reached the receiver; CPU is of one core.".to_owned());
    table
}

/// How different flows beside each other shared a direction.
fn shares(run: &Run) -> Table {
    let mut table = Table::new(
        "Shares of flows side by side",
        &[
            ("", Text),
            ("flows", Text),
            ("rate", Number),
            ("share", Number),
            ("if even", Number),
        ],
    );
    let mut notes = Vec::new();
    for row in view::rates(run) {
        let Some(sharing) = row.result.sharing.as_ref() else {
            continue;
        };
        // Not where classes of traffic were to be told apart: they have a table of their own.
        if sharing.groups.len() < 2 || !row.measurement.params.contains_key("flows") {
            continue;
        }
        let flow = view::flow_in_phase(row.phase, row.result.direction);
        for group in &sharing.groups {
            table.row([
                flow.clone(),
                format!("{} × {}", group.streams, group.cc),
                number::rate(group.bps),
                number::percent(group.share_ratio),
                number::percent(group.even_share_ratio),
            ]);
        }
        if let (Some(whole), Some(each)) = (sharing.jain_index, &sharing.jain_index_each_second) {
            notes.push(format!(
                "{flow}: Jain's index of all flows is {whole:.3} over the whole phase, and {:.3} to {:.3} second by second",
                each.min, each.max
            ));
        }
    }
    table.note = (!notes.is_empty()).then(|| format!("{}.", notes.join("; ")));
    table
}

/// What the sending TCPs said of themselves.
fn tcp(run: &Run) -> Table {
    let rows = view::rates(run);
    let mut table = Table::new(
        "TCP senders",
        &[
            ("", Text),
            ("cc", Text),
            ("retransmits", Number),
            ("min RTT", Number),
            ("max SRTT", Number),
            ("in flight", Number),
            ("MSS", Number),
            ("with", Text),
        ],
    );
    let time = |value: Option<f64>| or_absent(value, number::seconds);
    for row in rows.iter().filter(|row| row.has_sender()) {
        let sender = &row.result.tcp;
        table.row([
            view::flow_in_phase(row.phase, row.result.direction),
            row.result.cc.clone(),
            sender.retransmits.to_string(),
            time(sender.min_rtt_s),
            time(sender.max_srtt_s),
            number::bytes(sender.max_in_flight_bytes as f64),
            format!("{} B", sender.mss_bytes),
            agreed(sender),
        ]);
    }
    table
}

/// What both ends agreed on beyond plain TCP.
fn agreed(sender: &TcpSender) -> String {
    let all = [
        (sender.ecn, "ECN"),
        (sender.fast_open, "Fast Open"),
        (sender.mptcp, "MPTCP"),
    ];
    let had: Vec<_> = all
        .into_iter()
        .filter_map(|(had, name)| (had == Some(true)).then_some(name))
        .collect();
    had.join(", ")
}

/// Every stream by itself, where a phase had more than one.
pub(crate) fn streams(run: &Run) -> Table {
    let rows: Vec<_> = view::rates(run)
        .into_iter()
        .filter(|row| row.result.streams.len() > 1)
        .collect();
    let scale = Scale::rates(
        rows.iter()
            .flat_map(|row| row.result.streams.iter().map(|s| s.bps)),
    );
    let mut table = Table::new(
        format!("Streams, {}", scale.unit),
        &[
            ("", Text),
            ("stream", Number),
            ("received", Number),
            ("data", Number),
            ("retransmits", Number),
            ("ended early", Text),
        ],
    );
    for row in &rows {
        for stream in &row.result.streams {
            table.row([
                view::flow_in_phase(row.phase, row.result.direction),
                stream.id.to_string(),
                scale.show(Some(stream.bps)),
                number::bytes(stream.bytes as f64),
                stream.retransmits.to_string(),
                stream.error.clone().unwrap_or_default(),
            ]);
        }
    }
    table
}

/// The mark as a word of text; nothing where there is none.
pub(crate) fn mark(grade: Option<Grade>) -> String {
    or_absent(grade, |g| g.name().to_owned())
}
