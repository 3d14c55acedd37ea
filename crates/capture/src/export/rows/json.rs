//! Rows as objects of JSON. No string has a character in it that would need an escape.

use std::fmt::{Display, Write as _};

use super::row::Row;

/// One row, as an object on a line of its own.
pub(super) fn row(line: &mut String, row: &Row<'_, '_>) {
    let followed = row.followed;
    let [client, server] = followed.sockets();
    line.push('{');
    put(line, "packet", followed.packet);
    put(line, "at_s", row.at_s());
    put(line, "connection", followed.connection);
    put(line, "client", Quoted(client));
    put(line, "server", Quoted(server));
    put(line, "direction", Quoted(row.direction()));
    put(line, "seq", followed.sequence());
    maybe(line, "ack", row.ack());
    put(line, "payload_bytes", followed.segment.payload_bytes);
    list(line, "flags", row.flags().map(Quoted));
    maybe(line, "window_bytes", followed.view.window_bytes);
    list(
        line,
        "sack",
        row.sack().map(|(start, end)| format!("[{start},{end}]")),
    );
    put(line, "in_flight_bytes", row.in_flight_bytes());
    maybe(line, "rtt_s", row.rtt_s());
    list(line, "classes", followed.classes.names().map(Quoted));
    line.pop();
    line.push_str("}\n");
}

/// A value in quotation marks.
struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

fn put(line: &mut String, name: &str, value: impl Display) {
    // Writing to a String does not fail.
    let _ = write!(line, "\"{name}\":{value},");
}

fn maybe(line: &mut String, name: &str, value: Option<impl Display>) {
    match value {
        Some(value) => put(line, name, value),
        None => put(line, name, "null"),
    }
}

fn list(line: &mut String, name: &str, values: impl Iterator<Item = impl Display>) {
    let _ = write!(line, "\"{name}\":[");
    for (index, value) in values.enumerate() {
        if index > 0 {
            line.push(',');
        }
        let _ = write!(line, "{value}");
    }
    line.push_str("],");
}
