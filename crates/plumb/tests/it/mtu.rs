//! `plumb mtu` on paths whose sizes are known.

use std::fmt::Write as _;

use crate::common::network::Network;
use crate::common::{in_lab, measured_in, plumb, stderr, words};
use plumb_model::finding::Cause;
use plumb_model::results::Outcome;
use plumb_model::results::mtu::{MtuMethod, MtuResult};
use plumb_model::run::Run;

fn of(run: &Run) -> &MtuResult {
    match &run.measurements[0].outcome {
        Outcome::Mtu(mtu) => mtu,
        other => panic!("{other:?}"),
    }
}

/// A line of a chain: what it takes, and whether its router tells.
type Line = (u32, bool);

/// A path to measure: its lines behind the first router, and with which options.
struct Case {
    lines: Vec<Line>,
    options: &'static str,
}

impl Case {
    fn of(lines: &[Line], options: &'static str) -> Self {
        Self {
            lines: lines.to_vec(),
            options,
        }
    }
}

/// Chains of routers from one client, each to a server of its own: `s0`, `s1` …
fn network(cases: &[Case]) -> Network {
    let mut network = Network::default();
    network.node("client", "forward = false");
    for (number, case) in cases.iter().enumerate() {
        let routers = case.lines.len();
        let name = |node: usize| match node {
            0 => "client".to_owned(),
            last if last > routers => format!("s{number}"),
            router => format!("r{number}-{router}"),
        };
        for node in 1..=routers + 1 {
            network.node(&name(node), &format!("forward = {}", node <= routers));
        }
        network.link(&format!("n{number}"), ["client", &name(1)], "");
        for (index, (bytes, tells)) in case.lines.iter().enumerate() {
            // What takes everything needs no link that plumb carries.
            let cells = match bytes {
                1500 => String::new(),
                _ => format!(
                    "up = [{{ type = \"mtu\", bytes = {bytes}, icmp = {tells}, fragment = false }}]"
                ),
            };
            network.link(
                &format!("l{number}-{index}"),
                [&name(index + 1), &name(index + 2)],
                &cells,
            );
        }
    }
    network
}

/// Runs a script on the client of a network, and takes the Runs that it leaves as `0`, `1` … in `$d`.
fn measured(network: &Network, script: &str, count: usize) -> Vec<Run> {
    let script = format!(
        "d=$(mktemp -d)\n{script}\nfor n in $(seq 0 {}); do cat $d/$n; done; rm -r $d",
        count - 1
    );
    let (text, _) = network.script(&script);
    let runs: Vec<Run> = text
        .lines()
        .map(|line| Run::from_json(line).expect(line))
        .collect();
    assert_eq!(runs.len(), count);
    runs
}

/// What plumb says of a chain against what it is.
fn holds(case: &Case, run: &Run) {
    let Case { lines, options } = case;
    let mtu = of(run);
    let mut least = 1500;
    let mut sizes = vec![Some(1500)];
    let mut hole = None;
    for (hop, (bytes, tells)) in (1..).zip(lines) {
        if *bytes < least && !tells && hole.is_none() {
            hole = Some(hop);
        }
        least = least.min(*bytes);
        sizes.push(Some(least));
    }
    let found: Vec<_> = mtu.hops.iter().map(|hop| hop.mtu_bytes).collect();
    assert_eq!(found, sizes, "{lines:?} {options:?} {mtu:?}");
    assert_eq!(mtu.path_mtu_bytes, Some(least), "{lines:?} {options:?}");
    assert_eq!(mtu.black_hole_after, hole, "{lines:?} {options:?} {mtu:?}");
    let causes: Vec<_> = run.findings.iter().map(|f| f.cause).collect();
    assert_eq!(causes.contains(&Cause::PmtudBlackHole), hole.is_some());
}

/// Chains drawn by a generator that is the same every time (Knuth's MMIX): up to four routers, narrow
/// lines and wide ones, told of and not.
fn drawn(count: usize) -> Vec<Case> {
    let mut state = 7u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    (0..count)
        .map(|number| {
            let options = ["", "--no-icmp", "-6", "--protocol udp"][number % 4];
            let least = if options == "-6" { 1280 } else { 600 };
            let line = |below: &mut dyn FnMut(u64) -> u64| match below(3) {
                0 => (1500, true),
                _ => (least + below(u64::from(1500 - least)) as u32, below(3) > 0),
            };
            let lines = (0..=below(4)).map(|_| line(&mut below)).collect();
            Case { lines, options }
        })
        .collect()
}

#[test]
fn varied_paths_are_found_as_they_are() {
    let mut cases = vec![
        Case::of(&[(1500, true)], ""),
        Case::of(
            &[(1500, true), (1492, true), (1500, true), (1400, true)],
            "",
        ),
        Case::of(&[(1492, true), (1280, false), (1300, true)], ""),
        Case::of(
            &[(1450, false), (1500, true), (1420, true), (1333, false)],
            "",
        ),
        Case::of(&[(1400, true), (1399, true), (1398, true)], "--no-icmp"),
        Case::of(&[(1500, true), (1431, false)], "--protocol udp"),
        Case::of(&[(1480, true), (1300, true)], "-6"),
        Case::of(&[(1500, true), (1300, false), (1281, true)], "-6"),
        Case::of(&[(700, true)], "--no-icmp -4"),
    ];
    cases.extend(drawn(12));
    // They wait more than they work: six at once.
    let mut script =
        "xargs -P 6 -L 1 bash -c 'plumb mtu s$1 ${@:2} -o '$d'/$1 >/dev/null' bash <<END\n"
            .to_owned();
    for (number, case) in cases.iter().enumerate() {
        // A blank at the end would make xargs(1) take the next line too.
        let line = format!("{number} {}", case.options);
        writeln!(script, "{}", line.trim_end()).unwrap();
    }
    script.push_str("END\n");
    let runs = measured(&network(&cases), &script, cases.len());
    for (case, run) in cases.iter().zip(&runs) {
        holds(case, run);
    }
}

/// Links whose interfaces send 9000 bytes, and one of them that loses what is above 4470 in silence.
#[test]
fn jumbo_paths_are_measured_on_links_that_carry_them() {
    let mut network = Network::default();
    network
        .node("client", "")
        .node("r1", "forward = true")
        .node("r2", "forward = true");
    network.node("s1", "").node("s2", "");
    network
        .link("near", ["client", "r1"], "mtu = 9000")
        .link("wide", ["r1", "s1"], "mtu = 9000");
    let hole =
        "mtu = 9000\nup = [{ type = \"mtu\", bytes = 4470, icmp = false, fragment = false }]";
    network
        .link("middle", ["r1", "r2"], hole)
        .link("far", ["r2", "s2"], "mtu = 9000")
        .serves("s1")
        .serves("s2");
    let script = "plumb mtu s1 -o $d/0 >/dev/null; plumb mtu s2 -o $d/1 >/dev/null";
    let runs = measured(&network, script, 2);
    let whole = of(&runs[0]);
    assert_eq!(
        (
            whole.path_mtu_bytes,
            whole.interface_mtu_bytes,
            whole.method
        ),
        (Some(9000), Some(9000), MtuMethod::Unlimited),
        "{whole:?}"
    );
    let holed = of(&runs[1]);
    assert_eq!(
        (holed.path_mtu_bytes, holed.black_hole_after),
        (Some(4470), Some(1)),
        "{holed:?}"
    );
    let sizes: Vec<_> = holed.hops.iter().map(|hop| hop.mtu_bytes).collect();
    assert_eq!(sizes, [Some(9000), Some(4470), Some(4470)]);
}

#[test]
fn what_is_known_at_ctrl_c_is_kept() {
    let cases = [Case::of(&[(1500, true), (1400, false)], "")];
    // Twenty tries of what is lost take far longer than this; who stands on the way is known at once.
    let script = "timeout --foreground --preserve-status -s INT 4 plumb mtu s0 --tries 20 -o $d/0 >/dev/null; test $? = 130";
    let run = &measured(&network(&cases), script, 1)[0];
    let mtu = of(run);
    assert!(mtu.partial && mtu.path_mtu_bytes.is_none(), "{mtu:?}");
    let sizes: Vec<_> = mtu.hops.iter().map(|hop| hop.mtu_bytes).collect();
    assert!(
        sizes.len() == 2 && sizes[1].is_none_or(|size| size == 1500),
        "{mtu:?}"
    );
    assert!(
        run.notes.iter().any(|note| note.contains("Stopped before")),
        "{:?}",
        run.notes
    );
}

#[test]
fn a_clamped_segment_size_is_told_with_its_hop() {
    let checked = measured_in("mtu-hops", &["mtu", "server"]);
    let mtu = of(&checked.run);
    let mss = mtu.mss.as_ref().unwrap();
    assert_eq!((mss.port, mss.sent_bytes), (7586, 1460));
    assert_eq!(
        (mss.clamped_after, mss.lowered_to_bytes),
        (Some(2), Some(1300))
    );
    assert_eq!(mss.answered_bytes, Some(1460));
    assert_eq!(
        (mtu.method, mtu.black_hole_after),
        (MtuMethod::Mixed, Some(2))
    );
    let causes: Vec<_> = checked.run.findings.iter().map(|f| f.cause).collect();
    assert_eq!(causes, [Cause::PmtudBlackHole, Cause::MssClamped]);
}

#[test]
fn what_cannot_be_measured_is_said() {
    let says = |arguments: &[&str], status: i32, expected: &str| {
        let output = plumb(arguments);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    };
    says(&["mtu", "224.0.0.1"], 1, "no single host");
    says(&["mtu", "no.such.host.invalid"], 1, "no.such.host.invalid");
    says(&["mtu", "localhost", "--max", "60"], 2, "60");
    // The routers answer, the far end does not: what was learnt is a result.
    let gone = words("plumb mtu 10.0.3.77 -W 100ms --tries 1 -m 4");
    let output = in_lab("mtu-hops", &[], &gone);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(crate::common::stdout(&output).contains("did not answer"));
}

/// Nobody is there: that is said, and by whom, and no size is. What `--max` lets through is a bound.
#[test]
fn nobody_there_is_a_failure_and_a_bound_is_marked() {
    let mut network = Network::default();
    network
        .node("a", "forward = false")
        .node("r", "forward = true")
        .node("b", "");
    network.link("l0", ["a", "r"], "");
    network.link("l1", ["r", "b"], "");
    let (text, _) = network.script(
        "ip route add 10.99.0.9 via 10.0.0.2
         plumb mtu 10.99.0.9 2>&1; echo status $?
         plumb mtu --max 100 b
         plumb mtu --max 100 b --json | tr -d '\\n'",
    );
    assert!(
        text.contains("router 10.0.0.2 says that it has no route there (!N)"),
        "{text}"
    );
    assert!(text.contains("status 1"), "{text}");
    assert!(!text.contains("black hole"), "{text}");
    assert!(
        text.contains("Packets of up to at least 100 bytes reach"),
        "{text}"
    );
    let json = text.lines().last().unwrap();
    let run = Run::from_json(json).unwrap();
    assert_eq!(of(&run).path_mtu_bytes, Some(100));
    assert!(of(&run).path_mtu_at_least);
}
