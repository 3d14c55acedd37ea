//! Rows as CSV. No value has a comma or a quotation mark in it.

use std::fmt::{Display, Write as _};

use super::row::Row;

/// The names of the columns.
pub(super) fn head(line: &mut String) {
    line.push_str(
        "packet,at_s,connection,client,server,direction,seq,ack,payload_bytes,flags,window_bytes,sack,in_flight_bytes,rtt_s,classes\r\n",
    );
}

/// The values of one row.
pub(super) fn row(line: &mut String, row: &Row<'_, '_>) {
    let followed = row.followed;
    let [client, server] = followed.sockets();
    put(line, followed.packet);
    put(line, row.at_s());
    put(line, followed.connection);
    put(line, client);
    put(line, server);
    put(line, row.direction());
    put(line, followed.sequence());
    maybe(line, row.ack());
    put(line, followed.segment.payload_bytes);
    words(line, row.flags());
    maybe(line, followed.view.window_bytes);
    words(
        line,
        row.sack().map(|(start, end)| format!("{start}-{end}")),
    );
    put(line, row.in_flight_bytes());
    maybe(line, row.rtt_s());
    words(line, followed.classes.names());
    line.pop();
    line.push_str("\r\n");
}

fn put(line: &mut String, value: impl Display) {
    // Writing to a String does not fail.
    let _ = write!(line, "{value},");
}

fn maybe(line: &mut String, value: Option<impl Display>) {
    match value {
        Some(value) => put(line, value),
        None => line.push(','),
    }
}

/// Several values in one, with spaces between them.
fn words(line: &mut String, words: impl Iterator<Item = impl Display>) {
    for (index, word) in words.enumerate() {
        if index > 0 {
            line.push(' ');
        }
        let _ = write!(line, "{word}");
    }
    line.push(',');
}
