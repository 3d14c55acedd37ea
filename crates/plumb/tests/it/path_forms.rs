//! `plumb path` in the forms of mtr and traceroute, and with their flags, on the loopback.

use crate::common::live::Terminal;
use crate::common::{PLUMB, plumb, stderr, stdout, words};

fn path(arguments: &str) -> String {
    let output = plumb(&words(arguments));
    assert!(output.status.success(), "{arguments}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn the_usual_flags_of_mtr_are_taken_and_its_report_names_this_host() {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let report = path("path -rwc 2 127.0.0.1");
    assert!(
        report.contains(&format!("HOST: {}", name.trim())),
        "{report}"
    );
    let report = path("path -rwbzc 2 127.0.0.1");
    assert!(report.contains("1.|-- AS???    "), "{report}");
    assert!(report.contains("127.0.0.1"), "{report}");
    let json: serde_json::Value =
        serde_json::from_str(&path("path -n -j -c 2 -Q 32 -s 100 127.0.0.1")).unwrap();
    let about = &json["report"]["mtr"];
    assert_eq!(about["src"], name.trim());
    assert_eq!(
        (&about["tos"], &about["psize"]),
        (&32.into(), &"100".into())
    );
}

/// As mtr 0.95 has it.
#[test]
fn mtrs_csv_has_the_networks_where_they_are_asked_for() {
    let csv = path("path -n -C -z -c 1 127.0.0.1");
    let (head, first) = csv.split_once('\n').unwrap();
    let usual =
        "Mtr_Version,Start_Time,Status,Host,Hop,Ip,Asn,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,";
    assert_eq!(head, usual);
    assert!(first.contains(",127.0.0.1,AS???,"), "{csv}");
    assert!(!path("path -n -C -c 1 127.0.0.1").contains("Asn"));
}

#[test]
fn a_port_goes_with_datagrams_or_connections_and_is_said_once() {
    for wrong in [
        "path -P 80 127.0.0.1",
        "path 127.0.0.1:80",
        "path --udp=53 -P 80 127.0.0.1",
        "path --tcp=80 127.0.0.1:80",
        "path -r --json 127.0.0.1",
        "path --dot --json 127.0.0.1",
        "port 127.0.0.1:80 80",
        "ping --ask x -c 1 127.0.0.1",
        "ping --port 7 --protocol icmp -c 1 127.0.0.1",
        "ping --pps 5 -c 1 127.0.0.1",
        "ping -D -v -c 1 127.0.0.1 127.0.0.2",
    ] {
        let output = plumb(&words(wrong));
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong}: {}",
            stderr(&output)
        );
    }
    // Nobody listens there, and says so.
    for right in ["path --tcp 127.0.0.1:9", "path -T -P 9 127.0.0.1"] {
        let run = path(&format!("{right} -n -c 1 --json"));
        assert!(
            run.contains("\"protocol\":\"tcp\"") && run.contains("9"),
            "{run}"
        );
    }
    let many = path("ping -v --json -c 1 127.0.0.1 127.0.0.2");
    assert!(many.starts_with('{'), "{many}");
}

#[test]
fn mtrs_bit_pattern_and_bounds_are_taken_and_told() {
    let pattern = |options: &str| {
        let text = path(&format!("path -n -j -c 2 {options} 127.0.0.1"));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["report"]["mtr"]["bitpattern"].clone()
    };
    assert_eq!(pattern("-4"), "0x00");
    assert_eq!(pattern("-B 255 -U 3 -G 1 -Z 2 -i 0.1"), "0xFF");
    assert_eq!(pattern("--udp --bitpattern 171 --gracetime 1s"), "0xAB");
    for wrong in ["-B 256", "-U 0"] {
        let output = plumb(&words(&format!("path {wrong} 127.0.0.1")));
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn traceroutes_form_has_its_head_and_addresses_once() {
    let text = path("path -n --traceroute -s 60 127.0.0.1");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "traceroute to 127.0.0.1 (127.0.0.1), 30 hops max, 60 byte packets"
    );
    assert_eq!(lines[1].matches("127.0.0.1").count(), 1, "{text}");
}

#[test]
fn a_trace_that_went_on_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (run, svg, page) = (file("run.json"), file("path.svg"), file("path.html"));
    path(&format!("path -n -c 5 -o {run} 127.0.0.1"));
    path(&format!("report {run} --svg {svg}"));
    path(&format!("report {run} -o {page}"));
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(
        drawn.contains(">hop 1<") && drawn.contains("<path"),
        "{drawn}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Hops of the path"));
}

#[test]
fn the_live_view_takes_the_keys_of_mtr() {
    let line = format!(
        "stty cols 80 rows 24; TERM=xterm {PLUMB} path 127.0.0.1 --continuous -n -i 0.5 --one-way"
    );
    let mut terminal = Terminal::open(&line);
    let columns = terminal.shows("StDev");
    assert!(columns.contains("Loss%"), "{columns}");
    terminal.shows("cycle 3 (now)");
    terminal.types("d");
    terminal.shows("unanswered");
    terminal.types("dp");
    terminal.shows("(paused)");
    // A trace of the other kind begins, and is what is shown at the end.
    terminal.types("pu");
    terminal.shows("cycle 1 (now)");
    terminal.types("q");
    let result = terminal.shows("It took");
    assert!(result.contains("by UDP port"), "{result}");
}
