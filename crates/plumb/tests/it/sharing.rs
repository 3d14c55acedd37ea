//! Flows side by side through queues whose way of sharing is known.

use crate::common::network::Network;
use crate::common::side_by_side;
use plumb_model::results::sharing::Sharing;
use plumb_model::results::{Outcome, ThroughputResult};
use plumb_model::run::Run;

/// A queue of three bandwidth-delay products, which everybody shares.
const FIFO: &str = r#"{ type = "fifo", limit = "150kB" }"#;

/// A queue for each flow.
const FQ_CODEL: &str = r#""fq_codel""#;

/// A line of 20 Mbit/s and 20 ms with that queue on the way up.
fn line(queue: &str) -> Network {
    let way = |queue: &str| {
        format!(
            r#"{{ type = "shaper", rate = "20mbit", queue = {queue} }}, {{ type = "delay", delay = "10ms" }}"#
        )
    };
    Network::served_line(&way(queue), &way(FIFO))
}

/// An upload over such a line; what its users send shares the way up.
fn upload(queue: &str, options: &[&str]) -> (Run, ThroughputResult) {
    let command = [&["rate", "server", "--up"], options].concat();
    let run = line(queue).measured(&command).run;
    let result = run
        .measurements
        .iter()
        .find_map(|m| match &m.outcome {
            Outcome::Throughput(result) => Some(result.clone()),
            _ => None,
        })
        .expect("a rate");
    (run, result)
}

fn sharing(result: &ThroughputResult) -> &Sharing {
    result.sharing.as_ref().expect("several streams")
}

#[test]
fn flows_share_as_their_queues_and_their_kinds_have_it() {
    // The longest first.
    side_by_side(&[
        &background_traffic_leaves_the_link_to_the_others,
        &background_traffic_runs_beside_another_test_of_the_same_host,
        &flows_of_one_kind_share_alike_where_each_has_its_queue,
        &congestion_controls_are_told_apart,
    ]);
}

fn flows_of_one_kind_share_alike_where_each_has_its_queue() {
    let (run, result) = upload(FQ_CODEL, &["--flows", "cubic=2", "--duration", "6s"]);
    let shared = sharing(&result);
    // The queue serves both in turn; what differs is how each met it in the first round trips.
    assert!(shared.jain_index.unwrap() > 0.99, "{shared:?}");
    let each = shared.jain_index_each_second.as_ref().unwrap();
    assert!(each.p50 > 0.99, "{each:?}");
    let series = &run.measurements[0].series;
    for name in ["jain_index", "bps_stream0", "bps_stream1"] {
        assert!(series[name].points().count() >= 5, "{name}");
    }
}

pub(crate) fn a_queue_for_all_gives_to_each_flow_and_not_to_each_user() {
    let (_, result) = upload(FIFO, &["--flows", "cubic=1,cubic=4", "--duration", "15s"]);
    let [one, four] = sharing(&result).groups.as_slice() else {
        panic!("{:?}", result.sharing)
    };
    assert_eq!((one.streams, four.streams), (1, 4));
    assert!((one.share_ratio + four.share_ratio - 1.0).abs() < 1e-9);
    // Five flows of equal round trips: a fifth and four fifths, as evenly as drop-tail is in a
    // time of some dozens of losses.
    assert!((0.1..0.35).contains(&one.share_ratio), "{one:?} {four:?}");
    assert!(result.bps > 18e6, "{}", result.bps);
}

fn congestion_controls_are_told_apart() {
    let (run, result) = upload(FQ_CODEL, &["--flows", "cubic=1,reno=2", "--duration", "5s"]);
    let groups = &sharing(&result).groups;
    let ran: Vec<_> = groups
        .iter()
        .map(|g| (g.cc.as_str(), g.streams, g.first_stream))
        .collect();
    assert_eq!(ran, [("cubic", 1, 0), ("reno", 2, 1)]);
    let load = run.measurements[0].context.load.as_ref().unwrap();
    assert_eq!(load.flows[1].cc.as_deref(), Some("reno"));
    assert_eq!(load.streams, 3);
}

fn background_traffic_leaves_the_link_to_the_others() {
    let (_, result) = upload(
        FIFO,
        &["--flows", "cubic=1,background=1", "--duration", "20s"],
    );
    let [cubic, background] = sharing(&result).groups.as_slice() else {
        panic!("{:?}", result.sharing)
    };
    assert_eq!(background.cc, "ledbat++ over reno");
    assert!(background.share_ratio < 0.15, "{background:?} {cubic:?}");
    assert!(result.bps > 17.5e6, "{}", result.bps);
}

pub(crate) fn background_traffic_alone_uses_the_link() {
    let (run, result) = upload(FIFO, &["--background", "--duration", "15s"]);
    // 1448 of 1500 bytes of 20 Mbit/s.
    assert!(
        result.steady_bps.unwrap() > 0.8 * 19.3e6,
        "{:?}",
        result.steady_bps
    );
    let flow = &run.measurements[0].context.load.as_ref().unwrap().flows[0];
    assert_eq!((flow.background, flow.dscp), (true, Some(1)));
}

fn background_traffic_runs_beside_another_test_of_the_same_host() {
    let line = line(FIFO);
    let script = "\
        plumb rate server --up --background --duration 6s --json > /dev/null & background=$!; sleep 1; \
        plumb rate server --up --duration 2s --json; wait $background";
    let (run, _) = line.script(script);
    let run = Run::from_json(&run).unwrap();
    assert!(matches!(
        run.measurements[0].outcome,
        Outcome::Throughput(_)
    ));
    // Two of one kind would measure each other.
    let script = "plumb rate server --up --duration 4s > /dev/null & first=$!; sleep 1; \
        plumb rate server --up --duration 1s 2>&1 | grep -E 'first: waiting|bit/s'; wait $first";
    let (waited, _) = line.script(script);
    assert!(waited.contains("another client first"), "{waited}");
    assert!(waited.contains("bit/s"), "served in its turn: {waited}");
}
