//! One interval of counters, for a terminal that shows one after the other.

use std::collections::BTreeMap;

use super::layout::Page;
use super::style::Style;
use crate::kinds::host_rates;
use crate::number;

/// The counters that grew, `at_s` seconds from the first look, by their growth in a second.
pub fn render_rates(at_s: f64, per_s: &BTreeMap<String, f64>, style: &Style) -> String {
    let mut page = Page::new(style);
    let title = format!("After {}", number::seconds(at_s));
    page.table(&host_rates::of(title, per_s));
    page.finish()
}
