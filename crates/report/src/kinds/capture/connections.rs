//! TCP connections of a capture.

use plumb_model::results::capture::{
    CaptureLimit, ConnectionResult, HalfResult, LimitedBy, SegmentCounts,
};

use crate::number;
use crate::table::{Table, blank, counted, list};

/// Connections whose sentence says what limited them, and those that have a row in the short text, each of which a sentence names.
const SENTENCES: usize = 5;
const ROWS: usize = 10;

/// Which the heaviest are, a sentence each, and what limited the first of them.
pub(super) fn sentences(connections: &[ConnectionResult]) -> Vec<String> {
    let numbered = connections.iter().zip(1..).take(ROWS);
    numbered
        .map(|(connection, number)| {
            let named = named(connection, number);
            let why = limited(connection).filter(|_| number <= SENTENCES);
            why.map_or_else(|| format!("{named}."), |why| format!("{named}: {why}."))
        })
        .collect()
}

/// Its number, its ends and what it carried.
fn named(connection: &ConnectionResult, number: usize) -> String {
    let (half, verb) = heavier(connection);
    format!(
        "{number}. {} {verb} {}{}",
        connection.client,
        connection.server,
        carried(half)
    )
}

/// What limited a connection for most of its time.
fn limited(connection: &ConnectionResult) -> Option<String> {
    let limit = connection.limit?;
    let (half, _) = heavier(connection);
    let ratio = number::percent(share(&connection.limited, limit));
    let why = match limit {
        CaptureLimit::Handshake => format!("the handshake took {ratio} of the time"),
        CaptureLimit::Application => {
            format!("for {ratio} of the time its applications had nothing to send")
        }
        CaptureLimit::Server => format!("for {ratio} of the time the server thought"),
        CaptureLimit::ReceiveWindow => format!(
            "the receiver's window{} limited it for {ratio} of the time",
            half.max_window_bytes
                .map(|b| format!(" of {} at most", number::bytes(b as f64)))
                .unwrap_or_default()
        ),
        CaptureLimit::Path => format!("the path limited it for {ratio} of the time"),
    };
    let repeated = half.segments.repeated();
    let lacking = connection
        .lacking
        .iter()
        .map(|lacking| format!("the {} has no {}", lacking.side, lacking.option));
    let facts = list(
        [
            (repeated > 0).then(|| format!("{repeated} segments were retransmitted")),
            missing_handshake(connection, limit),
        ]
        .into_iter()
        .chain(lacking.map(Some)),
    );
    let facts = match facts.is_empty() {
        true => String::new(),
        false => format!("; {facts}"),
    };
    Some(format!("{why}{facts}"))
}

/// Without the handshake it is unknown whether the window was full.
fn missing_handshake(connection: &ConnectionResult, limit: CaptureLimit) -> Option<String> {
    let unknown = limit == CaptureLimit::Path && heavier(connection).0.max_window_bytes.is_none();
    unknown.then(|| "how large its windows are is unknown without the handshake".to_owned())
}

fn carried(half: &HalfResult) -> String {
    let bytes = number::bytes(half.payload_bytes as f64);
    match half.goodput_bps {
        Some(bps) => format!(", {bytes} at {}", number::rate(bps)),
        None => format!(", {bytes}"),
    }
}

/// The side that sent more, and an arrow that says which.
fn heavier(connection: &ConnectionResult) -> (&HalfResult, &'static str) {
    match connection.up.payload_bytes > connection.down.payload_bytes {
        true => (&connection.up, ">"),
        false => (&connection.down, "<"),
    }
}

fn share(limited: &LimitedBy, limit: CaptureLimit) -> f64 {
    match limit {
        CaptureLimit::Handshake => limited.handshake_ratio,
        CaptureLimit::Application => limited.app_ratio,
        CaptureLimit::Server => limited.server_ratio,
        CaptureLimit::ReceiveWindow => limited.rwnd_ratio,
        CaptureLimit::Path => limited.path_ratio,
    }
}

type Numbered<'a> = (usize, &'a ConnectionResult);

fn numbered(connections: &[ConnectionResult], most: usize) -> Vec<Numbered<'_>> {
    (1..).zip(connections.iter().take(most)).collect()
}

/// Where the time of the heaviest went.
pub(super) fn answers(connections: &[ConnectionResult]) -> Vec<Table> {
    let of = |limit: CaptureLimit| {
        move |(_, connection): &Numbered<'_>| {
            let connection = *connection;
            blank(
                connection
                    .limit
                    .map(|_| number::percent(share(&connection.limited, limit))),
            )
        }
    };
    let rtt = |half: &HalfResult| {
        blank(
            half.rtt_s
                .or(half.rtt_timestamps_s)
                .map(|d| number::seconds(d.min)),
        )
    };
    let table = Table::of(
        "TCP connections, and where their time went",
        numbered(connections, ROWS),
    )
    .num("", |(number, _)| *number)
    .num("up", |(_, c)| number::bytes(c.up.payload_bytes as f64))
    .num("down", |(_, c)| number::bytes(c.down.payload_bytes as f64))
    .num("to client", |(_, c)| rtt(&c.down))
    .num("to server", |(_, c)| rtt(&c.up))
    .num("shake", of(CaptureLimit::Handshake))
    .num("app", of(CaptureLimit::Application))
    .num("server", of(CaptureLimit::Server))
    .num("window", of(CaptureLimit::ReceiveWindow))
    .num("path", of(CaptureLimit::Path));
    let note = "To client and server: the shortest round trip from the place of the capture. See `plumb explain capture`.";
    vec![table.noted(note)]
}

/// All that is known of the connections.
pub(super) fn details(connections: &[ConnectionResult], segments: &SegmentCounts) -> Vec<Table> {
    /// Longer tables are for programs, which read the Run.
    const MOST: usize = 50;
    let all = numbered(connections, MOST);
    let ends = Table::of("Connections", all.clone())
        .num("", |(number, _)| *number)
        .text("client", |(_, c)| c.client.clone())
        .text("server", |(_, c)| c.server.clone())
        .num("begins", |(_, c)| number::seconds(c.at_s))
        .num("lasts", |(_, c)| number::seconds(c.duration_s))
        .num("turns", |(_, c)| counted(c.turns))
        .num("handshake", |(_, c)| {
            blank(c.handshake_s.map(number::seconds))
        })
        .text("", |(_, c)| match (c.reset_by, c.ended) {
            (Some(side), _) => format!("reset by the {side}"),
            (None, true) => "closed".to_owned(),
            (None, false) => "open".to_owned(),
        });
    let classes = Table::of(
        "Segments by class, of the connections' both sides",
        sides(&all),
    )
    .num("", |(number, ..)| *number)
    .text("", |(_, side, _)| *side)
    .num("packets", |(.., half)| half.packets)
    .num("retr.", |(.., half)| counted(half.segments.retransmissions))
    .num("fast", |(.., half)| {
        counted(half.segments.fast_retransmissions)
    })
    .num("spurious", |(.., half)| {
        counted(half.segments.spurious_retransmissions)
    })
    .num("timeouts", |(.., half)| counted(half.timeouts))
    .num("overtaken", |(.., half)| {
        counted(half.segments.out_of_order)
    })
    .num("gaps", |(.., half)| counted(half.segments.lost_segments))
    .num("dup. ACKs", |(.., half)| {
        counted(half.segments.duplicate_acks)
    })
    .num("0 windows", |(.., half)| {
        counted(half.segments.zero_windows)
    });
    let windows = Table::of(
        "Windows and round trips, of the connections' both sides",
        sides(&all),
    )
    .num("", |(number, ..)| *number)
    .text("", |(_, side, _)| *side)
    .num("goodput", |(.., half)| {
        blank(half.goodput_bps.map(number::rate))
    })
    .num("in flight", |(.., half)| {
        number::bytes(half.max_in_flight_bytes as f64)
    })
    .num("window", |(.., half)| {
        blank(half.max_window_bytes.map(|b| number::bytes(b as f64)))
    })
    .num("initial", |(.., half)| {
        blank(half.initial_window_bytes.map(|b| number::bytes(b as f64)))
    })
    .num("RTT min", |(.., half)| {
        blank(half.rtt_s.map(|d| number::seconds(d.min)))
    })
    .num("p50", |(.., half)| {
        blank(half.rtt_s.map(|d| number::seconds(d.p50)))
    })
    .num("p95", |(.., half)| {
        blank(half.rtt_s.map(|d| number::seconds(d.p95)))
    });
    vec![
        ends.done(),
        tls(&all),
        classes.done(),
        windows.done(),
        congestion(&all),
        sums(segments),
    ]
}

/// Handshakes of TLS, with times from the ClientHello.
fn tls(all: &[Numbered<'_>]) -> Table {
    let seen = all
        .iter()
        .filter_map(|(number, c)| Some((*number, c.tls.as_ref()?)));
    let table = Table::of("Handshakes of TLS", seen)
        .num("", |(number, _)| *number)
        .text("server name", |(_, tls)| blank(tls.server_name.as_ref()))
        .text("version", |(_, tls)| blank(tls.version.as_ref()))
        .num("ServerHello", |(_, tls)| {
            blank(tls.server_hello_s.map(number::seconds))
        })
        .num("data", |(_, tls)| {
            blank(tls.application_data_s.map(number::seconds))
        })
        .text("", |(_, tls)| match tls.retried {
            true => "second ClientHello",
            false => "",
        });
    table.noted("From the ClientHello; data: the client's first, after the handshake.")
}

/// Congestion windows, and where the time of each sender went.
fn congestion(all: &[Numbered<'_>]) -> Table {
    let shown = sides(all)
        .into_iter()
        .filter_map(|(number, side, half)| Some((number, side, half.congestion?)));
    let table = Table::of("Congestion windows of the senders", shown)
        .num("", |(number, ..)| *number)
        .text("", |(_, side, _)| *side)
        .num("largest", |(.., c)| {
            blank(c.max_bytes.map(|b| number::bytes(b as f64)))
        })
        .num("start ends", |(.., c)| {
            blank(c.slow_start_end_s.map(number::seconds))
        })
        .num("recoveries", |(.., c)| counted(c.recoveries))
        .num("start", |(.., c)| number::percent(c.slow_start_ratio))
        .num("avoid", |(.., c)| number::percent(c.avoidance_ratio))
        .num("recover", |(.., c)| number::percent(c.recovery_ratio))
        .num("window", |(.., c)| number::percent(c.rwnd_ratio))
        .num("app", |(.., c)| number::percent(c.app_ratio));
    table.noted(
        "Start: slow start. Shares of the time from the first full segment to the last payload.",
    )
}

fn sides<'a>(all: &[Numbered<'a>]) -> Vec<(usize, &'static str, &'a HalfResult)> {
    let each = all
        .iter()
        .map(|(number, c)| [(*number, "up", &c.up), (*number, "down", &c.down)]);
    each.flatten().collect()
}

/// Segments of every connection, by class.
fn sums(segments: &SegmentCounts) -> Table {
    let classes = [
        ("retransmission", segments.retransmissions),
        ("fast retransmission", segments.fast_retransmissions),
        ("spurious retransmission", segments.spurious_retransmissions),
        ("out of order", segments.out_of_order),
        ("previous segment not captured", segments.lost_segments),
        ("duplicate ACK", segments.duplicate_acks),
        ("ACKed unseen segment", segments.acked_unseen),
        ("keep-alive", segments.keep_alives),
        ("keep-alive ACK", segments.keep_alive_acks),
        ("zero window", segments.zero_windows),
        ("zero window probe", segments.zero_window_probes),
        ("zero window probe ACK", segments.zero_window_probe_acks),
        ("window update", segments.window_updates),
        ("window full", segments.window_full),
        ("port numbers reused", segments.ports_reused),
    ];
    let seen = classes.into_iter().filter(|(_, count)| *count > 0);
    Table::of("Segments of all connections by class", seen)
        .text("", |(class, _)| *class)
        .num("segments", |(_, count)| *count)
        .done()
}
