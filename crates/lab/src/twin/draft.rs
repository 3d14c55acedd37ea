//! The scenario as it grows: what each aspect puts into it, and its text in the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plumb_model::direction::OneDirection;
use plumb_model::printable::line as printable;

/// Where a cell goes: between this host and its gateway, or on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Lan,
    Line,
}

/// The order of cells in a direction of a link: what decides by packets, what queues, what interrupts, what delays, what loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Size,
    Middlebox,
    Limit,
    Queue,
    Interruption,
    Delay,
    Damage,
}

struct Cell {
    link: Link,
    direction: OneDirection,
    order: Order,
    /// The cell as TOML.
    toml: String,
    /// What it follows from.
    why: String,
}

/// One end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Client,
    Server,
}

/// A scenario that is not finished.
#[derive(Default)]
pub(super) struct Draft {
    cells: Vec<Cell>,
    sysctls: BTreeMap<(End, &'static str), String>,
    unknown: Vec<String>,
}

impl Draft {
    /// Puts a cell into a direction of a link.
    pub(super) fn put(
        &mut self,
        link: Link,
        direction: OneDirection,
        order: Order,
        toml: String,
        why: impl Into<String>,
    ) {
        self.cells.push(Cell {
            link,
            direction,
            order,
            toml,
            why: why.into(),
        });
    }

    /// Puts the same cell into both directions of the line.
    pub(super) fn put_both(&mut self, order: Order, toml: &str, why: &str) {
        for direction in [OneDirection::Up, OneDirection::Down] {
            self.put(Link::Line, direction, order, toml.to_owned(), why);
        }
    }

    /// Sets a kernel variable of an end.
    pub(super) fn set(&mut self, end: End, key: &'static str, value: String) {
        self.sysctls.insert((end, key), value);
    }

    /// Notes something that the Run does not show.
    pub(super) fn unknown(&mut self, what: impl Into<String>) {
        self.unknown.push(what.into());
    }

    /// What the Run does not show, in order.
    pub(super) fn into_unknown(self) -> Vec<String> {
        self.unknown
    }

    /// The scenario as TOML, with what each part follows from.
    pub(super) fn text(&self, name: &str, about: &About) -> String {
        let mut text = String::new();
        text += "# The twin of a measured path, written by `plumb lab from`.\n";
        for unknown in &self.unknown {
            comment(&mut text, "", &format!("Not known: {unknown}"));
        }
        let string = |text: &str| toml::Value::String(printable(text).to_string()).to_string();
        let _ = write!(
            text,
            "\nname = {}\nsummary = {}\nsource = {}\n\n[[node]]\nname = \"client\"\n{}\
             \n# Another host at the same router, that a fix may harm.\n[[node]]\nname = \"neighbour\"\n\
             \n[[node]]\nname = \"router\"\nforward = true\n\n[[node]]\nname = \"modem\"\nforward = true\n\
             \n[[node]]\nname = \"server\"\n{}",
            string(name),
            string(&about.summary),
            string(&about.source),
            self.node(End::Client),
            self.node(End::Server),
        );
        let _ = write!(
            text,
            "\n[[link]]\nname = \"lan\"\nbetween = [\"client\", \"router\"]\n{}\
             \n[[link]]\nname = \"home\"\nbetween = [\"neighbour\", \"router\"]\n\
             \n# No cells: the place of a shaper that the router may be given.\n[[link]]\nname = \"wan\"\n\
             between = [\"router\", \"modem\"]\nemulated = true\n\
             \n[[link]]\nname = \"line\"\nbetween = [\"modem\", \"server\"]\n{}",
            self.chains(Link::Lan),
            self.chains(Link::Line),
        );
        text += "\n[[service]]\nnode = \"server\"\nrun = [\"plumb\", \"serve\", \"--quiet\"]\nport = 7586\n\
             \n[router_shaper]\nup = \"wan.up\"\ndown = \"wan.down\"\n";
        text
    }

    fn node(&self, end: End) -> String {
        let own = self.sysctls.iter().filter(|((of, _), _)| *of == end);
        let lines: String = own
            .map(|((_, key), value)| format!("\"{key}\" = \"{value}\"\n"))
            .collect();
        match lines.is_empty() {
            true => lines,
            false => format!("[node.sysctl] # as the Run has them of this end\n{lines}"),
        }
    }

    fn chains(&self, link: Link) -> String {
        let mut text = String::new();
        for direction in [OneDirection::Up, OneDirection::Down] {
            let is_there = |cell: &&Cell| cell.link == link && cell.direction == direction;
            let mut cells: Vec<&Cell> = self.cells.iter().filter(is_there).collect();
            if cells.is_empty() {
                continue;
            }
            cells.sort_by_key(|cell| cell.order);
            let _ = writeln!(text, "{} = [", direction.name());
            for cell in cells {
                comment(&mut text, "    ", &cell.why);
                let _ = writeln!(text, "    {},", cell.toml);
            }
            text += "]\n";
        }
        text
    }
}

/// What the scenario says of itself.
pub(super) struct About {
    pub(super) summary: String,
    pub(super) source: String,
}

/// The longest line of a comment, in characters.
const COMMENT_CHARS: usize = 110;

/// A comment, in lines that a screen takes.
fn comment(text: &mut String, indent: &str, what: &str) {
    let what = printable(what).to_string();
    let mut line = String::new();
    for word in what.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() >= COMMENT_CHARS {
            let _ = writeln!(text, "{indent}#{line}");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{indent}#{line}");
}
