//! Laboratories in the background: found, steered, ended, and nothing left of them.
//!
//! Every test has a network of its own, so that it finds no laboratories but its own.

use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Command;

use crate::common::live::{Lab, Terminal, alone, done, pair, refused, running, until};
use crate::common::machine::{all_end, descendants, signal};
use crate::common::{PLUMB, plumb, stderr, stdout};
use plumb_lab::stats::LabStats;
use plumb_model::direction::OneDirection;

#[test]
fn goes_up_is_used_and_goes_down() {
    alone(|| {
        let lab = Lab::up(&["home-cable", "--seed", "42"]);
        let [listed] = &running()[..] else {
            panic!("one is running")
        };
        assert_eq!(listed["scenario"], "home-cable");
        assert_eq!(listed["seed"], 42);
        assert_eq!(listed["nodes"][0], "client");
        assert!(stdout(&plumb(&["lab", "list"])).contains("Running\n  home-cable"));
        // Its service answered before `up` returned, so it answers at once.
        let run = done(&[
            "lab",
            "shell",
            "client",
            "--",
            "plumb",
            "ping",
            "server",
            "--protocol",
            "udp",
            "--count",
            "3",
            "--json",
        ]);
        let run: serde_json::Value = serde_json::from_str(&run).unwrap();
        assert_eq!(run["measurements"][0]["result"]["received"], 3, "{run}");
        assert_eq!(run["local"]["lab"]["seed"], 42);
        assert_eq!(run["local"]["lab"]["backend"], "emulated");
        assert!(done(&["lab", "set", "line.up.delay", "delay=40ms"]).contains("line.up.delay set"));
        assert!(done(&["lab", "stats"]).contains("line.up: late by"));

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stats.json");
        // What cannot be saved does not end it.
        refused(
            &["lab", "down", "--stats", "/no/such/folder/stats.json"],
            &["/no/such/folder"],
        );
        assert_eq!(running().len(), 1);
        lab.down(&["--stats", file.to_str().unwrap()]);
        let stats: LabStats =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let line = &stats.links["line"][&OneDirection::Up];
        assert_eq!(
            line.chain.cells["delay"].delivered.packets,
            3 + 1,
            "and a hello"
        );
        assert!(running().is_empty());
        refused(&["lab", "down"], &["no lab is running", "plumb lab up"]);
    });
}

#[test]
fn two_at_once_are_told_apart() {
    alone(|| {
        let first = Lab::up(&["home-cable"]);
        refused(
            &["lab", "up", "home-cable"],
            &["'home-cable'", "already", "--name"],
        );
        let second = Lab::up(&["fibre", "--name", "other.line_2"]);
        refused(&["lab", "stats"], &["home-cable, other.line_2"]);
        refused(
            &["lab", "stats", "--lab", "home-cabel"],
            &["'home-cabel'", "did you mean 'home-cable'"],
        );
        for name in ["", "a b", "../x", "ä", &"x".repeat(65)] {
            refused(
                &["lab", "up", "fibre", "--name", name],
                &["--name", "letters"],
            );
        }
        // Each carries its own packets, and each is set by itself.
        let carried = |lab: &str| {
            let stats = done(&["lab", "stats", "--lab", lab, "--json"]);
            let stats: LabStats = serde_json::from_str(&stats).unwrap();
            let up = &stats.links["line"][&OneDirection::Up];
            up.chain.cells["delay"].delivered.packets
        };
        let before = carried("home-cable");
        let ping = ["--", "plumb", "ping", "server", "--count", "3"];
        done(
            &[
                &["lab", "shell", "client", "--lab", "other.line_2"],
                &ping[..],
            ]
            .concat(),
        );
        assert!(carried("other.line_2") >= 3);
        assert_eq!(carried("home-cable"), before);
        let delay = |lab: &str| done(&["lab", "set", "--lab", lab, "line.up.delay", "delay=100ms"]);
        assert!(delay("other.line_2").contains("2ms → 100ms"));
        assert!(delay("home-cable").contains("9ms → 100ms"));
        first.down(&[]);
        done(&["lab", "stats"]);
        second.down(&[]);
    });
}

#[test]
fn nonsense_changes_nothing() {
    alone(|| {
        let lab = Lab::up(&["home-cable"]);
        for (arguments, words) in [
            (&["line.up.shaper", "rate=0"][..], &["rate of 0"][..]),
            (
                &["line.up.shaper", "rat=1mbit"],
                &["rat", "did you mean 'rate'"],
            ),
            (
                &["line.up.shapr", "rate=1mbit"],
                &["shapr", "did you mean 'shaper'"],
            ),
            (
                &["lime.up.shaper", "rate=1mbit"],
                &["lime", "did you mean 'line'"],
            ),
            (&["line.upp.shaper", "rate=1mbit"], &["line.upp", "LINK.up"]),
            (&["line.up", "rate=1mbit"], &["line.up", "LINK.up.CELL"]),
            // All or nothing: with the first alone, a ping would take a second.
            (
                &["line.up.shaper", "rate=1kbit", "limit=nonsense"],
                &["nonsense"],
            ),
            (
                &["line.up.shaper", "rate=1kbit", "queue=codell"],
                &["codell", "did you mean 'codel'"],
            ),
        ] {
            refused(&[&["lab", "set"], arguments].concat(), words);
        }
        for (values, words) in [
            (&["rate"][..], "'rate' is not KEY=VALUE"),
            (
                &["rate=1kbit", "rate=2mbit"],
                "rate is given twice, as 1kbit and as 2mbit",
            ),
        ] {
            let output = plumb(&[&["lab", "set", "line.up.shaper"], values].concat());
            assert_eq!(output.status.code(), Some(2), "{values:?}");
            assert!(stderr(&output).contains(words), "{}", stderr(&output));
        }
        refused(
            &["lab", "capture", "lien", "modem"],
            &["'lien'", "did you mean 'line'"],
        );
        refused(
            &["lab", "capture", "line", "client"],
            &["'client' is not at line, which joins"],
        );
        let set = done(&["lab", "set", "line.up.shaper", "rate=1mbit"]);
        assert!(set.contains("rate 20000000 → 1000000"), "{set}");
        lab.down(&[]);
    });
}

/// What `plumb lab apply` sends: the second shaper cannot be, so the first is not put either.
#[test]
fn what_a_run_asks_of_the_router_is_done_whole_or_not_at_all() {
    alone(|| {
        let lab = Lab::up(&["home-cable"]);
        let shape = |[up, down]: [&str; 2]| {
            let shaper = |direction: &str, qdisc: &str| serde_json::json!({"direction": direction, "rate_bps": 19_000_000, "overhead_bytes": 18, "mpu_bytes": 64, "qdisc": qdisc});
            let shapers = [shaper("up", up), shaper("down", down)];
            let request = serde_json::json!({"op": "shape", "shapers": shapers});
            let address = SocketAddr::from_abstract_name("plumb-lab/home-cable").unwrap();
            let mut stream = UnixStream::connect_addr(&address).unwrap();
            writeln!(stream, "{request}").unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            answer
        };
        let shapers = || {
            let stats: LabStats = serde_json::from_str(&done(&["lab", "stats", "--json"])).unwrap();
            let ways = stats.links["wan"].values();
            ways.filter(|way| way.chain.cells.contains_key("shaper"))
                .count()
        };
        let refused = shape(["fq_codel", "sfq"]);
        assert!(
            refused.contains("wan.down.shaper: ") && refused.contains("sfq"),
            "{refused}"
        );
        assert_eq!(shapers(), 0);
        let put = shape(["fq_codel", "cake"]);
        assert!(
            put.contains("wan.up.shaper: 19.0 Mbit/s with fq_codel")
                && put.contains("wan.down.shaper: 19.0 Mbit/s with cake"),
            "{put}"
        );
        assert_eq!(shapers(), 2);
        // And when they are there: the first still has the flows of FQ-CoDel.
        let refused = shape(["codel", "sfq"]);
        assert!(refused.contains("sfq"), "{refused}");
        assert!(done(&["lab", "set", "wan.up.shaper", "flows=64"]).contains("set"));
        lab.down(&[]);
    });
}

#[test]
fn a_client_that_talks_nonsense_or_nothing_harms_nobody() {
    alone(|| {
        let lab = Lab::up(&["fibre"]);
        let connect = || {
            let address = SocketAddr::from_abstract_name("plumb-lab/fibre").unwrap();
            UnixStream::connect_addr(&address).unwrap()
        };
        for nonsense in [
            &b"\n"[..],
            b"{\"op\":\"fly\"}\n",
            b"\xff\x00\n",
            &[b'x'; 70_000],
        ] {
            let mut stream = connect();
            // It may be refused before all is written.
            let _ = stream.write_all(nonsense);
            let mut answer = String::new();
            let _ = BufReader::new(stream).read_line(&mut answer);
            assert!(
                answer.is_empty() || answer.contains("not a request"),
                "{answer}"
            );
        }
        let silent: Vec<UnixStream> = (0..64).map(|_| connect()).collect();
        until("it is busy", || {
            let output = plumb(&["lab", "stats"]);
            stderr(&output).contains("too many ask it at once")
        });
        drop(silent);
        until("it answers again", || {
            plumb(&["lab", "stats"]).status.success()
        });
        lab.down(&[]);
    });
}

#[test]
fn killed_it_leaves_nothing() {
    alone(|| {
        for name in ["KILL", "TERM", "INT", "HUP"] {
            let lab = Lab::up(&["home-cable"]);
            let processes = lab.processes();
            assert!(processes.len() >= 2, "itself and a service: {processes:?}");
            signal(lab.pid as i32, name);
            all_end(&processes);
            assert!(running().is_empty());
        }
    });
}

#[test]
fn outlives_its_terminal_but_not_its_starter_before_it_is_ready() {
    alone(|| {
        let mut terminal = Terminal::open(&format!("{PLUMB} lab up fibre"));
        terminal.shows("plumb lab down fibre");
        assert!(terminal.child.wait().unwrap().success());
        drop(terminal);
        done(&["lab", "shell", "client", "--", "true"]);
        done(&["lab", "down"]);

        let mut never_ready = pair();
        let file = never_ready.service("server", &["sleep", "1000"], 1).file();
        for name in ["INT", "KILL"] {
            let mut starter = Command::new(PLUMB)
                .args(["lab", "up", file.path().to_str().unwrap()])
                .spawn()
                .unwrap();
            until("the service runs", || descendants(starter.id()).len() == 2);
            let processes = descendants(starter.id());
            signal(starter.id() as i32, name);
            starter.wait().unwrap();
            all_end(&processes);
        }
    });
}

#[test]
fn a_service_that_ends_is_told() {
    alone(|| {
        let ends = ["sh", "-c", "echo no luck >&2; exit 3"];
        let file = pair().service("server", &ends, 1).file();
        refused(
            &["lab", "up", file.path().to_str().unwrap()],
            &["on server", "ended at once (exit status 3): no luck"],
        );
        assert!(running().is_empty());

        let lab = Lab::up(&["fibre"]);
        let services = descendants(lab.pid);
        let [service] = &services[..] else {
            panic!("one service: {services:?}")
        };
        signal(*service as i32, "KILL");
        until("the note is there", || {
            let said = done(&["lab", "stats"]);
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            said.contains(
                "'plumb serve --quiet' on server ended while the lab was running (SIGKILL)",
            )
        });
        lab.down(&[]);
    });
}

#[test]
fn a_run_answers_for_its_own_time_only() {
    alone(|| {
        let file = pair().file();
        let lab = Lab::up(&[file.path().to_str().unwrap()]);
        // A packet for a device that is down cannot be written: that is an overrun for good.
        done(&[
            "lab", "shell", "server", "--", "ip", "link", "set", "wire", "down",
        ]);
        plumb(&[
            "lab", "shell", "client", "--", "ping", "-c", "1", "-W", "1", "server",
        ]);
        done(&[
            "lab", "shell", "server", "--", "ip", "link", "set", "wire", "up",
        ]);
        let stats: LabStats = serde_json::from_str(&done(&["lab", "stats", "--json"])).unwrap();
        let up = &stats.links["wire"][&OneDirection::Up].driver;
        assert!(up.overrun && up.write_errors == 1, "{up:?}");

        let run = done(&[
            "lab", "shell", "client", "--", "plumb", "ping", "server", "--count", "3", "--json",
        ]);
        let run: serde_json::Value = serde_json::from_str(&run).unwrap();
        let mark = &run["local"]["lab"];
        assert_eq!(mark["overrun"], false, "{mark}");
        assert_eq!(mark["lateness_s"]["count"], 3, "{mark}");
        lab.down(&[]);
    });
}
