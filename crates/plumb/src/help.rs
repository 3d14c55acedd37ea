//! What help shows: the only place that says which options `-h` has, under which headings `--help` has all of them, and
//! which verbs belong together.

use clap::builder::StyledStr;
use clap::{Arg, Command};

/// How a verb is shown.
struct Screen {
    /// The verb, and its action where it has actions.
    verb: &'static str,
    /// The options that `-h` shows, in this order; the others are for `--help`.
    short: &'static [&'static str],
}

/// Verbs with more options than `-h` has room for.
const SCREENS: &[Screen] = &[
    Screen {
        verb: "check",
        short: &[
            "quick",
            "thorough",
            "purpose",
            "goal",
            "plan",
            "complaint",
            "details",
            "port",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "serve",
        short: &[
            "port",
            "listen",
            "public",
            "key",
            "config",
            "max_clients",
            "disk",
            "port_of",
            "without",
            "quiet",
        ],
    },
    Screen {
        verb: "ping",
        short: &[
            "count", "interval", "deadline", "size", "protocol", "from", "v4", "v6", "json",
            "output",
        ],
    },
    Screen {
        verb: "port",
        short: &[
            "count", "timeout", "tls", "http", "idle", "from", "v4", "v6", "json", "output",
        ],
    },
    Screen {
        verb: "page",
        short: &[
            "count", "protocol", "objects", "only", "insecure", "timeout", "v4", "v6", "json",
            "output",
        ],
    },
    Screen {
        verb: "mtu",
        short: &[
            "protocol", "no_icmp", "max", "max_hops", "timeout", "from", "v4", "v6", "json",
            "output",
        ],
    },
    Screen {
        verb: "capacity",
        short: &[
            "only", "duration", "interval", "train", "protocol", "from", "v4", "v6", "json",
            "output",
        ],
    },
    Screen {
        verb: "path",
        short: &[
            "cycles",
            "interval",
            "tcp",
            "udp",
            "continuous",
            "all_paths",
            "both",
            "no_names",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "owd",
        short: &[
            "count",
            "interval",
            "size",
            "stamp",
            "same_clock",
            "from",
            "v4",
            "v6",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "rate",
        short: &[
            "duration",
            "streams",
            "down",
            "up",
            "both",
            "udp",
            "bandwidth",
            "port",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "transactions",
        short: &[
            "duration",
            "streams",
            "udp",
            "tls",
            "connect",
            "per_second",
            "request",
            "response",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "load",
        short: &[
            "duration", "streams", "down", "up", "both", "shape", "rpm", "with", "json", "output",
        ],
    },
    Screen {
        verb: "capture",
        short: &[
            "interface",
            "duration",
            "write",
            "filter",
            "anonymise",
            "both",
            "export",
            "details",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "report",
        short: &[
            "output",
            "problem",
            "who",
            "since",
            "expected",
            "redact",
            "redact_key",
            "svg",
            "facts",
            "router",
        ],
    },
    Screen {
        verb: "shape plan",
        short: &[
            "up", "down", "from", "framing", "scheme", "classes", "nat", "replace", "write", "json",
        ],
    },
    Screen {
        verb: "shape apply",
        short: &[
            "up", "down", "from", "framing", "scheme", "classes", "nat", "replace", "time",
            "far_end",
        ],
    },
    Screen {
        verb: "shape auto",
        short: &[
            "up",
            "down",
            "follow",
            "reflector",
            "budget",
            "port",
            "key",
            "json",
            "output",
        ],
    },
    Screen {
        verb: "tune plan",
        short: &[
            "rate", "rtt", "loss", "from", "role", "knobs", "os", "facts", "format", "json",
        ],
    },
    Screen {
        verb: "tune verify",
        short: &[
            "duration", "runs", "budget", "rate", "rtt", "from", "knobs", "yes", "json", "output",
        ],
    },
];

/// The headings of `--help`, and the options under them that have none of their own.
const HEADINGS: &[(&str, &[&str])] = &[
    (
        "Time and amount",
        &[
            "count",
            "cycles",
            "interval",
            "deadline",
            "duration",
            "timeout",
            "grace",
            "budget",
            "bytes",
            "until",
            "quick",
            "thorough",
            "runs",
            "flood",
            "adaptive",
            "preload",
            "pps",
            "per_second",
            "continuous",
            "tries",
            "time",
            "rpm_interval",
            "within",
            "live",
        ],
    ),
    (
        "Far end and path",
        &[
            "port",
            "key",
            "from",
            "v4",
            "v6",
            "listen",
            "first_hop",
            "max_hops",
            "max_unknown",
            "responder_port",
            "both",
            "one_way",
            "file",
        ],
    ),
    (
        "Packets",
        &[
            "protocol",
            "icmp",
            "udp",
            "tcp",
            "size",
            "sweep",
            "pattern",
            "bitpattern",
            "ttl",
            "tos",
            "dscp",
            "pmtudisc",
            "max",
            "no_icmp",
            "no_marks",
            "train",
            "stamp",
            "key_file",
            "filter",
            "snaplen",
            "promiscuous",
        ],
    ),
    ("Certificates", &["ca", "insecure"]),
    (
        "Output",
        &[
            "json",
            "json_lines",
            "output",
            "details",
            "explain",
            "router",
            "quiet",
            "verbose",
            "numeric",
            "no_names",
            "outstanding",
            "fping",
            "fail_on",
            "format",
            "facts",
            "svg",
            "flent",
            "figure",
            "phase",
            "mtr_report",
            "mtr_json",
            "iperf3",
            "iperf3_json",
            "mtr_csv",
            "traceroute",
            "dot",
            "graph_json",
            "report_wide",
            "show_ips",
            "aslookup",
            "order",
            "no_pager",
            "write",
            "ring",
            "ring_size",
            "anonymise",
            "anonymise_key",
            "export",
            "capture",
        ],
    ),
];

/// The verbs, by what they are for, in the order in which they are shown.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Measure",
        &[
            "check",
            "ping",
            "path",
            "rate",
            "load",
            "mtu",
            "owd",
            "capacity",
            "transactions",
            "port",
            "page",
            "capture",
            "host",
            "watch",
            "serve",
        ],
    ),
    ("Fix", &["shape", "tune", "rehearse"]),
    ("Emulate", &["lab"]),
    ("Results", &["report", "compare", "diagnose"]),
    ("Learn", &["explain", "calc", "generate"]),
];

/// Options from which on headings are worth their lines.
const MANY: usize = 10;

/// Verbs and actions for which the one screen of `-h` has no room; `--help` has them all.
const RARE: &[&str] = &["calc", "generate", "rehearse", "lab igd"];

/// clap sets a blank line before what comes after help, for which one screen has no room either.
const TOP_SHORT: &str = "{usage-heading} {usage}\n";
const TOP_LONG: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}";

const EXAMPLES: &str = "\
Examples:
  plumb check server                 what limits the path, and what to do
  plumb ping -c 0 server             round trips until Ctrl-C
  plumb lab run home-cable -- plumb check server
                                     the same check on an emulated line";

const MORE: &str = "Usual options: plumb COMMAND -h; everything: --help; version: plumb --version.";

/// What `plumb` alone prints: where to begin.
pub(crate) const BEGIN: &str = "\
plumb measures a network path, finds what limits it, and says what to do.

Begin with:
  plumb check             your line, with a server that you agree to
  plumb check HOST        the path to any host
  plumb serve             at the far end, for rates and latency under load

Try it on an emulated line:
  plumb lab run home-cable -- plumb check server

All commands: plumb --help. What a word means: plumb explain WORD.
";

/// What a verb does where an option is not given, by the option.
type Defaults<'a> = &'a dyn Fn(&str) -> Vec<(&'static str, String)>;

/// The command line in the form that is shown: with `long` for `--help`, else for `-h`.
pub(crate) fn arranged(top: Command, defaults: Defaults<'_>, long: bool) -> Command {
    let verbs = verbs(&top, long);
    let top = match long {
        true => top
            .help_template(TOP_LONG)
            .after_long_help(format!("{verbs}\n{EXAMPLES}\n\n{MORE}")),
        false => top.help_template(format!("{TOP_SHORT}{verbs}{MORE}")),
    };
    top.mut_subcommands(|verb| screen(verb, "", defaults, long))
}

/// The verbs with what each does, under the names of their groups.
fn verbs(top: &Command, long: bool) -> String {
    let mut text = String::new();
    for (group, verbs) in GROUPS {
        let mut group = *group;
        for name in verbs.iter().filter(|name| long || !RARE.contains(name)) {
            let Some(verb) = top.find_subcommand(name).filter(|verb| !verb.is_hide_set()) else {
                continue;
            };
            let about = verb
                .get_about()
                .map(StyledStr::to_string)
                .unwrap_or_default();
            text += &format!("{group:<8} {name:<13} {about}\n");
            group = "";
        }
    }
    text
}

fn screen(verb: Command, within: &str, defaults: Defaults<'_>, long: bool) -> Command {
    let name = format!("{within} {}", verb.get_name())
        .trim_start()
        .to_owned();
    let screen = SCREENS.iter().find(|screen| screen.verb == name);
    let options = verb.get_opts().filter(|arg| !arg.is_hide_set()).count();
    let own = defaults(&name);
    // `plumb lab help` is known where it is asked for; on one screen it takes a line.
    let verb = verb.disable_help_subcommand(!long);
    // Verbs are listed by themselves.
    let is_rare_action = !long && !within.is_empty() && RARE.contains(&name.as_str());
    let verb = match is_rare_action {
        true => verb.hide(true),
        false => verb,
    };
    let verb = verb.mut_args(|arg| {
        if arg.is_positional() {
            return arg;
        }
        let arg = with_default(arg, &own);
        if long {
            return match options > MANY {
                true => with_heading(arg),
                false => arg,
            };
        }
        let place = screen.and_then(|screen| screen.short.iter().position(|id| arg.get_id() == id));
        let takes_value = arg.get_action().takes_values();
        let arg = arg.hide_possible_values(takes_value).help_heading(None);
        match (screen, place) {
            (Some(_), None) => arg.hide_short_help(true),
            (_, Some(place)) => arg.display_order(place),
            (None, None) => arg,
        }
    });
    verb.mut_subcommands(|action| self::screen(action, &name, defaults, long))
}

/// Adds what the verb does where the option is not given, where that depends on the verb.
fn with_default(arg: Arg, defaults: &[(&str, String)]) -> Arg {
    let Some((_, default)) = defaults.iter().find(|(id, _)| arg.get_id() == id) else {
        return arg;
    };
    let with = |help: &StyledStr| format!("{help} [default: {default}]");
    let (help, long) = (arg.get_help().map(with), arg.get_long_help().map(with));
    let arg = match help {
        Some(help) => arg.help(help),
        None => arg,
    };
    match long {
        Some(long) => arg.long_help(long),
        None => arg,
    }
}

fn with_heading(arg: Arg) -> Arg {
    if arg.get_help_heading().is_some() {
        return arg;
    }
    let heading = HEADINGS
        .iter()
        .find(|(_, ids)| ids.iter().any(|id| arg.get_id() == id));
    match heading {
        Some((heading, _)) => arg.help_heading(*heading),
        None => arg,
    }
}

#[cfg(test)]
#[path = "help/tests.rs"]
mod tests;
