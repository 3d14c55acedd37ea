//! The truth of networks against whole checks, and against Runs of changed networks, measured anew: `corpus.rs` tries
//! it on recorded ones.

use plumb_lab::scenario::Scenario;
use plumb_lab::truth::truth;

use crate::common::network::scenario;
use crate::common::{check_in, side_by_side};
use crate::truth::{CHANGED, Changed, holds, what_the_path_holds_back_is_named};

#[test]
#[ignore = "slow"]
fn checks_as_a_user_makes_them() {
    side_by_side(&[
        &|| holds("home-cable-managed", &[], &["home-cable"]),
        &|| holds("home-lossy", &[], &["home-cable-managed"]),
        &|| holds("long-fat-rcvbuf", &[], &["long-fat-sndbuf"]),
        &|| holds("long-fat-sndbuf", &[], &["long-fat-rcvbuf"]),
        &|| {
            let others = [
                "home-cable",
                "home-cable-managed",
                "long-fat-sndbuf",
                "long-fat-rcvbuf",
            ];
            holds("fibre", &[], &others);
        },
        &|| {
            holds(
                "cross-traffic",
                &[],
                &["home-cable", "congested-interconnection"],
            )
        },
        &|| holds("congested-interconnection", &[], &["cross-traffic"]),
        &|| holds("ect1-bleached", &[], &["fibre"]),
        &|| {
            holds(
                "radio-sleeps",
                &["--thorough", "--duration", "4s"],
                &["fibre"],
            )
        },
        &|| holds("ack-starvation", &[], &["home-cable"]),
        &|| holds("queue-target-low", &[], &["home-cable"]),
    ]);
}

#[test]
#[ignore = "slow"]
fn what_a_path_holds_back() {
    what_the_path_holds_back_is_named();
}

#[test]
#[ignore = "slow"]
fn changed_networks_deviate() {
    let each = CHANGED.iter().map(|change| move || is_seen(change));
    let each: Vec<_> = each.collect();
    let each: Vec<&(dyn Fn() + Sync)> = each.iter().map(|one| one as _).collect();
    side_by_side(&each);
}

fn is_seen(change: &Changed) {
    let file = scenario(&change.text());
    let checked = check_in(file.path().to_str().unwrap(), &change.command()[2..]);
    let original = Scenario::load(change.scenario).unwrap();
    let deviations = truth(&original, &checked.run, &checked.stats);
    let deviations: Vec<_> = deviations.iter().map(ToString::to_string).collect();
    change.is_seen(&checked.run, &deviations);
}
