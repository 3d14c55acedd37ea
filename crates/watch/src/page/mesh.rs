//! `/mesh`: who measures what of whom in a mesh, as matrices; and its own row as JSON at `/mesh.json`, which the others fetch.

use super::words::{clock, escaped, in_path, page as whole, percent};
use crate::config::Config;
use crate::mesh::fetching::Rows;
use crate::mesh::row::{self, Cell, Row};
use crate::mesh::{Member, Mesh, Probe};
use crate::store::{Store, StoreError};

/// How often a browser loads the page again, in seconds.
const AGAIN_S: u32 = 60;

/// A row that was heard longer ago is not known any more, in seconds: three rounds.
const KNOWN_S: i64 = 180;

/// A clock that differs by no more may do so because its row took so long to come, in seconds.
const LEAST_OFF_S: i64 = 15;

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
    rows: &Rows,
    now_s: i64,
) -> Result<Option<String>, StoreError> {
    let Some(mesh) = &config.mesh else {
        return Ok(None);
    };
    let own = row::own(mesh, config, store, now_s)?;
    let others = mesh
        .members
        .iter()
        .enumerate()
        .map(|(place, member)| match place == mesh.own {
            true => (Some(&own), "this member".to_owned()),
            false => heard_of(mesh, member, rows, now_s),
        });
    let known: Vec<(Option<&Row>, String)> = others.collect();
    let name = escaped(&mesh.name);
    let mut body = format!("<p><a href=\"/\">all targets</a></p>\n<h1>Mesh: {name}</h1>\n{LEGEND}");
    for probe in &mesh.probes {
        body += &matrix(mesh, probe, &known);
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
fn matrix(mesh: &Mesh, probe: &Probe, known: &[(Option<&Row>, String)]) -> String {
    let heads = mesh.members.iter();
    let heads = heads.map(|to| format!("<th scope=\"col\">{}</th>", escaped(&to.name)));
    let heads: String = heads.collect();
    let mut rows = String::new();
    for (from, (row, words)) in mesh.members.iter().zip(known) {
        rows += &format!("<tr><th scope=\"row\">{}</th>", escaped(&from.name));
        for to in &mesh.members {
            rows += &match to.name == from.name {
                true => "<td></td>".to_owned(),
                false => cell(mesh, (from, to), probe, *row),
            };
        }
        rows += &format!("<td>{}</td></tr>\n", escaped(words));
    }
    format!(
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<tr><th>from \\ to</th>{heads}<th scope=\"col\">its row</th></tr>\n{rows}</table></div>\n",
        escaped(&probe.label)
    )
}

/// The row of another member as far as it is known, and what is to be said of it.
fn heard_of<'a>(
    mesh: &Mesh,
    member: &Member,
    rows: &'a Rows,
    now_s: i64,
) -> (Option<&'a Row>, String) {
    if member.page.is_none() {
        return (None, "the file names no page of it".to_owned());
    }
    let Some(heard) = rows.get(&(mesh.name.clone(), member.name.clone())) else {
        return (None, "not asked yet".to_owned());
    };
    if now_s - heard.at_s > KNOWN_S {
        return (
            None,
            format!("not asked since {}", clock(heard.at_s, now_s)),
        );
    }
    let row = match &heard.row {
        Ok(row) => row,
        Err(why) => return (None, why.clone()),
    };
    let mut words = Vec::new();
    if row.digest != mesh.digest {
        words.push("it has another file: slots differ".to_owned());
    }
    let ahead_s = row.at_s.saturating_sub(heard.at_s);
    match ahead_s.saturating_abs() {
        off_s if off_s <= LEAST_OFF_S => {}
        off_s if ahead_s > 0 => words.push(format!("its clock is {off_s} s ahead")),
        off_s => words.push(format!("its clock is {off_s} s behind")),
    }
    if words.is_empty() {
        words.push(format!("heard at {}", clock(heard.at_s, now_s)));
    }
    (Some(row), words.join("; "))
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
