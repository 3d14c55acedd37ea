//! plumb beside tracepath and fping, the programs of other people, on the same lab path: each of whose
//! figures is known to plumb too. (`path.rs` has mtr and traceroute.)

use crate::common::network::Network;
use plumb_model::results::Outcome;
use plumb_model::results::mtu::MtuResult;
use plumb_model::results::path::{PathHop, PathResult};
use plumb_model::results::sweep::PingsResult;
use plumb_model::run::Run;

/// Round trips of two programs, one after the other on a busy machine, are no further apart.
const APART_MS: f64 = 5.0;

fn outcome(line: &str) -> Outcome {
    let run = Run::from_json(line).expect(line);
    run.measurements.into_iter().next().unwrap().outcome
}

/// A line of tracepath: `2:  10.0.1.2   0.052ms asymm  3`.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    ttl: u8,
    address: String,
    pmtu: Option<u32>,
    asymmetry: Option<u8>,
}

/// The number behind a word.
fn behind<T: std::str::FromStr>(words: &[&str], word: &str) -> Option<T> {
    let at = words.iter().position(|w| *w == word)?;
    words.get(at + 1)?.parse().ok()
}

/// The last line of each hop, and the path MTU, hops and hops back of the `Resume`.
fn tracepath(text: &str) -> (Vec<Step>, (u32, u8, u8)) {
    let mut steps: Vec<Step> = Vec::new();
    let mut resume = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "Resume:" {
            resume = Some((
                behind(&words, "pmtu").expect(line),
                behind(&words, "hops").expect(line),
                behind(&words, "back").expect(line),
            ));
            continue;
        }
        // `1?:` is what this host knows without asking.
        let Ok(ttl) = words[0].trim_end_matches(':').parse() else {
            continue;
        };
        let step = Step {
            ttl,
            address: words[1].to_owned(),
            pmtu: behind(&words, "pmtu"),
            asymmetry: behind(&words, "asymm"),
        };
        match steps.last_mut().filter(|last| last.ttl == ttl) {
            Some(last) => {
                *last = Step {
                    pmtu: step.pmtu.or(last.pmtu),
                    ..step
                }
            }
            None => steps.push(step),
        }
    }
    (steps, resume.expect(text))
}

#[test]
fn tracepath_sees_the_same_hops_size_and_asymmetry() {
    let mut net = Network::default();
    net.node("a", "forward = false").node("b", "");
    for router in ["r1", "r2", "q1", "q2"] {
        net.node(router, "forward = true\n");
    }
    let narrow = "up = [{ type = \"mtu\", bytes = 1300, icmp = true, fragment = false }]";
    net.link("l0", ["a", "r1"], "")
        .link("l1", ["r1", "r2"], narrow)
        .link("l2", ["r2", "b"], "")
        .link("l3", ["r2", "q1"], "")
        .link("l4", ["q1", "q2"], "")
        .link("l5", ["q2", "r1"], "");
    // Back by two routers more, from the second hop on.
    net.add("[[route]]\nnode = \"r2\"\nto = \"a\"\nvia = \"q1\"");
    net.add("[[route]]\nnode = \"q1\"\nto = \"a\"\nvia = \"q2\"");
    net.without_ipv6();
    let (seen, _) = net.script(
        "plumb path -n --udp --one-way b --json
         plumb mtu b --json
         ip route flush cache
         tracepath -n b",
    );
    let lines: Vec<&str> = seen.lines().collect();
    let (Outcome::Path(path), Outcome::Mtu(mtu)) = (outcome(lines[0]), outcome(lines[1])) else {
        panic!("{seen}")
    };
    let (path, mtu): (PathResult, MtuResult) = (*path, *mtu);
    let (steps, (pmtu, hops, back)) = tracepath(&lines[2..].join("\n"));

    let theirs: Vec<(u8, Option<&str>)> = steps
        .iter()
        .map(|step| (step.ttl, Some(step.address.as_str())))
        .collect();
    let of_hop = |hop: &PathHop| (hop.ttl, hop.address.clone());
    let ours: Vec<(u8, Option<String>)> = path.hops.iter().map(of_hop).collect();
    let ours: Vec<(u8, Option<&str>)> = ours.iter().map(|(n, a)| (*n, a.as_deref())).collect();
    assert_eq!(theirs, ours, "{seen}");
    assert_eq!(theirs.len(), 3, "{seen}");

    // tracepath says how long the reverse path is where it is not as long as the forward path, and of the far end
    // when all is over.
    let mut theirs: Vec<u8> = steps
        .iter()
        .map(|step| step.asymmetry.unwrap_or(step.ttl))
        .collect();
    *theirs.last_mut().unwrap() = back;
    let ours: Vec<u8> = path.hops.iter().filter_map(|hop| hop.return_hops).collect();
    assert_eq!((ours.as_slice(), hops), (&[1, 4, 5][..], 3), "{seen}");
    assert_eq!(theirs, ours, "{seen}");

    assert_eq!((mtu.path_mtu_bytes, pmtu), (Some(1300), 1300), "{seen}");
    let first_narrow = mtu.hops.iter().find(|hop| hop.mtu_bytes == Some(1300));
    // The router before the narrow line says so, and the next probe goes no further than the hop behind it.
    let told = steps.iter().find(|step| step.pmtu == Some(1300));
    assert_eq!(
        first_narrow.map(|hop| hop.ttl),
        told.map(|step| step.ttl),
        "{seen}"
    );
}

/// What fping says of a target on its last line.
fn words_behind_colon(line: &str) -> Vec<&str> {
    let (_, rest) = line.split_once(" : ").expect(line);
    rest.split_whitespace().collect()
}

/// Its least, mean and greatest round trip in milliseconds.
fn min_avg_max(summary: &str) -> Vec<f64> {
    let (_, numbers) = summary.split_once("min/avg/max = ").expect(summary);
    numbers
        .split('/')
        .map(|number| number.parse().expect(summary))
        .collect()
}

#[test]
fn fping_counts_the_same_losses_and_round_trips() {
    let up = r#"{ type = "periodic_loss", every = 5, match = "icmp" }, { type = "delay", delay = "12ms" }"#;
    let mut net = Network::line(up, r#"{ type = "delay", delay = "8ms" }"#);
    net.without_ipv6();
    let (seen, stats) = net.script(
        "fping -c 20 -p 50 -t 400 -q 10.0.0.2 2>&1
         plumb ping --fping count -c 20 -i 50ms -W 400ms -q 10.0.0.2 2>&1
         fping -C 20 -p 50 -t 400 -q 10.0.0.2 2>&1
         plumb ping --fping times -c 20 -i 50ms -W 400ms -q 10.0.0.2 2>&1
         plumb ping --json -c 20 -i 50ms -W 400ms 10.0.0.2 10.0.0.1 2>/dev/null",
    );
    let lines: Vec<&str> = seen.lines().collect();
    let [theirs, ours, their_times, our_times, run] = lines.as_slice() else {
        panic!("{seen}")
    };
    // Counts to the letter: `10.0.0.2 : xmt/rcv/%loss = 20/16/20%`.
    let counts = |line: &str| line.split_once(", min").expect(line).0.to_owned();
    assert_eq!(counts(theirs), counts(ours), "{seen}");
    assert_eq!(counts(ours), "10.0.0.2 : xmt/rcv/%loss = 20/16/20%");
    for (theirs, ours) in min_avg_max(theirs)
        .into_iter()
        .zip(min_avg_max(ours))
        .take(2)
    {
        assert!((theirs - ours).abs() < APART_MS, "{seen}");
        assert!(ours >= 20.0, "{seen}");
    }
    // Which were lost, and what each took.
    let (theirs, ours) = (
        words_behind_colon(their_times),
        words_behind_colon(our_times),
    );
    let lost =
        |times: &[&str]| -> Vec<usize> { (0..times.len()).filter(|n| times[*n] == "-").collect() };
    assert_eq!((theirs.len(), ours.len()), (20, 20), "{seen}");
    assert_eq!(lost(&theirs), lost(&ours), "{seen}");
    assert_eq!(lost(&ours), [4, 9, 14, 19], "{seen}");
    let median = |times: &[&str]| -> f64 {
        let mut ms: Vec<f64> = times.iter().filter_map(|time| time.parse().ok()).collect();
        ms.sort_by(f64::total_cmp);
        ms[ms.len() / 2]
    };
    assert!((median(&theirs) - median(&ours)).abs() < APART_MS, "{seen}");
    // The Run says the same, and the link counted what all of them lost.
    let Outcome::Pings(pings) = outcome(run) else {
        panic!("{run}")
    };
    let pings: PingsResult = *pings;
    let far = &pings.targets[0];
    assert_eq!((far.sent, far.received), (20, 16), "{run}");
    let rtt = far.rtt_s.unwrap();
    assert!(
        (rtt.min * 1e3 - min_avg_max(lines[0])[0]).abs() < APART_MS,
        "{seen}"
    );
    let up = &stats.links["line"][&plumb_model::direction::OneDirection::Up];
    assert_eq!(up.chain.cells["periodic_loss"].dropped["loss"], 5 * 4);
}

#[test]
fn fping_tells_icmp_errors_in_the_same_words() {
    let mut net = Network::default();
    net.node("a", "forward = false")
        .node("r", "forward = true")
        .node("b", "");
    net.link("l0", ["a", "r"], "").link("l1", ["r", "b"], "");
    net.without_ipv6();
    // The router has no way there; at the other address the hop limit ends.
    let (seen, _) = net.script(
        "ip route add 192.0.2.0/24 via 10.0.0.2
         for fping in 'fping -t 200 -p 200 -c' 'plumb ping --fping count -W 200ms -i 200ms -c'; do
           $fping 2 192.0.2.9 2>&1 >/dev/null | grep ICMP
           $fping 2 -q 192.0.2.9 2>&1 >/dev/null | grep -c 'ICMP .* from'
         done
         fping -t 200 -c 1 -H 1 10.0.1.2 2>&1 >/dev/null | grep ICMP
         plumb ping --fping count -W 200ms -c 1 -m 1 10.0.1.2 2>&1 >/dev/null | grep 'ICMP .* from'",
    );
    let lines: Vec<&str> = seen
        .lines()
        .filter(|line| !line.starts_with("plumb:"))
        .collect();
    let unreachable = "ICMP Network Unreachable from 10.0.0.2 for ICMP Echo sent to 192.0.2.9";
    let expired = "ICMP Time Exceeded from 10.0.0.2 for ICMP Echo sent to 10.0.1.2";
    assert_eq!(
        lines,
        [
            unreachable,
            unreachable,
            "0",
            unreachable,
            unreachable,
            "0",
            expired,
            expired
        ],
        "{seen}"
    );
}
