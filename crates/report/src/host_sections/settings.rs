//! Kernel variables, grouped as they are named.

use plumb_model::results::host::Sysctl;

use crate::number::ABSENT;
use crate::table::{Table, blank};

pub(super) fn tables(sysctls: &[Sysctl]) -> Vec<Table> {
    // They are sorted by name, so that the members of a group follow each other.
    let groups = sysctls.chunk_by(|a, b| group(a) == group(b));
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
    let any_absent = group.iter().any(|sysctl| sysctl.value.is_none());
    Table::of(format!("Kernel variables, {name}"), group)
        .text("", |sysctl| sysctl.key.clone())
        .text("value", |sysctl| sysctl.value.clone())
        .text("reach", |sysctl| sysctl.scope.name())
        .sentence("", |sysctl| {
            let why = sysctl.never_because.as_ref();
            blank(why.map(|why| format!("never: {why}")))
        })
        .noting(any_absent.then(|| format!("{ABSENT}: this kernel or this namespace has none.")))
}
