//! `plumb mtu` on paths whose sizes are known.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::network::Network;
use common::{Checked, in_lab, measured_in, plumb, stderr, words};
use plumb_model::finding::Cause;
use plumb_model::results::Outcome;
use plumb_model::results::mtu::{MtuMethod, MtuResult};

fn result(checked: &Checked) -> &MtuResult {
    match &checked.run.measurements[0].outcome {
        Outcome::Mtu(mtu) => mtu,
        other => panic!("{other:?}"),
    }
}

/// A line of a chain: what it takes, and whether its router tells.
type Line = (u32, bool);

/// A chain of routers with these lines between them, the first behind the first router.
fn chain(lines: &[Line]) -> Network {
    let mut chain = Network::default();
    let routers = lines.len();
    let name = |node: usize| match node {
        0 => "client".to_owned(),
        last if last > routers => "server".to_owned(),
        router => format!("r{router}"),
    };
    for node in 0..=routers + 1 {
        let forward = (1..=routers).contains(&node);
        chain.node(&name(node), &format!("forward = {forward}"));
    }
    chain.link("near", ["client", "r1"], "");
    for (index, (bytes, tells)) in lines.iter().enumerate() {
        chain.link(
            &format!("l{index}"),
            [&name(index + 1), &name(index + 2)],
            &format!(
                "up = [{{ type = \"mtu\", bytes = {bytes}, icmp = {tells}, fragment = false }}, {{ type = \"delay\", delay = \"1ms\" }}]\n\
                 down = [{{ type = \"delay\", delay = \"1ms\" }}]"
            ),
        );
    }
    chain
}

/// What plumb says of a chain against what it is.
fn holds(lines: &[Line], options: &[&str]) {
    let checked = chain(lines).measured(&[&["mtu", "server"], options].concat());
    let mtu = result(&checked);
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
    let causes: Vec<_> = checked.run.findings.iter().map(|f| f.cause).collect();
    assert_eq!(causes.contains(&Cause::PmtudBlackHole), hole.is_some());
}

#[test]
fn varied_paths_are_found_as_they_are() {
    let cases: [(&[Line], &[&str]); 9] = [
        (&[(1500, true)], &[]),
        (
            &[(1500, true), (1492, true), (1500, true), (1400, true)],
            &[],
        ),
        (&[(1492, true), (1280, false), (1300, true)], &[]),
        (
            &[(1450, false), (1500, true), (1420, true), (1333, false)],
            &[],
        ),
        (&[(1400, true), (1399, true), (1398, true)], &["--no-icmp"]),
        (&[(1500, true), (1431, false)], &["--protocol", "udp"]),
        (&[(1480, true), (1300, true)], &["-6"]),
        (&[(1500, true), (1300, false), (1281, true)], &["-6"]),
        (&[(700, true)], &["--no-icmp", "-4"]),
    ];
    // They wait more than they work: three at once.
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((lines, options)) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    holds(lines, options);
                }
            });
        }
    });
}

#[test]
fn a_clamped_segment_size_is_told_with_its_hop() {
    let checked = measured_in("mtu-hops", &["mtu", "server"]);
    let mtu = result(&checked);
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
    let gone = words("plumb mtu 10.0.3.77 -W 100ms -q 1 -m 4");
    let output = in_lab("mtu-hops", &[], &gone);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(common::stdout(&output).contains("did not answer"));
}
