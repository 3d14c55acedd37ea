//! `plumb watch` with the kinds of targets that measure more than a round trip, in a network whose truth is known.

use std::fs;

use jiff::Timestamp;
use plumb_model::results::Outcome;
use plumb_model::run::Run;

use crate::common::network::{Network, taken_ratio};
use crate::common::slots::{self, Weight};

/// How often the route is looked at, in seconds.
const EVERY_S: f64 = 0.5;

/// By so much a busy machine may probe later than planned, in seconds.
const LATE_S: f64 = 0.5;

/// How long a rate is measured, in seconds: `lasts` below.
const RATE_S: f64 = 4.0;

const TARGETS: &str = r#"
[[target]]
name = "route"
host = "moving"
probe = "path"
every = "500ms"
more_often_than_10s = true

[[target]]
name = "stamp"
host = "server"
probe = "stamp"
every = "500ms"
more_often_than_10s = true

[[target]]
name = "udp"
host = "server"
probe = "udp"
every = "500ms"
more_often_than_10s = true

[[target]]
name = "up"
host = "server"
probe = "one-way"
direction = "up"
same_clock = true
every = "1s"
more_often_than_10s = true

[[target]]
name = "down"
host = "server"
probe = "one-way"
protocol = "stamp"
direction = "down"
same_clock = true
every = "1s"
more_often_than_10s = true

[[target]]
name = "rate"
host = "loaded"
probe = "rate"
direction = "up"
lasts = "4s"
bytes_a_day = "100GB"
every = "40s"

[[target]]
name = "budget"
host = "loaded"
probe = "rate"
direction = "up"
lasts = "4s"
bytes_a_day = "4.4GB"
every = "42s"

[[target]]
name = "size"
host = "moving"
probe = "mtu"
every = "20s"
more_often_than_10s = true

[[target]]
name = "page"
host = "server"
probe = "page"
url = "http://server:4043/"
every = "60s"
more_often_than_10s = true

[[target]]
name = "disk"
probe = "command"
command = ["echo", "42.5 degrees"]
every = "1s"
"#;

/// A trace beside it sees when the route changes, which the lab does 7 s after its start.
const SCRIPT: &str = r#"
cd "$FOLDER"
trap 'cat said >&2' ERR
page=http://127.0.0.1:7590
plumb watch w.toml 2> said &
watch=$!
plumb path -4 -n --icmp --cycles 55 --interval 200ms moving -o trace.json > /dev/null
sleep 2
for target in route disk rate; do
    curl -sf "$page/target/$target" > "target-$target"
done
curl -sf "$page/" > overview
curl -sf "$page/metrics" > metrics
kill -TERM $watch
wait $watch
echo "ended $?"
"#;

/// The value of a metric of a target, of that quantile.
fn metric(metrics: &str, name: &str, target: &str, quantile: &str) -> f64 {
    let label = format!("plumb_watch_{name}{{target=\"{target}\",");
    let of_target = metrics.lines().filter(|line| line.starts_with(&label));
    let marked = format!("quantile=\"{quantile}\"}} ");
    let mut values = of_target.filter_map(|line| line.split_once(&marked));
    let (_, value) = values
        .next()
        .unwrap_or_else(|| panic!("{target}: {metrics}"));
    value.parse().unwrap()
}

/// The changes that a target's page lists, the latest first: since when, s since 1970, and what.
fn changes(page: &str) -> Vec<(f64, String)> {
    let (_, table) = page.split_once("<th>route</th></tr>").expect(page);
    let (table, _) = table.split_once("</table>").unwrap();
    let rows = table.split("<tr><td>").skip(1).map(|row| {
        let (at, words) = row.split_once("</td><td>").unwrap();
        let at: Timestamp = at.parse().unwrap();
        let words = words.split('<').next().unwrap().to_owned();
        (at.as_microsecond() as f64 / 1e6, words)
    });
    rows.collect()
}

#[test]
fn routes_delays_rates_and_numbers_are_those_of_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("[store]\npath = \"w.db\"\n{TARGETS}");
    fs::write(folder.path().join("w.toml"), file).unwrap();
    let mut net = Network::default();
    net.node("client", "forward = false");
    net.node("server", "").node("loaded", "");
    for name in ["q1", "q2", "q3"] {
        net.node(name, "forward = true");
    }
    net.node("moving", "forward = false");
    net.serves("server").serves("loaded").without_ipv6();
    net.link(
        "near",
        ["client", "server"],
        "up = [{ type = \"delay\", delay = \"10ms\" }]\ndown = [{ type = \"delay\", delay = \"30ms\" }]",
    );
    net.link(
        "line",
        ["client", "loaded"],
        "up = [{ type = \"shaper\", rate = \"20mbit\", framing = \"ethernet\", queue = { type = \"fifo\", limit = \"100ms\" } }, { type = \"delay\", delay = \"5ms\" }]\n\
         down = [{ type = \"delay\", delay = \"5ms\" }]",
    );
    net.link("first", ["client", "q1"], "");
    net.link("old", ["q1", "q2"], "mtu = 1400");
    net.link("new", ["q1", "q3"], "mtu = 1400");
    net.link("old-end", ["q2", "moving"], "");
    net.link("new-end", ["q3", "moving"], "");
    net.add("[[route]]\nnode = \"q3\"\nto = \"moving\"\nvia = \"moving\"");
    net.add("[[route]]\nnode = \"q1\"\nto = \"moving\"\nvia = \"q3\"\nat = \"7s\"");
    let script = format!("set -e; FOLDER='{}'\n{SCRIPT}", folder.path().display());
    // It loads the line of 20 Mbit/s alone, and upwards.
    let slot = slots::take(Weight::Slow);
    let (said, stats) = net.script(&script);
    drop(slot);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let log = read("said");
    assert!(said.contains("ended 0"), "{said}{log}");

    // The route changed once, and no later than one look after the trace saw it.
    let page = read("target-route");
    let found = changes(&page);
    let [(changed_s, new), (_, old)] = &found[..] else {
        panic!("{found:?} {log}")
    };
    let run: Run = serde_json::from_str(&read("trace.json")).unwrap();
    let traced = run
        .measurements
        .iter()
        .find_map(|measured| match &measured.outcome {
            Outcome::Path(path) => path.changes.first(),
            _ => None,
        });
    let traced = traced.expect("the trace saw the change");
    let at: Timestamp = traced.time.as_deref().unwrap().parse().unwrap();
    let at_s = at.as_microsecond() as f64 / 1e6;
    let earliest_s = at_s - (traced.at_s - traced.after_s) - 0.1;
    eprintln!(
        "route changed {:.3} s after the trace saw it",
        changed_s - at_s
    );
    assert!(
        (earliest_s..at_s + EVERY_S + LATE_S).contains(changed_s),
        "{changed_s} {at_s}"
    );
    let hops = |route: &str| -> Vec<String> { route.split(' ').map(str::to_owned).collect() };
    let (new, old) = (hops(new), hops(old));
    assert_eq!((new.len(), old.len()), (3, 3), "{found:?}");
    assert!(new[0] == old[0] && new[1] != old[1], "{found:?}");
    assert!(log.contains("route: it was "), "{log}");

    let metrics = read("metrics");
    // The delays are constant: the lowest are theirs, what is more is the machine's.
    for (target, delay_s) in [("stamp", 0.04), ("udp", 0.04), ("up", 0.01), ("down", 0.03)] {
        let lowest_s = metric(&metrics, "rtt_seconds", target, "0.05");
        let is_it = (delay_s..delay_s + 0.002).contains(&lowest_s);
        assert!(is_it, "{target}: {lowest_s} {log}");
    }
    assert_eq!(metric(&metrics, "value", "disk", "0.5"), 42.5);
    assert_eq!(metric(&metrics, "packet_bytes", "size", "0.5"), 1400.0);
    // A connection and the page, then what it names: three round trips at least, and far from ten.
    let page_s = metric(&metrics, "rtt_seconds", "page", "0.5");
    assert!((0.12..0.4).contains(&page_s), "{page_s} {log}");
    // 1448 of each 1518 bytes of the line are payload; what slow start takes of 4 s is left out.
    let payload = 20e6 * 1448.0 / 1538.0;
    let share = metric(&metrics, "rate_bits_per_second", "rate", "0.5") / payload;
    let taken = taken_ratio(&stats, RATE_S);
    assert!(
        (0.9 - taken..1.02).contains(&share),
        "{share}, the machine took {taken}: {log}"
    );
    assert!(
        read("overview").contains("Mbit/s</td>"),
        "{}",
        read("overview")
    );
    assert!(read("target-disk").contains("42.5"));
    // With a budget of 2.1 MB it ends early, in slow start or a little after.
    let value = metric(&metrics, "rate_bits_per_second", "budget", "0.5");
    assert!(value > 1e6 && value < payload * 1.1, "{value}");
}

/// Looks until the measurement is there, for half a minute.
const LOADED: &str = r#"
cd "$FOLDER"
trap 'cat said >&2' ERR
plumb watch w.toml 2> said &
watch=$!
for _ in $(seq 60); do
    sleep 0.5
    curl -sf http://127.0.0.1:7590/metrics > metrics
    ! grep -q 'target="line rate down"' metrics || break
done
kill -TERM $watch
wait $watch
echo "ended $?"
"#;

/// A queue of 100 ms upwards, and of 50 ms downwards.
#[test]
fn a_path_under_load_shows_the_queue_of_each_direction() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[store]\npath = \"w.db\"\n[[target]]\nname = \"line\"\nhost = \"server\"\nprobe = \"load\"\n\
                bytes_a_day = \"100GB\"\nlasts = \"6s\"\nevery = \"20m\"\n";
    fs::write(folder.path().join("w.toml"), file).unwrap();
    let mut net = Network::default();
    net.node("client", "forward = false").node("server", "");
    net.serves("server").without_ipv6();
    let direction = |queue: &str| {
        format!(
            "[{{ type = \"shaper\", rate = \"20mbit\", framing = \"ethernet\", queue = {{ type = \"fifo\", limit = \"{queue}\" }} }}, {{ type = \"delay\", delay = \"10ms\" }}]"
        )
    };
    let (up, down) = (direction("100ms"), direction("50ms"));
    net.link(
        "line",
        ["client", "server"],
        &format!("up = {up}\ndown = {down}"),
    );
    let script = format!("set -e; FOLDER='{}'\n{LOADED}", folder.path().display());
    let slot = slots::take(Weight::Slow);
    let (said, _) = net.script(&script);
    drop(slot);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let log = read("said");
    assert!(said.contains("ended 0"), "{said}{log}");
    let metrics = read("metrics");
    let of = |name, target| metric(&metrics, name, target, "0.5");
    let idle_s = of("rtt_seconds", "line idle");
    assert!((0.02..0.022).contains(&idle_s), "{idle_s} {log}");
    // CUBIC empties a quarter to a half of a full queue when it loses something.
    let up_s = of("rtt_seconds", "line up");
    let down_s = of("rtt_seconds", "line down");
    assert!((0.07..0.125).contains(&up_s), "{up_s} {log}");
    assert!((0.045..0.075).contains(&down_s), "{down_s} {log}");
    assert_eq!(of("rtt_seconds", "line"), up_s);
    let payload = 20e6 * 1448.0 / 1538.0;
    for direction in ["line rate up", "line rate down"] {
        let share = of("rate_bits_per_second", direction) / payload;
        assert!((0.9..1.02).contains(&share), "{direction}: {share} {log}");
    }
}
