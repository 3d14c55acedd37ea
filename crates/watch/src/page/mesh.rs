//! `/mesh`: who measures what of whom in a mesh, as matrices; and its own row as JSON at `/mesh.json`, which the others fetch.

use super::words::{escaped, in_path, page as whole, percent};
use crate::config::Config;
use crate::mesh::row::{self, Cell, Row};
use crate::mesh::{Member, Mesh, Probe};
use crate::store::{Store, StoreError};

/// How often a browser loads the page again, in seconds.
const AGAIN_S: u32 = 60;

/// What the symbols are, for those who do not see colours.
const LEGEND: &str = "<p>Rows measure the path to columns. <span class=\"fine\">● all answered</span>, \
     <span class=\"part\">▲ some lost</span>, <span class=\"bad\">✖ none answered</span>, · not measured yet, ? not known \
     here. Medians; a cell leads to its history.</p>\n";

/// The own row as others fetch it; `None` without a mesh.
pub(super) fn json(
    config: &Config,
    store: &Store,
    now_s: i64,
) -> Result<Option<String>, StoreError> {
    let Some(mesh) = &config.mesh else {
        return Ok(None);
    };
    let row = row::own(mesh, config, store, now_s)?;
    Ok(Some(serde_json::to_string(&row).unwrap_or_default()))
}

/// The page; `None` without a mesh.
pub(super) fn page(
    config: &Config,
    store: &Store,
    now_s: i64,
) -> Result<Option<String>, StoreError> {
    let Some(mesh) = &config.mesh else {
        return Ok(None);
    };
    let own = row::own(mesh, config, store, now_s)?;
    let name = escaped(&mesh.name);
    let mut body = format!("<p><a href=\"/\">all targets</a></p>\n<h1>Mesh: {name}</h1>\n{LEGEND}");
    for probe in &mesh.probes {
        body += &matrix(mesh, probe, &own);
    }
    if !mesh.table.is_empty() {
        body += &format!(
            "<p>What loads paths has a slot of {:.1} s for each; clocks may differ by {:.1} s.</p>\n",
            mesh.table.slot_length().as_secs_f64(),
            mesh.table.tolerance().as_secs_f64()
        );
    }
    body += "<p><a href=\"/mesh.json\">This row as JSON</a></p>\n";
    Ok(Some(whole(&mesh.name, Some(AGAIN_S), &body)))
}

/// The matrix of one probe.
fn matrix(mesh: &Mesh, probe: &Probe, own: &Row) -> String {
    let heads = mesh.members.iter();
    let heads = heads.map(|to| format!("<th scope=\"col\">{}</th>", escaped(&to.name)));
    let heads: String = heads.collect();
    let mut rows = String::new();
    for (place, from) in mesh.members.iter().enumerate() {
        let row = (place == mesh.own).then_some(own);
        rows += &format!("<tr><th scope=\"row\">{}</th>", escaped(&from.name));
        for to in &mesh.members {
            rows += &match to.name == from.name {
                true => "<td></td>".to_owned(),
                false => cell(mesh, (from, to), probe, row),
            };
        }
        rows += "</tr>\n";
    }
    format!(
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<tr><th>from \\ to</th>{heads}</tr>\n{rows}</table></div>\n",
        escaped(&probe.label)
    )
}

/// One cell; without a row it is not known.
fn cell(mesh: &Mesh, (from, to): (&Member, &Member), probe: &Probe, row: Option<&Row>) -> String {
    let Some(row) = row else {
        return "<td>?</td>".to_owned();
    };
    let (class, words) = match row.cell(&to.name, &probe.label) {
        None | Some(Cell { count: 0, .. }) => ("", "·".to_owned()),
        Some(cell) => shown(cell, probe),
    };
    let target = in_path(&Mesh::target_name(&from.name, &to.name, &probe.label));
    // The history of a row is on the page of its member.
    let base = match mesh.own_member().is_some_and(|own| own.name == from.name) {
        true => Some(String::new()),
        false => from.page.as_ref().map(|page| page.origin.to_string()),
    };
    match base {
        Some(base) => format!(
            "<td class=\"{class}\"><a href=\"{}/target/{target}\">{}</a></td>",
            escaped(&base),
            escaped(&words)
        ),
        None => format!("<td class=\"{class}\">{}</td>", escaped(&words)),
    }
}

/// The class and the words of a cell.
fn shown(cell: &Cell, probe: &Probe) -> (&'static str, String) {
    let lost = cell.lost as f64 / cell.count.max(1) as f64;
    let median = cell.median.map(|median| probe.unit.words(median));
    match (cell.lost, median) {
        (0, Some(median)) => ("fine", format!("● {median}")),
        (_, Some(median)) => ("part", format!("▲ {} lost, {median}", percent(lost))),
        (_, None) => ("bad", "✖ no answer".to_owned()),
    }
}
