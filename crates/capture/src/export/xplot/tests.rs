//! Graphs of a connection that is made for them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use super::*;
use crate::analysis::Analysis;
use crate::testing::{lossy, named};
use crate::watch::Watch;

/// Files that are kept in memory.
#[derive(Default)]
struct Memory(BTreeMap<String, String>);

impl Folder for &mut Memory {
    fn append(&mut self, name: &str, text: &[u8]) -> io::Result<()> {
        let file = self.0.entry(name.to_owned()).or_default();
        file.push_str(std::str::from_utf8(text).unwrap());
        Ok(())
    }
}

#[test]
fn a_connection_has_eight_graphs_with_its_marks() {
    let mut memory = Memory::default();
    let mut xplot = Xplot::begin(&mut memory);
    Analysis::of(
        named(lossy()),
        None,
        Watch::nobody().with_observer(&mut xplot),
        &|| false,
    );
    assert_eq!(xplot.finish().unwrap(), 0);
    let names: Vec<&str> = memory.0.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "a2b_owin.xpl",
            "a2b_rtt.xpl",
            "a2b_tput.xpl",
            "a2b_tsg.xpl",
            "b2a_owin.xpl",
            "b2a_rtt.xpl",
            "b2a_tput.xpl",
            "b2a_tsg.xpl"
        ]
    );
    let graph = &memory.0["a2b_tsg.xpl"];
    assert!(graph.starts_with(
        "timeval double\ntitle\n10.0.0.1:40000_==>_10.0.0.2:80 (time sequence graph)\nxlabel\ntime\nylabel\nsequence number\n"
    ));
    assert!(graph.ends_with("\ngo\n"));
    let count = |word: &str| graph.lines().filter(|line| *line == word).count();
    let marks = ["SYN", "R", "S", "Z", "3", "FIN"].map(count);
    assert_eq!(marks, [1, 1, 6, 2, 1, 1]);
    assert!(
        graph.contains("red\natext 1000.056000 2001\nR\ndarrow 1000.056000 1001\n"),
        "{graph}"
    );
    assert!(memory.0["a2b_rtt.xpl"].contains("red\ndot 1000.021000 20\n"));
    assert!(memory.0["a2b_owin.xpl"].contains("dot 1000.030000 8000\n"));
}

#[test]
fn hosts_have_the_letters_of_tcptrace() {
    let of = [0, 1, 25, 26, 51, 52, 701, 702].map(letters);
    assert_eq!(of, ["a", "b", "z", "aa", "az", "ba", "zz", "aaa"]);
}
