//! Rows of a connection that is made for them, and outputs that fail.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::analysis::Analysis;
use crate::testing::{lossy, named};
use crate::watch::Watch;

fn written(form: Form) -> String {
    let mut out = Vec::new();
    let mut rows = Rows::begin(&mut out, form);
    Analysis::of(
        named(lossy()),
        None,
        Watch::nobody().with_observer(&mut rows),
        &|| false,
    );
    rows.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rows_of_csv_have_a_value_for_each_column() {
    let text = written(Form::Csv);
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + 27);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns));
    let ends = "10.0.0.1:40000,10.0.0.2:80";
    assert_eq!(
        lines[1],
        format!("1,0.000000000,0,{ends},up,0,,0,SYN,64000,,0,,")
    );
    assert_eq!(
        lines[2],
        format!("2,0.020000000,0,{ends},down,0,1,0,SYN ACK,64000,,0,0.020000000,")
    );
    // A duplicate acknowledgement with a block, and the repetition.
    assert_eq!(
        lines[13],
        format!("13,0.050000000,0,{ends},down,1,1001,0,ACK,65536,2001-4001,0,,duplicate_ack")
    );
    assert_eq!(
        lines[18],
        format!("18,0.055000000,0,{ends},up,1001,1,1000,ACK,65536,,1000,,fast_retransmission")
    );
}

#[test]
fn rows_of_json_are_objects_with_lists() {
    let text = written(Form::JsonLines);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 27);
    assert_eq!(
        lines[12],
        r#"{"packet":13,"at_s":0.050000000,"connection":0,"client":"10.0.0.1:40000","server":"10.0.0.2:80","direction":"down","seq":1,"ack":1001,"payload_bytes":0,"flags":["ACK"],"window_bytes":65536,"sack":[[2001,4001]],"in_flight_bytes":0,"rtt_s":null,"classes":["duplicate_ack"]}"#
    );
}

/// Takes so many bytes and no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_reading_and_is_said() {
    let mut rows = Rows::begin(Full(500), Form::Csv);
    let result = Analysis::of(
        named(lossy()),
        None,
        Watch::nobody().with_observer(&mut rows),
        &|| false,
    );
    assert!(result.packets < 10, "{}", result.packets);
    let error = rows.finish().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
