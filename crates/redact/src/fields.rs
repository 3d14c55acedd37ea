//! What stands in which field of a Run. What is not listed is text.

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Words of sentences, and numbers.
    Text,
    /// A name that is replaced whole, whatever words it is made of.
    Name,
    /// Words that dots join: the name of a kernel variable, of a field.
    Compound,
    /// An argument of a command, which may be a name.
    Command,
    /// The number of an autonomous system.
    System,
    /// Where something is on the map.
    Place,
}

/// The ends of paths to fields, without the places in lists.
const CLASSES: &[(&[&str], Class)] = &[
    (&["id"], Class::Text),
    (&["command"], Class::Command),
    (&["target", "name"], Class::Name),
    (&["hops", "name"], Class::Name),
    (&["hops", "as_name"], Class::Name),
    (&["hops", "asn"], Class::System),
    (&["hops", "place"], Class::Place),
    (&["targets", "name"], Class::Name),
    (&["unresolved"], Class::Name),
    (&["canonical_name"], Class::Name),
    (&["tls", "names"], Class::Name),
    (&["tls", "server_name"], Class::Name),
    (&["url"], Class::Name),
    (&["page_url"], Class::Name),
    (&["origins", "origin"], Class::Name),
    (&["endpoints", "name"], Class::Name),
    (&["slowest", "name"], Class::Name),
    (&["files", "name"], Class::Name),
    (&["file", "name"], Class::Name),
    (&["wifi", "network"], Class::Name),
    (&["interfaces", "name"], Class::Name),
    (&["interfaces", "alias"], Class::Name),
    (&["bus", "address"], Class::Name),
    (&["interrupts", "interface"], Class::Name),
    (&["qdiscs", "interface"], Class::Name),
    (&["interface", "interface"], Class::Name),
    (&["owner", "program"], Class::Name),
    (&["clocks", "ptp_devices"], Class::Name),
    (&["load", "from"], Class::Name),
    (&["load", "to"], Class::Name),
    (&["result", "folder"], Class::Name),
    (&["evidence", "field"], Class::Compound),
    (&["sysctls", "key"], Class::Compound),
    (&["sysctl", "key"], Class::Compound),
    (&["goals", "field"], Class::Compound),
];

/// What the field at the end of a path holds.
pub(crate) fn class(path: &[&str]) -> Class {
    let of = CLASSES.iter().find(|(end, _)| path.ends_with(end));
    of.map_or(Class::Text, |(_, class)| *class)
}
