//! Checks of hosts along one path, for the terminal.

use plumb_model::segments::Segments;

use super::layout::{BOLD, Page};
use super::style::Style;
use crate::number;
use crate::segments::{headline, sentences, steps};
use crate::table::Table;

/// What it comes to, in which segment each finding is, where rates fall, and the hosts with their numbers, each line ended.
pub fn render_segments(segments: &Segments, style: &Style) -> String {
    let mut page = Page::new(style);
    page.wrapped("", BOLD, &headline(segments));
    page.blank();
    page.warned(&segments.notes);
    page.listed("Findings", &sentences(segments));
    page.listed("Along the path", &steps(segments));
    if !segments.hosts.is_empty() {
        let table = Table::of("Hosts", &segments.hosts)
            .text("", |host| host.name.clone())
            .num("hops", |host| host.hops)
            .num("idle RTT", |host| host.idle_rtt_s.map(number::seconds))
            .num("down", |host| host.down_bps.map(number::rate))
            .num("up", |host| host.up_bps.map(number::rate))
            .num("packet", |host| {
                host.path_mtu_bytes.map(|bytes| format!("{bytes} B"))
            })
            .done();
        page.table(&table);
    }
    page.finish()
}
