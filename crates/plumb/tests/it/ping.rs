//! `plumb ping` in the laboratory: its numbers against what the links recorded of the very same packets.

use std::collections::{BTreeMap, HashMap};

use crate::common::network::Network;
use crate::common::{Checked, in_lab, plumb, stderr, stdout, words};
use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::results::{Outcome, PingResult, TimestampSource};
use plumb_model::run::Run;
use plumb_wire::probe_key::ProbeKey;

fn ping(run: &Run) -> &PingResult {
    match &run.measurements[0].outcome {
        Outcome::Ping(ping) => ping,
        other => panic!("{other:?}"),
    }
}

/// When the link let each probe go in one direction, in seconds from when it took it, and in which
/// order; lost ones are left out.
fn transits(checked: &Checked, way: OneDirection) -> Vec<(u64, f64)> {
    let mut records: Vec<_> = checked.stats.links["line"][&way]
        .probes
        .iter()
        .filter_map(|probe| {
            let ProbeKey::Icmp { seq, .. } = probe.key else {
                return None;
            };
            let left = probe.left?;
            Some((left, u64::from(seq), (left - probe.entered).as_secs_f64()))
        })
        .collect();
    records.sort_by_key(|(left, ..)| *left);
    records.into_iter().map(|(_, seq, s)| (seq, s)).collect()
}

#[test]
fn round_trips_are_those_that_the_link_recorded() {
    let way = r#"{ type = "shaper", rate = "20mbit" }, { type = "delay", delay = "10ms" }"#;
    let sweep = [
        "ping",
        "server",
        "-c",
        "200",
        "-i",
        "0.006",
        "--sweep",
        "56..1400:192",
    ];
    let checked = Network::line(way, way).measured(&sweep);
    let result = ping(&checked.run);
    assert_eq!(
        (result.sent, result.received, result.sizes.len()),
        (200, 200, 8)
    );
    assert_eq!(result.timestamps, TimestampSource::Kernel);
    let (up, down): (HashMap<_, _>, HashMap<_, _>) = (
        transits(&checked, OneDirection::Up).into_iter().collect(),
        transits(&checked, OneDirection::Down).into_iter().collect(),
    );
    let rtts = &checked.run.measurements[0].series["rtt"].values;
    let errors = (0..).zip(rtts).map(|(seq, rtt)| {
        let recorded = up[&seq] + down[&seq];
        (rtt.unwrap() - recorded).abs() - 0.005 * recorded
    });
    // What the links were late by is theirs: they are as late to take a packet in, before its
    // record begins, as to give one on.
    let late: f64 = [OneDirection::Up, OneDirection::Down]
        .iter()
        .filter_map(|way| checked.stats.links["line"][way].driver.lateness_s)
        .map(|lateness| 2.0 * lateness.p50)
        .sum();
    let median = Distribution::of(errors).unwrap().p50;
    assert!(
        median <= 50e-6 + late,
        "{median} above 0.5 %, links late by {late}"
    );
    // A line of 20 Mbit/s takes 1344 bytes longer for the largest than for the smallest, twice.
    let least = |n: usize| result.sizes[n].rtt_s.unwrap().min;
    let slower = least(7) - least(0);
    assert!(
        (slower - 2.0 * 1344.0 * 8.0 / 20e6).abs() < 300e-6,
        "{slower}"
    );
}

#[test]
fn loss_and_duplicates_are_those_that_the_link_counted() {
    let up = r#"{ type = "gilbert_elliott", p = "3%", r = "30%" }, { type = "duplicate", ratio = "10%" }, { type = "delay", delay = "5ms" }"#;
    let down = r#"{ type = "delay", delay = "5ms" }"#;
    let probes = ["ping", "server", "-c", "500", "-i", "4ms", "-W", "0.4"];
    let checked = Network::line(up, down).measured(&probes);
    let result = ping(&checked.run);
    let cells = &checked.stats.links["line"][&OneDirection::Up].chain.cells;
    let lost = cells["gilbert_elliott"].dropped["loss"];
    assert_eq!((result.sent, result.sent - result.received), (500, lost));
    assert_eq!(result.duplicates, cells["duplicate"].duplicated.packets);
    // The runs of losses are those of the numbers that the link did not let go.
    let arrived: std::collections::HashSet<u64> = transits(&checked, OneDirection::Up)
        .into_iter()
        .map(|(seq, _)| seq)
        .collect();
    let mut runs = vec![];
    for seq in 0..500 {
        match (arrived.contains(&seq), runs.last_mut()) {
            (false, Some((last, length))) if *last + 1 == seq => {
                *last = seq;
                *length += 1;
            }
            (false, _) => runs.push((seq, 1u64)),
            (true, _) => {}
        }
    }
    let length = result.losses.period_length.unwrap();
    assert_eq!(result.losses.periods, runs.len() as u64);
    assert_eq!(
        length.max,
        runs.iter().map(|run| run.1).max().unwrap() as f64
    );
    assert_eq!(result.losses.distance.unwrap().count, lost - 1);
}

#[test]
fn reordering_is_what_the_link_did() {
    let up =
        r#"{ type = "reorder", ratio = "10%", extent = 3 }, { type = "delay", delay = "5ms" }"#;
    let down = r#"{ type = "delay", delay = "5ms" }"#;
    let probes = ["ping", "server", "-c", "300", "-i", "4ms", "-W", "0.4"];
    let checked = Network::line(up, down).measured(&probes);
    // RFC 4737, section 3.3, over the order in which the link let the answers go.
    let mut next = 0;
    let mut reordered = 0;
    for (seq, _) in transits(&checked, OneDirection::Down) {
        if seq < next {
            reordered += 1;
        } else {
            next = seq + 1;
        }
    }
    assert!(reordered > 0);
    let result = ping(&checked.run);
    assert_eq!((result.reordered, result.received), (reordered, 300));
}

#[test]
fn an_interface_that_goes_down_in_mid_run_costs_only_its_probes() {
    let delay = r#"{ type = "delay", delay = "5ms" }"#;
    let (text, _) = Network::line(delay, delay).script(
        "plumb ping server -c 60 -i 30ms -W 0.3 --json & sleep 0.8; ip link set line down; sleep 0.3; \
         ip link set line up; wait $!",
    );
    let run = Run::from_json(&text).unwrap();
    let result = ping(&run);
    assert_eq!(result.sent + result.send_errors, 60);
    assert!((5..=55).contains(&result.received), "{result:?}");
    assert!(!run.notes.is_empty());
}

#[test]
fn a_silent_far_end_is_a_result_and_no_success() {
    let lossy = r#"{ type = "loss", ratio = "100%" }"#;
    let probes = words("plumb ping server -c 3 -i 10ms -W 0.1 --json");
    let output = Network::line(lossy, "").run(&probes);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("nothing came back from server"),
        "{}",
        stderr(&output)
    );
    let run = Run::from_json(&stdout(&output)).unwrap();
    let result = ping(&run);
    assert_eq!(
        (result.sent, result.received, result.losses.periods),
        (3, 0, 1)
    );
}

#[test]
fn many_targets_are_each_told_what_the_link_did() {
    let up = r#"{ type = "loss", ratio = "10%" }, { type = "duplicate", ratio = "10%" }, { type = "delay", delay = "8ms" }"#;
    let down = r#"{ type = "delay", delay = "8ms" }"#;
    let probes = words("ping server 10.0.0.9 no-such.invalid localhost -c 200 -i 5ms -W 2");
    let checked = Network::line(up, down).measured(&probes);
    let Outcome::Pings(result) = &checked.run.measurements[0].outcome else {
        panic!("{:?}", checked.run.measurements);
    };
    assert_eq!(result.unresolved, ["no-such.invalid"]);
    assert_eq!(
        (result.timestamps, result.strays),
        (TimestampSource::Kernel, 0)
    );
    let [server, nobody, here] = result.targets.as_slice() else {
        panic!("{result:?}");
    };
    assert_eq!((nobody.sent, nobody.received, here.received), (200, 0, 200));
    // Each probe has its number, of three targets in turn.
    let of_server = |way| -> HashMap<u64, f64> {
        let all = transits(&checked, way).into_iter();
        all.filter(|(seq, _)| seq % 3 == 0).collect()
    };
    let (up, down) = (of_server(OneDirection::Up), of_server(OneDirection::Down));
    assert_eq!((server.sent, server.received), (200, down.len() as u64));
    let recorded = Distribution::of(down.iter().map(|(seq, s)| up[seq] + s)).unwrap();
    let late: f64 = [OneDirection::Up, OneDirection::Down]
        .iter()
        .filter_map(|way| checked.stats.links["line"][way].driver.lateness_s)
        .map(|lateness| 2.0 * lateness.p50)
        .sum();
    let error = (server.rtt_s.unwrap().min - recorded.min).abs();
    assert!(
        error <= 50e-6 + 0.005 * recorded.min + late,
        "{error} of {recorded:?}, late {late}"
    );
    // The link doubles what it does not lose, of both that are sent over it.
    let cells = &checked.stats.links["line"][&OneDirection::Up].chain.cells;
    assert!(server.duplicates > 0 && server.duplicates <= cells["duplicate"].duplicated.packets);
}

#[test]
fn many_are_probed_by_every_protocol_that_packets_or_connections_make() {
    let script = "many='plumb ping -c 4 -i 50ms -W 1 --json'
         $many server:7586 server:9 --protocol tcp
         $many server server:10 --protocol udp-port --port 9 -M do -t 9 -s 100
         $many server server --protocol stamp
         $many server 10.0.0.2 -M do -s 2000
         if $many server 10.0.0.2 --protocol udp 2>&1; then exit 9; fi
         if $many server 10.0.0.2 --protocol tcp --pps 5000 2>&1; then exit 9; fi
         if $many server 10.0.0.2 --protocol http -M do 2>&1; then exit 9; fi
         if plumb ping server 10.0.0.2 --flood -c 4 2>&1; then exit 9; fi";
    let output = in_lab("fibre", &[], &["bash", "-c", script]);
    assert!(output.status.success(), "{}", stdout(&output));
    let text = stdout(&output);
    let (documents, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('{'));
    let seen: Vec<Vec<(u64, u64, Option<String>)>> = documents
        .iter()
        .map(|line| {
            let run = Run::from_json(line).unwrap();
            let Outcome::Pings(pings) = &run.measurements[0].outcome else {
                panic!("{run:?}");
            };
            if let Some(rtt) = pings.rtt_s {
                // The line takes 2 ms each way; the rest is of a busy machine.
                assert!((0.003..0.030).contains(&rtt.p50), "{pings:?}");
            }
            let targets = pings.targets.iter();
            targets
                .map(|t| (t.received, t.send_errors, t.answer.clone()))
                .collect()
        })
        .collect();
    let each = |said: Option<&str>| (4, 0, said.map(str::to_owned));
    let wanted = [
        vec![each(Some("SYN-ACK")), each(Some("RST"))],
        vec![each(Some("port unreachable")); 2],
        vec![each(None); 2],
        // Larger than the interface takes, and not to be cut up.
        vec![(0, 4, None); 2],
    ];
    assert_eq!(seen, wanted, "{text}{}", stderr(&output));
    let rest = rest.join("\n");
    for why in [
        "--protocol stamp",
        "1000 times a second",
        "cannot be chosen",
        "at a rate",
    ] {
        assert!(rest.contains(why), "{why}: {rest}");
    }
}

#[test]
fn many_dns_servers_are_asked() {
    let first = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = first.local_addr().unwrap().port();
    let second = std::net::UdpSocket::bind(("127.0.0.2", port)).unwrap();
    for socket in [first, second] {
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                // The question back, as an answer.
                buffer[2] |= 0x80;
                let _ = socket.send_to(&buffer[..count], from);
            }
        });
    }
    let output = plumb(&[
        "ping",
        "127.0.0.0/30",
        "127.0.0.3",
        "--protocol",
        "dns",
        "--port",
        &port.to_string(),
        "-c3",
        "-i20ms",
        "-W0.5",
        "--json",
    ]);
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::Pings(result) = &run.measurements[0].outcome else {
        panic!("{run:?}");
    };
    let received: Vec<_> = result.targets.iter().map(|t| t.received).collect();
    assert_eq!(received, [3, 3, 0]);
    assert_eq!(result.answers.get("NOERROR"), Some(&6));
    assert_eq!(result.targets[2].error.as_deref(), Some("port unreachable"));
}

#[test]
fn why_probes_came_to_nothing_is_said_and_who_said_it() {
    let mut network = Network::default();
    network
        .node("client", "")
        .node("router", "forward = true")
        .node("server", "")
        .link("near", ["client", "router"], "")
        .link("far", ["router", "server"], "");
    let script = "ping='plumb ping -i 50ms -W 0.5 -q'
         $ping server -m 1 -c 2 2>&1; echo status $?
         $ping server -M do -s 1600 -c 1 --json; echo status $?
         $ping server -I 10.99.9.9 -c 1 2>&1; echo status $?
         $ping server -I nosuch0 -c 1 2>&1; echo status $?
         plumb ping 10.0.0.77 -c 1 -W 4 -q 2>&1; echo status $?
         plumb ping no-such.invalid server -c 1 --json-lines
         plumb ping server 10.0.0.1 -M do -s 1600 -c 1 --json";
    let output = network.run(&["bash", "-c", script]);
    let text = stdout(&output) + &stderr(&output);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for why in [
        "did not get to server: an ICMP error came back from 10.0.0.2: hop limit exceeded",
        "the probes were sent with a hop limit of 1",
        "nothing was sent to server: our own machine did not send a probe: it is larger than the 1500 bytes",
        "10.99.9.9, which is no address of this host",
        "no interface nosuch0",
        "does not answer to its address (ARP",
        r#"{"event":"unresolved","target":"no-such.invalid"}"#,
    ] {
        assert!(words.contains(why), "{why}: {text}");
    }
    assert_eq!(text.matches("status 1").count(), 5, "{text}");
    assert!(
        !text.contains("setcap") && !text.contains("firewalls"),
        "{text}"
    );
    let runs: Vec<Run> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| Run::from_json(line).ok())
        .collect();
    let (one, many) = (ping(&runs[0]), &runs[1].measurements[0].outcome);
    assert_eq!((one.sent, one.loss_ratio), (0, None));
    let Outcome::Pings(many) = many else {
        panic!("{many:?}");
    };
    let losses = many.targets.iter().map(|t| t.loss_ratio);
    assert_eq!(losses.collect::<Vec<_>>(), [None, Some(0.0)]);
}

#[test]
fn what_fping_prints_is_printed() {
    let output = plumb(&[
        "ping",
        "127.0.0.0/30",
        "--fping",
        "count",
        "-c2",
        "-i",
        "20ms",
    ]);
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 4);
    assert!(
        lines[0].starts_with("127.0.0.1 : [0], 64 bytes, ") && lines[0].ends_with(" avg, 0% loss)"),
        "{lines:?}"
    );
    let summary = stderr(&output);
    assert!(
        summary.starts_with("\n127.0.0.1 : xmt/rcv/%loss = 2/2/0%, min/avg/max = "),
        "{summary}"
    );
    let alive = stdout(&plumb(&["ping", "127.0.0.0/30", "--fping", "alive", "-c1"]));
    assert_eq!(alive, "127.0.0.1 is alive\n127.0.0.2 is alive\n");
}

#[test]
fn thousands_are_probed_without_false_loss() {
    let output = plumb(&[
        "ping",
        "127.0.0.0/19",
        "--pps",
        "20000",
        "-c",
        "1",
        "--json",
    ]);
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::Pings(result) = &run.measurements[0].outcome else {
        panic!("{:?}", run.measurements);
    };
    assert_eq!(
        (result.targets.len(), result.received, result.dropped_here),
        (8190, 8190, 0)
    );
    assert!(result.sent_pps <= 21_000.0, "{}", result.sent_pps);
}

#[test]
fn lines_are_for_people_or_programs() {
    let text = plumb(&["ping", "127.0.0.1", "-c", "3", "-i", "10ms", "-D"]);
    let text = stdout(&text);
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with('[') && first.contains("] 56 bytes from 127.0.0.1: seq=0 ttl=64 time="),
        "{first}"
    );
    // It ends as ping does: counts and round trips, and no table.
    let last: Vec<&str> = text.lines().filter(|line| !line.contains("seq=")).collect();
    assert!(last.len() <= 6, "{text}");
    assert!(
        text.contains("\n3 probes sent, 3 answered, 0 % lost\n"),
        "{text}"
    );
    assert!(
        text.contains("\nround-trip time min/median/95 %/max: "),
        "{text}"
    );
    let quiet = stdout(&plumb(&words("ping 127.0.0.1 -c 3 -i 10ms -q --details")));
    assert!(!quiet.contains("seq=") && quiet.contains("deviation"));
    // What bears on TCP alone is in the Run.
    assert!(
        quiet.contains("clock source") && !quiet.contains("tcp_rmem"),
        "{quiet}"
    );
    let lines = stdout(&plumb(&words("ping 127.0.0.1 -c 3 -i 10ms --json-lines")));
    let events: Vec<BTreeMap<String, serde_json::Value>> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 3);
    assert!(
        events
            .iter()
            .all(|event| event["event"] == "answer" && event["rtt_s"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn what_cannot_be_probed_is_said() {
    for (arguments, status, why) in [
        (["255.255.255.255", "-c1"], 1, "broadcast or multicast"),
        (["127.255.255.255", "-c1"], 1, "broadcast address"),
        (["ff02::1%lo", "-c1"], 1, "broadcast or multicast"),
        (["127.0.0.1", "-6"], 2, "no address of IPv6"),
        (["127.0.0.1", "--sweep=9..1:1"], 2, "FROM..TO:STEP"),
        (["127.0.0.1", "-I=no-such0"], 1, "no interface no-such0"),
        (["127.0.0.0/8", "-c1"], 2, "1048576 addresses"),
        (["127.0.0.0/x", "-c1"], 2, "ADDRESS/LENGTH"),
        (["--file=/no/such", "-c1"], 1, "cannot read /no/such"),
        (["--pps=0", "127.0.0.0/30"], 2, "packet rate"),
        (["127.0.0.1", "-Q=7"], 2, "ECN"),
        (["127.0.0.1", "-m=0"], 2, "from 1 to 255"),
        (["127.0.0.1", "-t=0"], 2, "above zero"),
    ] {
        let output = plumb(&[&["ping"], arguments.as_slice()].concat());
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        assert!(
            stderr(&output).contains(why),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn what_ends_on_the_way_on_purpose_is_no_error_of_whoever_pings_beside_it() {
    let mut routed = Network::default();
    routed.node("client", "").node("router", "forward = true");
    routed.node("server", "");
    routed.link("near", ["client", "router"], "");
    routed.link("far", ["router", "server"], "");
    let script = |script| routed.run(&["sh", "-c", script]);
    // A raw socket is told of whatever expires on the way to its far end.
    let output = script(
        "plumb ping server --protocol icmp --ttl 1 --count 8 --interval 50ms >/dev/null 2>&1 & \
         plumb ping server --protocol icmp --count 10 --interval 50ms --json; wait",
    );
    let run = Run::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let Outcome::Ping(ping) = &run.measurements[0].outcome else {
        panic!("{:?}", run.measurements)
    };
    assert_eq!((ping.received, ping.icmp_errors.len()), (10, 0), "{ping:?}");
    assert!(!run.notes.iter().any(|note| note.contains("ICMP error")));

    // Its own probes are.
    let output =
        script("plumb ping server --protocol icmp --ttl 1 --count 3 --interval 50ms --json");
    assert!(
        stderr(&output).contains("hop limit exceeded"),
        "{}",
        stderr(&output)
    );
}
