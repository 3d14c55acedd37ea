//! Words of other programs, and what does the same here.

/// Programs, and words that users expect to be commands, with the command that does the same.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("fping", "ping"),
    ("hping3", "ping"),
    ("hping", "ping"),
    ("nping", "ping"),
    ("ping6", "ping -6"),
    ("latency", "ping"),
    ("rtt", "ping"),
    ("irtt", "ping --protocol udp"),
    ("dig", "ping --protocol dns"),
    ("nslookup", "ping --protocol dns"),
    ("httping", "ping --protocol http"),
    ("tcping", "ping --protocol tcp"),
    ("traceroute", "path"),
    ("traceroute6", "path -6"),
    ("tcptraceroute", "path --tcp"),
    ("tracert", "path"),
    ("tracepath", "path"),
    ("trace", "path"),
    ("route", "path"),
    ("trippy", "path --continuous"),
    ("trip", "path --continuous"),
    ("pathping", "path --continuous"),
    ("mtr", "path --continuous"),
    ("iperf", "rate"),
    ("iperf2", "rate"),
    ("iperf3", "rate"),
    ("nuttcp", "rate"),
    ("ttcp", "rate"),
    ("bandwidth", "rate"),
    ("throughput", "rate"),
    ("client", "rate"),
    ("download", "rate --down"),
    ("upload", "rate --up"),
    ("netperf", "transactions"),
    ("speedtest", "check"),
    ("speedtest-cli", "check"),
    ("speed", "check"),
    ("test", "check"),
    ("fast", "check"),
    ("run", "check"),
    ("flent", "load"),
    ("rrul", "load --shape rrul"),
    ("networkquality", "load --rpm"),
    ("crusader", "load"),
    ("bufferbloat", "load"),
    ("owping", "owd"),
    ("jitter", "owd"),
    ("nc", "port"),
    ("netcat", "port"),
    ("telnet", "port"),
    ("nmap", "port"),
    ("curl", "page"),
    ("wget", "page"),
    ("tcpdump", "capture"),
    ("tshark", "capture"),
    ("wireshark", "capture"),
    ("server", "serve"),
    ("iperf3-server", "serve"),
    ("ethtool", "host"),
    ("nstat", "host"),
    ("netstat", "host"),
    ("ss", "host"),
    ("sysctl", "tune plan"),
    ("tc", "shape plan"),
    ("sqm", "shape plan"),
    ("netem", "lab impair"),
    ("smokeping", "watch init"),
    ("monitor", "watch init"),
    ("show", "report"),
    ("diff", "compare"),
    ("man", "explain"),
    ("version", "--version"),
];

/// The name that means every command.
const ANY: &str = "";

/// Options of other programs that are no option of that command, and what is written instead.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("plumb", "-v", "the version is plumb --version"),
    (
        "plumb",
        "-c",
        "the host stands behind a command: plumb rate HOST",
    ),
    ("plumb", "-s", "the responder is a command: plumb serve"),
    ("plumb rate", "-c", "the host stands alone: plumb rate HOST"),
    ("plumb load", "-c", "the host stands alone: plumb load HOST"),
    ("plumb rate", "-n", "an amount of data is --bytes SIZE"),
    ("plumb rate", "-k", "an amount of data is --bytes SIZE"),
    ("plumb rate", "-w", "the window is --window SIZE"),
    (
        "plumb rate",
        "-l",
        "the payload of datagrams is --size BYTES",
    ),
    ("plumb rate", "-M", "the segment size is --mss BYTES"),
    ("plumb rate", "-S", "the class of traffic is --dscp CLASS"),
    (
        "plumb rate",
        "-B",
        "the interface or address to send from is --from",
    ),
    (
        "plumb rate",
        "-Z",
        "there is no zero copy: the processor use of both ends is in the result",
    ),
    (
        "plumb rate",
        "-O",
        "slow start is measured apart: nothing has to be left out",
    ),
    ("plumb rate", "-V", "all tables are --details"),
    (
        "plumb serve",
        "-s",
        "plumb serve is the responder already: leave -s out",
    ),
    (
        "plumb serve",
        "-D",
        "in the background: systemctl start plumb-serve, of the Debian package",
    ),
    ("plumb serve", "--one-off", "plumb serve runs until Ctrl-C"),
    (
        "plumb path",
        "-d",
        "the waiting time of a hop is --timeout TIME",
    ),
    (
        "plumb tune apply",
        "--dry-run",
        "plumb tune plan shows what would be set, and sets nothing",
    ),
    (
        "plumb shape apply",
        "--dry-run",
        "plumb shape plan shows what would be made, and makes nothing",
    ),
    (
        "plumb tune",
        "--dry-run",
        "plumb tune plan shows what would be set, and sets nothing",
    ),
    (
        "plumb shape",
        "--dry-run",
        "plumb shape plan shows what would be made, and makes nothing",
    ),
    (
        ANY,
        "--dry-run",
        "only tune and shape change this machine, and plumb tune plan and plumb shape plan show what they would change",
    ),
    (ANY, "--version", "the version is plumb --version"),
    (ANY, "-J", "JSON is --json"),
    (
        ANY,
        "-v",
        "all that was measured is --details; the version is plumb --version",
    ),
    (ANY, "--debug", "all that was measured is --details"),
    (
        ANY,
        "--color",
        "NO_COLOR=1 in the environment leaves colours out",
    ),
    (
        ANY,
        "--no-color",
        "NO_COLOR=1 in the environment leaves colours out",
    ),
];

/// What is written instead of an option of another program, behind that command.
pub(super) fn option(command: &str, typed: &str) -> Option<&'static str> {
    let typed = typed.split('=').next().unwrap_or(typed);
    let of = |wanted: &str| {
        let mut known = OPTIONS.iter();
        known.find(|(of, option, _)| *of == wanted && *option == typed)
    };
    of(command).or_else(|| of(ANY)).map(|(_, _, tip)| *tip)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::typed::{letters, longs, verb_of};

    #[test]
    fn what_stands_for_other_programs_is_a_command() {
        for (other, verb) in COMMANDS.iter().filter(|(_, verb)| *verb != "--version") {
            let words = ["plumb"].into_iter().chain(verb.split(' '));
            let rest: &[&str] = match *verb {
                "port" => &["server", "22"],
                "lab impair" => &["eth0", "delay", "10ms"],
                "tune plan" => &["--rate", "1gbit", "--rtt", "50ms"],
                "shape plan" => &["eth0", "--up", "18mbit"],
                "serve" | "host" => &[],
                "compare" => &["a.json", "b.json"],
                _ => &["server"],
            };
            let parsed = crate::Cli::try_parse_from(words.chain(rest.iter().copied()));
            assert!(parsed.is_ok(), "{other}: plumb {verb}");
            let command = crate::command(true);
            assert!(command.find_subcommand(other).is_none(), "{other} is ours");
        }
    }

    #[test]
    fn no_command_has_an_option_that_the_table_calls_foreign() {
        let top = crate::command(true);
        for (of, option, _) in OPTIONS.iter().filter(|(of, ..)| *of != ANY) {
            let words: Vec<&str> = of.split(' ').skip(1).collect();
            let (verb, name) = verb_of(&top, &words);
            assert_eq!(name, *of);
            let long = longs(verb).any(|long| option.strip_prefix("--") == Some(long));
            let letter = letters(verb).any(|(letter, _)| format!("-{letter}") == *option);
            assert!(!long && !letter, "{of} {option}");
        }
    }
}
