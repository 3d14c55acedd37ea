//! Kernel variables, grouped as they are named.

use plumb_model::results::host::{HostResult, Sysctl};

use crate::number::ABSENT;
use crate::tables::Kind::{Sentence, Text};
use crate::tables::Table;

pub(super) fn tables(host: &HostResult) -> Vec<Table> {
    // They are sorted by name, so that those of a group follow each other.
    let groups = host.sysctls.chunk_by(|a, b| group(a) == group(b));
    groups.map(table).collect()
}

/// `net.ipv4`, `net.core`, `vm`: where in /proc/sys.
fn group(sysctl: &Sysctl) -> &str {
    let key = sysctl.key.as_str();
    let end = match key.strip_prefix("net.") {
        Some(rest) => rest.find('.').map(|end| "net.".len() + end),
        None => key.find('.'),
    };
    end.and_then(|end| key.get(..end)).unwrap_or(key)
}

fn table(group: &[Sysctl]) -> Table {
    let name = group.first().map_or("", self::group);
    let mut table = Table::new(
        format!("Kernel variables, {name}"),
        &[("", Text), ("value", Text), ("reach", Text), ("", Sentence)],
    );
    for sysctl in group {
        table.row([
            sysctl.key.clone(),
            sysctl.value.clone().unwrap_or_else(|| ABSENT.to_owned()),
            sysctl.scope.name().to_owned(),
            sysctl
                .never_because
                .as_ref()
                .map_or_else(String::new, |why| format!("never: {why}")),
        ]);
    }
    if group.iter().any(|sysctl| sysctl.value.is_none()) {
        table.note = Some(format!("{ABSENT}: this kernel or this namespace has none."));
    }
    table
}
