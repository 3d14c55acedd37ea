//! `plumb path` in networks whose truth is known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

use crate::common::network::Network;
use plumb_model::finding::Cause;
use plumb_model::results::Outcome;
use plumb_model::results::path::{AlteredField, Balancing, HopAnswers, PathResult};
use plumb_model::run::Run;

/// A network of which `a` is the first node.
fn network() -> Network {
    let mut network = Network::default();
    network.node("a", "forward = false");
    network
}

/// A link with these cells; tells its number, which is in its addresses.
fn link(net: &mut Network, a: &str, b: &str, cells: &str) -> usize {
    let number = net.links();
    net.link(&format!("l{number}"), [a, b], cells);
    number
}

/// The Runs of a script that prints each on a line, by a label before it; `before` is done first.
fn runs(network: &Network, before: &str, commands: &[(String, String)]) -> BTreeMap<String, Run> {
    // Four at a time: a trace mostly waits. Each into a file: what several write into a pipe mixes.
    let mut script = format!("{before}d=$(mktemp -d)\n");
    for batch in commands.chunks(4) {
        script += "p=()\n";
        for (label, command) in batch {
            let _ = writeln!(
                script,
                "plumb path {command} -n -o $d/{label} >/dev/null & p+=($!)"
            );
        }
        script += "for i in ${p[@]}; do wait $i || exit 9; done\n";
    }
    script += "cd $d; for f in *; do printf '%s\\t' $f; cat $f; done; rm -r $d\n";
    let (text, _) = network.script(&script);
    text.lines()
        .map(|line| {
            let (label, json) = line.split_once('\t').expect(line);
            (label.to_owned(), Run::from_json(json).unwrap())
        })
        .collect()
}

fn path(run: &Run) -> &PathResult {
    match &run.measurements[0].outcome {
        Outcome::Path(path) => path,
        other => panic!("{other:?}"),
    }
}

fn addresses(path: &PathResult) -> Vec<String> {
    path.hops
        .iter()
        .map(|hop| hop.address.clone().unwrap_or_else(|| "*".to_owned()))
        .collect()
}

/// The address at the far end of a link.
fn far_end(v6: bool, link: usize) -> String {
    if v6 {
        Ipv6Addr::new(0xfd00, 0, 0, link as u16, 0, 0, 0, 2).to_string()
    } else {
        format!("10.0.{link}.2")
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// What a branch of the network does, and what must be found.
#[derive(Debug, Clone)]
struct Branch {
    target: String,
    links: Vec<usize>,
    silent: Vec<bool>,
    /// The link on which something is changed, and what.
    change: Option<(usize, Change)>,
    /// A hop whose router limits its ICMP.
    limited: Option<usize>,
    end: End,
}

/// Who is at the end of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A host that answers.
    Answers,
    /// One that does not, behind a router that limits its ICMP.
    Silent,
    /// A host behind the first router, which has no route to it.
    Nowhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Dscp,
    Ecn,
    Mss,
    Options,
}

impl Change {
    fn cell(self) -> &'static str {
        match self {
            Self::Dscp => "{ type = \"dscp_bleach\" }",
            Self::Ecn => "{ type = \"ecn_bleach\" }",
            Self::Mss => "{ type = \"mss_clamp\", bytes = 1300 }",
            Self::Options => "{ type = \"strip_tcp_options\", options = [\"wscale\"] }",
        }
    }

    fn field(self) -> AlteredField {
        match self {
            Self::Dscp => AlteredField::Dscp,
            Self::Ecn => AlteredField::Ecn,
            Self::Mss => AlteredField::Mss,
            Self::Options => AlteredField::TcpOptions,
        }
    }
}

/// A line of routers from the client to a target of its own.
fn branch(net: &mut Network, dice: &mut Dice, number: usize, end: End) -> Branch {
    let length = 1 + dice.below(5) as usize;
    let mut branch = Branch {
        end,
        target: format!("t{number}"),
        links: Vec::new(),
        silent: Vec::new(),
        change: None,
        limited: None,
    };
    for hop in 0..length {
        // The first answers always, so that something is heard of every path.
        let silent = hop > 0 && dice.below(4) == 0 && (end == End::Answers || hop + 1 < length);
        net.node(
            &format!("r{number}-{hop}"),
            &format!("forward = true\nsilent = {silent}\n"),
        );
        branch.silent.push(silent);
    }
    branch.silent.push(end == End::Silent);
    net.node(
        &branch.target.clone(),
        &format!("silent = {}", end == End::Silent),
    );
    let changes = [Change::Dscp, Change::Ecn, Change::Mss, Change::Options];
    // On a link before a router: an accepted SYN quotes nothing.
    let change_at = dice.below(length as u64) as usize;
    let change = changes.get(dice.below(6) as usize).copied();
    let change = change.filter(|_| end == End::Answers);
    branch.change = change.map(|change| (change_at, change));
    if change.is_none() {
        branch.limited =
            Some(dice.below(length as u64) as usize).filter(|hop| !branch.silent[*hop]);
    }
    match end {
        End::Answers => {}
        End::Silent => branch.limited = Some(length - 1),
        End::Nowhere => {
            branch.limited = None;
            branch.target = format!("10.99.{number}.9");
        }
    }
    let name = |hop: usize| match hop {
        0 => "a".to_owned(),
        hop if hop <= length => format!("r{number}-{}", hop - 1),
        _ => format!("t{number}"),
    };
    for hop in 0..=length {
        let mut cells = String::new();
        match branch.change {
            Some((at, change)) if at == hop => {
                cells = format!("up = [{}]\n", change.cell());
            }
            _ => {}
        }
        if branch.limited == Some(hop) {
            // Of what comes back over this line, only every now and then a time exceeded.
            cells =
                "down = [{ type = \"icmp_limit\", per_second = 1, types = [\"time-exceeded\"] }]\n"
                    .to_owned();
        }
        branch
            .links
            .push(link(net, &name(hop), &name(hop + 1), &cells));
    }
    branch
}

/// Sixty lines of routers with silent, limiting and meddling ones: addresses, changes with the hop at
/// which they begin, and no loss anywhere. Six more end before a target answers, which is no loss either.
#[test]
fn sixty_lines_are_seen_as_they_are() {
    let (mut dice, mut other_dice) = (Dice(7), Dice(8));
    let mut checked = 0;
    for part in 0..3 {
        let mut net = network();
        let mut branches: Vec<Branch> = (0..20)
            .map(|number| branch(&mut net, &mut dice, number, End::Answers))
            .collect();
        for (number, end) in [(20, End::Silent), (21, End::Nowhere)] {
            branches.push(branch(&mut net, &mut other_dice, number, end));
        }
        let mut routes = String::new();
        for nowhere in branches.iter().filter(|b| b.end == End::Nowhere) {
            let (to, via) = (&nowhere.target, far_end(false, nowhere.links[0]));
            let _ = writeln!(routes, "ip route add {to} via {via}");
        }
        let commands: Vec<_> = branches
            .iter()
            .enumerate()
            .map(|(index, branch)| {
                let v4 = index % 2 == part % 2 || branch.end == End::Nowhere;
                let family = if v4 { "-4" } else { "-6" };
                let protocol = match branch.change {
                    Some((_, Change::Mss | Change::Options)) => "--tcp=9",
                    Some(_) => "--udp",
                    None => "--icmp",
                };
                (
                    branch.target.clone(),
                    format!("{} {family} {protocol}", branch.target),
                )
            })
            .collect();
        let seen = runs(&net, &routes, &commands);
        for (branch, (_, command)) in branches.iter().zip(&commands) {
            let run = &seen[&branch.target];
            let path = path(run);
            let what = format!("part {part}, {command}: {branch:?}: {path:?}");
            let v6 = command.contains("-6");
            match branch.end {
                End::Answers => check(branch, path, v6, &what),
                End::Silent => check_silent(branch, path, v6, &what),
                End::Nowhere => check_refused(path, &what),
            }
            let causes: Vec<_> = run.findings.iter().map(|f| f.cause).collect();
            assert!(!causes.contains(&Cause::PathLoss), "{what}");
            let refused = causes.contains(&Cause::PathRefused);
            assert_eq!(refused, branch.end == End::Nowhere, "{what}");
            checked += 1;
        }
    }
    assert_eq!(checked, 66);
}

/// The last router left probes unanswered, and nobody can tell why.
fn check_silent(branch: &Branch, path: &PathResult, v6: bool, what: &str) {
    assert!(!path.reached && path.loss.is_none(), "{what}");
    let at = branch.limited.unwrap();
    let last = &path.hops[at];
    assert_eq!(last.address, Some(far_end(v6, branch.links[at])), "{what}");
    assert!(last.received < last.sent, "{what}");
    assert_eq!(last.answers, HopAnswers::Unclear, "{what}");
}

/// The first router says that it has no route, and no more than once a second (icmp_ratelimit of Linux): which of the probes under way
/// it answers is the machine's choice, and those before that one are silent.
fn check_refused(path: &PathResult, what: &str) {
    assert!(!path.reached && path.loss.is_none(), "{what}");
    let (last, before) = path.hops.split_last().unwrap();
    assert_eq!(last.annotation.as_deref(), Some("!N"), "{what}");
    assert!(before.iter().all(|hop| hop.received == 0), "{what}");
}

fn check(branch: &Branch, path: &PathResult, v6: bool, what: &str) {
    assert!(path.reached, "{what}");
    assert_eq!(path.hops.len(), branch.links.len(), "{what}");
    for (index, hop) in path.hops.iter().enumerate() {
        let behind_limit = branch.limited.is_some_and(|at| index >= at);
        let last = index + 1 == path.hops.len();
        let wanted = far_end(v6, branch.links[index]);
        match &hop.address {
            Some(address) => assert_eq!(address, &wanted, "{what}"),
            None => assert!(branch.silent[index] || (behind_limit && !last), "{what}"),
        }
        if branch.silent[index] {
            assert_eq!(hop.answers, HopAnswers::Silent, "{what}");
        }
    }
    assert_eq!(path.loss, None, "{what}");
    assert!(path.changes.is_empty(), "{what}");
    let Some((at, change)) = branch.change else {
        assert!(path.alterations.is_empty(), "{what}");
        return;
    };
    // What is changed on a line shows at the first hop behind it that answers, which quotes.
    let quotes = |index: &usize| !branch.silent[*index];
    let first = (at..branch.links.len()).find(quotes).unwrap();
    let before = (0..at).rev().find(quotes);
    if first + 1 == branch.links.len() && matches!(change, Change::Mss | Change::Options) {
        // Only the target is behind, which quotes no SYN.
        assert!(path.alterations.is_empty(), "{what}");
        return;
    }
    let [found] = path.alterations.as_slice() else {
        panic!("{what}")
    };
    assert_eq!(found.field, change.field(), "{what}");
    assert_eq!(usize::from(found.seen_at_ttl), first + 1, "{what}");
    assert_eq!(
        found.intact_at_ttl.map(usize::from),
        before.map(|index| index + 1),
        "{what}"
    );
}

/// Two routers with some between, behind a router and before a target.
fn diamond(net: &mut Network, number: usize, width: usize, by: &str) -> (String, usize) {
    let (g, h, t) = (
        format!("g{number}"),
        format!("h{number}"),
        format!("d{number}"),
    );
    for name in [&g, &h] {
        net.node(name, "forward = true\n");
    }
    net.node(&t, "forward = false\n");
    let up = link(net, "a", &g, "");
    let mut via = Vec::new();
    for i in 0..width {
        let m = format!("m{number}-{i}");
        net.node(&m, "forward = true\n");
        link(net, &g, &m, "");
        link(net, &m, &h, "");
        via.push(m);
    }
    link(net, &h, &t, "");
    if width > 1 {
        net.add(&format!(
            "[[route]]\nnode = \"{g}\"\nto = \"{t}\"\nvia = {via:?}\nbalance = \"{by}\""
        ));
    }
    (t, up)
}

#[test]
fn all_ways_are_found_and_told_apart() {
    let mut net = network();
    let cases = [
        (1, "flow"),
        (2, "flow"),
        (3, "flow"),
        (4, "flow"),
        (2, "packet"),
        (3, "packet"),
        (5, "flow"),
        (8, "flow"),
    ];
    let mut commands = Vec::new();
    for (number, (width, by)) in cases.iter().enumerate() {
        let (target, _) = diamond(&mut net, number, *width, by);
        let family = if number % 2 == 0 { "-4" } else { "-6" };
        commands.push((
            format!("c{number}"),
            format!("{target} {family} --all-paths --confidence 0.9999"),
        ));
    }
    let seen = runs(&net, "", &commands);
    for (number, (width, by)) in cases.iter().enumerate() {
        let all = path(&seen[&format!("c{number}")])
            .multipath
            .as_ref()
            .unwrap();
        let what = format!("{width} {by}: {all:?}");
        assert!(all.complete, "{what}");
        assert_eq!(all.width, *width as u64, "{what}");
        let here = all.nodes.iter().filter(|node| node.ttl == 2).count();
        assert_eq!(here, *width, "{what}");
        let sharing: Vec<_> = all.nodes.iter().filter_map(|node| node.balancing).collect();
        let wanted = match (width, *by) {
            (1, _) => vec![],
            (_, "flow") => vec![Balancing::PerFlow],
            _ => vec![Balancing::PerPacket],
        };
        assert_eq!(sharing, wanted, "{what}");
    }
}

/// One network for what needs a line that carries cells: loss, a change of the route, delay.
#[test]
fn loss_begins_where_it_does_and_routes_change_when_they_do() {
    let mut net = network();
    for name in ["r1", "r3", "q1", "q2", "q3"] {
        net.node(name, "forward = true\n");
    }
    // Linux as it comes: six answers at once to an address, then one a second.
    net.node(
        "r2",
        "forward = true\nsysctl.\"net.ipv4.icmp_ratelimit\" = \"1000\"",
    );
    net.node("lossy", "");
    net.node("moving", "forward = false\n");
    link(&mut net, "a", "r1", "");
    link(&mut net, "r1", "r2", "");
    link(
        &mut net,
        "r2",
        "r3",
        "up = [{ type = \"periodic_loss\", every = 5, match = \"icmp\" }]\n",
    );
    link(&mut net, "r3", "lossy", "");
    link(&mut net, "a", "q1", "");
    link(&mut net, "q1", "q2", "");
    link(&mut net, "q1", "q3", "");
    link(&mut net, "q2", "moving", "");
    link(&mut net, "q3", "moving", "");
    net.add("[[route]]\nnode = \"q1\"\nto = \"moving\"\nvia = \"q3\"\nat = \"3s\"");
    let commands = [
        (
            "lossy".to_owned(),
            "lossy -4 --icmp --cycles 60 --interval 50ms --no-marks".to_owned(),
        ),
        (
            "moving".to_owned(),
            "moving -4 --icmp --cycles 25 --interval 200ms".to_owned(),
        ),
    ];
    let seen = runs(&net, "", &commands);

    let run = &seen["lossy"];
    let lossy = path(run);
    let loss = lossy.loss.as_ref().expect("there is loss");
    // One in five of what crosses the third line, to whichever hop.
    assert!((loss.ratio - 0.2).abs() < 0.05, "{loss:?}");
    assert!(
        loss.earliest_ttl <= 3 && loss.begins_at_ttl == 3,
        "{lossy:?}"
    );
    let found: Vec<_> = run.findings.iter().map(|f| f.cause).collect();
    assert_eq!(found, [Cause::PathLoss]);

    let run = &seen["moving"];
    let moving = path(run);
    let [change] = moving.changes.as_slice() else {
        panic!("{moving:?}")
    };
    assert_eq!(change.ttl, 2);
    assert!(
        change.at_s > change.after_s && change.at_s - change.after_s < 1.0,
        "{change:?}"
    );
    assert_eq!(addresses(moving)[1], far_end(false, 6));
    assert_eq!(
        moving.hops[1].addresses,
        [far_end(false, 5), far_end(false, 6)]
    );
    let sent: u64 = moving.routes.iter().map(|route| route.sent).sum();
    assert_eq!((moving.routes.len(), sent), (2, 25));
    assert_eq!(moving.loss, None);
    assert_eq!(run.findings[0].cause, Cause::RouteChanged);
}

/// A network for what needs no cells: other protocols, mtr and traceroute beside, what is refused.
#[test]
fn one_line_is_seen_alike_by_mtr_and_traceroute() {
    let mut net = network();
    for name in ["r1", "r2", "r3"] {
        net.node(name, "forward = true\n");
    }
    net.node("b", "");
    link(&mut net, "a", "r1", "");
    link(
        &mut net,
        "r1",
        "r2",
        "up = [{ type = \"delay\", delay = \"10ms\" }]\n",
    );
    link(&mut net, "r2", "r3", "");
    link(&mut net, "r3", "b", "");
    net.serves("b");
    let (seen, _) = net.script(
        "mtr -n -j -c 3 -i 0.2 b | tr -d '\\n'; echo
         plumb path -n --mtr-json b | tr -d '\\n'; echo
         plumb path -n --mtr-csv b | tail -1
         traceroute -n -q 1 b | tail -4 | awk '{print $2}' | xargs
         plumb path -n --udp b --json
         plumb path -n --tcp=7586 b --json
         plumb path -n -6 b --json
         setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all plumb path -n b --json
         setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all plumb path -n -u b --json
         plumb path -n --dot b
         f=$(mktemp); printf '10.0.0.0/24,64500,Near,52.37,4.90\\n10.0.1.0/24,64501,Far,52.4,16.9\\n10.0.3.0/24,64502,Home,52.4,4.9\\n' > $f
         plumb path -n b --asn-db $f --json
         sed -i 's/52.4,16.9/35.68,139.69/' $f; plumb path -n b --asn-db $f --here 52.37,4.9; rm $f
         if plumb path b --asn-db /etc/passwd 2>&1; then exit 9; fi
         if plumb path 255.255.255.255 2>&1; then exit 9; fi
         if plumb path -f 5 -m 3 b 2>&1; then exit 9; fi
         ip route add unreachable 192.0.2.0/24; if plumb path 192.0.2.1 2>&1; then exit 9; fi",
    );
    let lines: Vec<&str> = seen.lines().collect();
    let hubs = |line: &str| -> Vec<(String, f64, f64)> {
        let json: serde_json::Value = serde_json::from_str(line).expect(line);
        let hubs = json["report"]["hubs"].as_array().unwrap().clone();
        hubs.iter()
            .map(|hub| {
                (
                    hub["host"].as_str().unwrap().to_owned(),
                    hub["Loss%"].as_f64().unwrap(),
                    hub["Best"].as_f64().unwrap(),
                )
            })
            .collect()
    };
    let (mtr, ours) = (hubs(lines[0]), hubs(lines[1]));
    let wanted: Vec<String> = (0..4).map(|link| far_end(false, link)).collect();
    assert_eq!(mtr.len(), ours.len());
    for ((theirs, mine), address) in mtr.iter().zip(&ours).zip(&wanted) {
        assert_eq!((&theirs.0, &mine.0), (address, address));
        assert_eq!((theirs.1, mine.1), (0.0, 0.0));
        // The same line; mtr's clock stands in its own program, and both run on a busy machine.
        assert!((theirs.2 - mine.2).abs() < 5.0, "{theirs:?} {mine:?}");
    }
    assert!(
        lines[2].starts_with("plumb.") && lines[2].contains(",OK,b,4,10.0.3.2,0.00,3,0,"),
        "{}",
        lines[2]
    );
    assert_eq!(lines[3], wanted.join(" "));
    for (line, v6, missing) in [
        (4, false, false),
        (5, false, false),
        (6, true, false),
        (7, false, true),
        (8, false, true),
    ] {
        let run = Run::from_json(lines[line]).expect(lines[line]);
        let found = path(&run);
        let wanted: Vec<String> = (0..4).map(|link| far_end(v6, link)).collect();
        assert_eq!(addresses(found), wanted, "{line}");
        assert!(found.reached && found.loss.is_none());
        assert!(
            found
                .hops
                .iter()
                .all(|hop| hop.return_hops == Some(hop.ttl)),
            "{found:?}"
        );
        assert!(found.hops[1].rtt_s.unwrap().min >= 0.01, "{found:?}");
        let says = run.notes.iter().any(|note| note.contains("setcap"));
        assert_eq!(says, missing, "{:?}", run.notes);
    }
    let tcp = Run::from_json(lines[5]).unwrap();
    assert!(
        path(&tcp)
            .syn_ack
            .as_ref()
            .is_some_and(|offer| offer.sack && offer.mss_bytes.is_some())
    );
    let (documents, rest): (Vec<&str>, Vec<&str>) =
        lines[9..].iter().partition(|line| line.starts_with('{'));
    let places = Run::from_json(documents[0]).unwrap();
    let asns: Vec<_> = path(&places).hops.iter().map(|hop| hop.asn).collect();
    assert_eq!(asns, [Some(64500), Some(64501), None, Some(64502)]);
    // By Poznań from Amsterdam to Amsterdam, in 10 ms, which light could; by Tokyo it could not.
    assert_eq!(places.findings[0].cause, Cause::RouteDetour);
    assert!(places.findings[0].summary.contains("hop 2"), "{places:?}");
    let rest = rest.join("\n");
    assert!(
        rest.contains("is not at 35.7° N 139.7° E") && rest.contains("52.4° N 4.9° E"),
        "{rest}"
    );
    assert!(
        rest.contains("is no database of networks: line 1"),
        "{rest}"
    );
    assert!(
        rest.contains("\"1: 10.0.0.2\" -> \"2: 10.0.1.2\""),
        "{rest}"
    );
    assert!(
        rest.contains("no single host") && rest.contains("--max-hops"),
        "{rest}"
    );
    assert!(rest.contains("ip route get"), "{rest}");
}
