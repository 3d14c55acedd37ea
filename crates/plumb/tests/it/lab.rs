//! The laboratory as a user meets it: statuses, steering, and leaving nothing behind.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::machine::{all_end, descendants, machine, says_ready, signal};
use crate::common::network::Network;
use crate::common::{PLUMB, in_lab, need_root, plumb, run_in, stderr, stdout};
use plumb_lab::stats::LabStats;
use plumb_model::run::LabChange;
use plumb_model::run::{LabClock, Run};

/// Starts a laboratory whose command says "ready" and then sleeps.
fn sleeping_lab() -> (Child, Vec<u32>) {
    let mut child = Command::new(PLUMB)
        .args([
            "lab",
            "run",
            "home-cable",
            "--",
            "sh",
            "-c",
            "sleep 1000 & echo ready; wait",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    says_ready(&mut child);
    let inside = descendants(child.id());
    // The inner process, the service, the shell and its sleep.
    assert!(inside.len() >= 4, "{inside:?}");
    (child, inside)
}

#[test]
fn status_is_the_commands_own() {
    need_root();
    let before = machine();
    for (command, status) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -TERM $$"], 128 + 15),
        (&["no-such-program"], 127),
        (&["/etc/hosts"], 126),
    ] {
        let arguments = [&["lab", "run", "fibre", "--"], command].concat();
        let output = plumb(&arguments);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{command:?}: {}",
            stderr(&output)
        );
    }
    assert_eq!(machine(), before);
}

#[test]
fn its_own_failures_are_125_and_say_why() {
    need_root();
    let says = |arguments: &[&str], words: &[&str]| {
        let output = plumb(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {text}");
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{arguments:?}: {text}"
        );
    };
    says(
        &["lab", "run", "quux", "--", "true"],
        &["quux", "home-cable", ".toml"],
    );
    says(
        &["lab", "run", "home-cabel", "--", "true"],
        &["did you mean 'home-cable'?", "plumb lab list"],
    );
    says(
        &["lab", "run", "/no/such.toml", "--", "true"],
        &["/no/such.toml", "No such file"],
    );
    says(
        &["lab", "run", "fibre", "--node", "nowhere", "--", "true"],
        &["nowhere", "client", "server"],
    );
    says(
        &["lab", "set", "line.up.shaper", "rate=1mbit"],
        &["not inside a lab"],
    );

    let folder = tempfile::tempdir().unwrap();
    let capture = |end: &str| format!("{end}={}", folder.path().join("x.pcapng").display());
    says(
        &[
            "lab",
            "run",
            "home-cable",
            "--capture",
            &capture("lan@server"),
            "--",
            "true",
        ],
        &["'server' is not at lan, which joins client, router"],
    );
    says(
        &[
            "lab",
            "run",
            "home-unloaded",
            "--capture",
            &capture("home@internet"),
            "--",
            "true",
        ],
        &["'internet' is not at home, which joins"],
    );

    let file = folder.path().join("broken.toml");
    std::fs::write(
        &file,
        "name = \"x\"\nsummary = \"x\"\n[[node]]\nnme = \"a\"\n",
    )
    .unwrap();
    says(
        &["lab", "run", file.to_str().unwrap(), "--", "true"],
        &["broken.toml", "line 4", "nme", "`name`"],
    );
    let service = "name = \"x\"\nsummary = \"x\"\n[[node]]\nname = \"a\"\n[[service]]\nnode = \"a\"\nrun = [\"false\"]\nport = 1\n";
    std::fs::write(&file, service).unwrap();
    says(
        &["lab", "run", file.to_str().unwrap(), "--", "true"],
        &["'false'", "ended at once"],
    );
}

#[test]
fn stats_as_text_show_cells_in_order_and_as_they_are_now() {
    let script = "plumb lab set line.up.shaper rate=7mbit queue=fq_codel >/dev/null; \
        plumb ping server -c 3 -i 10ms >/dev/null; plumb lab stats";
    let text = stdout(&in_lab("home-cable", &[], &["sh", "-c", script]));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = [
        "(p99)",
        "shaper shaper framing=docsis queue=(fq_codel ",
        "rate=7.00 Mbit/s",
        "each: ",
        "queue, over all the time: ",
        "delay delay delay=9ms",
        // Without cells, and counted all the same.
        "wan.up: late by ",
    ];
    let mut rest = &*text;
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
        rest = &rest[at..];
    }
    assert!(rest.contains("3 offered, 3 delivered"), "{text}");
    assert!(rest.contains("1 flows, 2 hosts"), "{text}");
}

#[test]
fn verify_says_what_was_held_against_what() {
    need_root();
    let output = plumb(&["lab", "verify", "jumbo"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(
        text.contains("result.path_mtu_bytes is 9000 (must be 9000)"),
        "{text}"
    );
}

#[test]
fn traffic_goes_on_and_tells_what_is_wrong_with_it() {
    need_root();
    let mut line = Network::line("{ type = \"delay\", delay = \"1ms\" }", "");
    let traffic = |run: &str| format!("[[traffic]]\nnode = \"client\"\nrun = {run}\n");
    let plumb = |words: &str| traffic(&format!("{:?}", words.split(' ').collect::<Vec<_>>()));
    line.add(&plumb("plumb lab flood server --rate nonsense"));
    // The flood beside it may take every packet of the line.
    line.add(&plumb("plumb rate 127.0.0.1 --up"));
    // More than any machine sends.
    line.add(&plumb("plumb lab flood server --rate 900gbit"));
    line.add(&traffic(
        "[\"sh\", \"-c\", \"echo . >> /etc/sysctl.d/times; sleep 1\"]",
    ));
    let file = line.file();
    let (name, folder) = (file.path().to_str().unwrap(), tempfile::tempdir().unwrap());
    let run = folder.path().join("run.json");
    let script = format!(
        "sleep 2.6; plumb ping server -c 1 -o {} >/dev/null; wc -l < /etc/sysctl.d/times",
        run.display()
    );
    // The flood takes whatever the machine has.
    let output = run_in(LabClock::Real, name, &[], &["sh", "-c", &script]);
    let (said, times) = (stderr(&output), stdout(&output));
    assert!(output.status.success(), "{said}");
    assert!(times.trim().parse::<u32>().unwrap() >= 2, "{times}");
    let run = Run::from_json(&std::fs::read_to_string(run).unwrap()).unwrap();
    let notes = run.local.lab.unwrap().notes.join("\n");
    for words in [
        "'nonsense' for '--rate <RATE>': write a rate",
        "'plumb lab flood server --rate nonsense' on client ended after",
        "(exit status 2): error: invalid value",
        "nothing listens on TCP port 7586",
        "the flood of 900 Gbit/s to server was not sent as fast",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Of each direction: 20 Mbit/s, 20 ms there and back.
const LINE: &str = r#"{ type = "shaper", rate = "20mbit", queue = "fq_codel" }, { type = "delay", delay = "10ms" }"#;

/// The programs that everybody has, and plumb, on the same line one after the other.
#[test]
fn ping_and_iperf3_measure_what_the_links_have_and_so_does_plumb() {
    let mut line = Network::served_line(LINE, LINE);
    // plumb serve has 5201, for clients of iperf3.
    line.service("server", &["iperf3", "--server", "--port", "5202"], 5202);
    let file = line.file();
    let (name, folder) = (file.path().to_str().unwrap(), tempfile::tempdir().unwrap());
    let at = |file: &str| folder.path().join(file).display().to_string();
    let script = format!(
        "ping -q -c 40 -i 0.02 server > {}; plumb ping server -c 40 -i 20ms -o {} > /dev/null; \
         iperf3 --client server --port 5202 --time 4 --json > {}; plumb rate server --up --duration 4s -o {} > /dev/null",
        at("ping"),
        at("plumb-ping"),
        at("iperf3"),
        at("plumb-rate")
    );
    let output = in_lab(name, &[], &["sh", "-c", &script]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = |file: &str| std::fs::read_to_string(at(file)).unwrap();
    let json = |file: &str| serde_json::from_str::<serde_json::Value>(&text(file)).unwrap();
    let number = |file: &str, pointer: &str| json(file).pointer(pointer).unwrap().as_f64().unwrap();

    // rtt min/avg/max/mdev = 20.1/20.3/20.9/0.1 ms
    let least_ms = text("ping")
        .rsplit_once("= ")
        .unwrap()
        .1
        .split('/')
        .next()
        .unwrap()
        .parse();
    let least_s: f64 = least_ms.map(|ms: f64| ms / 1e3).unwrap();
    for least_s in [
        least_s,
        number("plumb-ping", "/measurements/0/result/rtt_s/min"),
    ] {
        assert!((0.020..0.0202).contains(&least_s), "{least_s}");
    }
    // 1448 of 1500 bytes are payload, slow start takes some of four seconds, and FQ-CoDel a percent or two.
    let line_bps = 20e6 * 1448.0 / 1500.0;
    for bps in [
        number("iperf3", "/end/sum_received/bits_per_second"),
        number("plumb-rate", "/measurements/0/result/bps"),
    ] {
        assert!((0.85 * line_bps..1.01 * line_bps).contains(&bps), "{bps}");
    }
}

#[test]
fn ends_cleanly_however_it_ends() {
    need_root();
    let before = machine();
    for name in ["TERM", "INT", "HUP", "KILL"] {
        let (mut child, inside) = sleeping_lab();
        signal(child.id() as i32, name);
        let status = child.wait().unwrap();
        assert!(!status.success(), "{name}: {status}");
        all_end(&inside);
        assert_eq!(machine(), before, "after SIG{name}");
    }
    // Ctrl-C: the terminal signals the whole group.
    let (mut child, inside) = sleeping_lab();
    signal(-(child.id() as i32), "INT");
    assert!(!child.wait().unwrap().success());
    all_end(&inside);
    // Somebody kills the inner process.
    let (mut child, inside) = sleeping_lab();
    signal(i32::try_from(*inside.first().unwrap()).unwrap(), "KILL");
    assert_eq!(child.wait().unwrap().code(), Some(125));
    all_end(&inside);
    assert_eq!(machine(), before);
}

#[test]
fn a_node_is_a_machine_of_its_own() {
    need_root();
    let script = "
        hostname
        ls /sys/class/net | tr '\\n' ' '; echo
        getent ahosts server | head -1
        cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_no_metrics_save
        echo 'net.x = 1' > /etc/sysctl.d/99-lab-test.conf && ls /etc/sysctl.d
        pwd
        plumb ping fe80::2%lan --count 1 --json
    ";
    let output = plumb(&["lab", "run", "home-cable", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("client"));
    assert_eq!(lines.next(), Some("lan lo "));
    assert!(
        lines
            .next()
            .is_some_and(|l| l.starts_with("10.0.2.2 ") && l.ends_with("STREAM server")),
        "{text}"
    );
    assert_eq!(lines.next(), Some("4096\t131072\t6291456"));
    assert_eq!(lines.next(), Some("1"));
    assert_eq!(lines.next(), Some("99-lab-test.conf"), "{text}");
    assert_eq!(lines.next(), std::env::current_dir().unwrap().to_str());
    let router = Run::from_json(lines.next().unwrap()).unwrap();
    assert_eq!(
        router.target.unwrap().address.as_deref(),
        Some("fe80::2"),
        "{text}"
    );
    assert!(!Path::new("/etc/sysctl.d/99-lab-test.conf").exists());
}

#[test]
fn cells_can_be_changed_and_added_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats.json");
    let script = "
        plumb lab set line.up.delay delay=40ms
        plumb lab set line.down.delay delay=40ms
        plumb lab set wan.up.shaper rate=19mbit queue=fq_codel framing=docsis
        plumb ping server --count 5 --json
        plumb lab set wan.up.shaper rate=1mbit
        plumb lab set wan.up.shaper colour=red; echo status $?
        plumb lab set wan.up.nothing rate=1mbit; echo status $?
        plumb lab set nowhere.up.shaper rate=1mbit; echo status $?
        plumb lab stats
    ";
    let output = plumb(&[
        "lab",
        "run",
        "--virtual",
        "home-cable",
        "--stats",
        stats.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
    ]);
    let (text, errors) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{errors}");
    assert!(
        text.contains("wan.up.shaper added") && text.contains("wan.up.shaper set"),
        "{text}"
    );
    assert_eq!(text.matches("status 125").count(), 3, "{text}{errors}");
    for word in ["colour", "rate", "nothing", "nowhere", "wan, line"] {
        assert!(errors.contains(word), "{word}: {errors}");
    }
    let run = text
        .lines()
        .find(|line| line.starts_with("{\"schema\":\"plumb.run/2\""))
        .expect("a Run");
    let run: serde_json::Value = serde_json::from_str(run).unwrap();
    let rtt = run
        .pointer("/measurements/0/result/rtt_s/p50")
        .and_then(serde_json::Value::as_f64)
        .unwrap();
    assert!((0.080..0.085).contains(&rtt), "{rtt}");
    assert_eq!(
        run.pointer("/local/lab/scenario").and_then(|s| s.as_str()),
        Some("home-cable")
    );
    assert!(
        text.contains("line.up.delay set: delay 9ms → 40ms"),
        "{text}"
    );
    // The Run tells what was changed before it, the statistics all of it.
    let mark = run.pointer("/local/lab").unwrap();
    let changed = |change: &LabChange| change.setting.clone();
    let changes: Vec<LabChange> = serde_json::from_value(mark["changes"].clone()).unwrap();
    let settings: Vec<String> = changes.iter().map(changed).collect();
    assert_eq!(
        settings,
        [
            "line.up.delay.delay",
            "line.down.delay.delay",
            "wan.up.shaper.framing",
            "wan.up.shaper.queue",
            "wan.up.shaper.rate"
        ]
    );
    assert_eq!(changes[0].before.as_deref(), Some("9ms"));
    assert_eq!(changes[0].after, "40ms");
    assert_eq!(changes[4].before, None);
    let began = run["started"].as_str().unwrap();
    // To the millisecond, which is the same in virtual time.
    let before = |change: &LabChange| change.at[..23] <= began[..23];
    assert!(changes.iter().all(before));

    let stats: LabStats = serde_json::from_str(&std::fs::read_to_string(&stats).unwrap()).unwrap();
    let last = stats.changes.last().unwrap();
    assert_eq!(
        (last.setting.as_str(), last.after.as_str()),
        ("wan.up.shaper.rate", "1000000")
    );
    let wan = &stats.links["wan"][&plumb_model::direction::OneDirection::Up];
    let shaper = &wan.chain.cells["shaper"];
    assert_eq!(
        shaper.offered.packets, shaper.delivered.packets,
        "no packet was lost: {shaper:?}"
    );
    assert_eq!(
        wan.probes.iter().filter(|p| p.left.is_some()).count(),
        5,
        "five probes crossed: {:?}",
        wan.probes
    );
    assert!(text.contains("line.up:"), "{text}");
}

#[test]
fn lists_and_shows_its_scenarios() {
    let output = plumb(&["lab", "list"]);
    let text = stdout(&output);
    for name in [
        "home-cable",
        "home-cable-managed",
        "fibre",
        "long-fat-sndbuf",
        "long-fat-rcvbuf",
    ] {
        assert!(text.contains(name), "{text}");
        assert!(stdout(&plumb(&["lab", "show", name])).contains(&format!("name = \"{name}\"")));
    }
    let list: serde_json::Value =
        serde_json::from_slice(&plumb(&["lab", "list", "--json"]).stdout).unwrap();
    assert_eq!(list["schema"], "plumb.lab-list/1");
    for scenario in list["scenarios"].as_array().unwrap() {
        for field in ["name", "summary", "about", "source"] {
            assert_ne!(scenario[field].as_str().unwrap(), "", "{scenario}");
        }
    }
}

/// Those of an interface are there only when the link is.
#[test]
fn variables_of_a_nodes_interfaces_can_be_set() {
    let mut network = Network::line("", "");
    network.sysctl("client", "net.ipv4.conf.line.rp_filter", "2");
    network.sysctl("client", "net.ipv4.neigh.line.gc_stale_time", "77");
    let script =
        "cat /proc/sys/net/ipv4/conf/line/rp_filter /proc/sys/net/ipv4/neigh/line/gc_stale_time";
    assert_eq!(network.script(script).0, "2\n77\n");
}
