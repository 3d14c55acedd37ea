//! The main job against networks whose truth is known, and the truth against Runs of others.

use crate::common::{Checked, check_in, repository, side_by_side};
use plumb_lab::scenario::Scenario;
use plumb_lab::truth::{Deviation, truth};
use plumb_model::run::Run;

/// The Run of a scenario agrees with its truth, conforms to the schema, and is not taken for
/// the Run of any of `others`.
pub(crate) fn holds(name: &str, options: &[&str], others: &[&str]) {
    let checked = check_in(name, options);
    let deviations = deviations(&checked, &checked.scenario);
    assert!(
        deviations.is_empty(),
        "{name} deviates from its truth:\n{}",
        deviations.join("\n")
    );
    let schema: serde_json::Value = serde_json::from_str(
        &std::fs::read_to_string(repository().join("schemas/run.schema.json")).unwrap(),
    )
    .unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&checked.json)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{name} does not conform: {errors:?}");

    for other in others {
        let scenario = Scenario::load(other).unwrap();
        assert!(
            !self::deviations(&checked, &scenario).is_empty(),
            "a Run of {name} passes for one of {other}"
        );
    }
}

fn deviations(checked: &Checked, scenario: &Scenario) -> Vec<String> {
    truth(scenario, &checked.run, &checked.stats)
        .iter()
        .map(Deviation::to_string)
        .collect()
}

#[test]
fn home_cable() {
    let others = ["home-cable-managed", "fibre", "long-fat-sndbuf"];
    holds("home-cable", &[], &others);
}

/// Where nothing fills a queue two seconds of load are enough.
const NO_QUEUE: &[&str] = &["--duration", "2s"];

#[test]
fn mtu_black_hole_down() {
    let others = ["pppoe", "udp-blocked"];
    holds("mtu-black-hole-down", NO_QUEUE, &others);
}

/// What is on the path besides lines and queues.
pub(crate) fn what_the_path_holds_back_is_named() {
    side_by_side(&[
        &|| {
            let others = ["mtu-black-hole-down", "pings-limited"];
            holds("pppoe", NO_QUEUE, &others);
        },
        &|| {
            let others = ["ipv6-broken", "pppoe"];
            holds("transparent-proxy", NO_QUEUE, &others);
        },
        &|| {
            let others = ["pings-limited", "port-filtered"];
            holds("udp-blocked", NO_QUEUE, &others);
        },
        &|| {
            let others = ["udp-blocked", "transparent-proxy"];
            holds("pings-limited", NO_QUEUE, &others);
        },
        &|| {
            let others = ["udp-blocked", "ipv6-broken"];
            holds("port-filtered", NO_QUEUE, &others);
        },
        &|| {
            let others = ["transparent-proxy", "port-filtered"];
            holds("ipv6-broken", NO_QUEUE, &others);
        },
    ]);
}

/// A network with one parameter changed, and what of its truth then does not hold.
pub(crate) struct Changed {
    pub(crate) scenario: &'static str,
    pub(crate) what: &'static str,
    from: &'static str,
    to: &'static str,
    /// Parts of what must deviate.
    deviate: &'static [&'static str],
    /// What must not be found.
    not_found: Option<&'static str>,
}

pub(crate) const CHANGED: [Changed; 5] = [
    Changed {
        scenario: "home-cable",
        what: "small-modem-queue",
        from: "limit = \"700ms\"",
        to: "limit = \"20ms\"",
        deviate: &["an upload makes everything wait"],
        not_found: Some("bufferbloat-up"),
    },
    Changed {
        scenario: "home-cable-managed",
        what: "slower-line",
        from: "rate = \"19mbit\"",
        to: "rate = \"15mbit\"",
        deviate: &["upload fills the shaped rate"],
        not_found: None,
    },
    Changed {
        scenario: "long-fat-sndbuf",
        what: "large-send-buffer",
        from: "4096 16384 524288",
        to: "4096 16384 268435456",
        deviate: &["the first finding is send-buffer-small"],
        not_found: Some("send-buffer-small"),
    },
    Changed {
        scenario: "long-fat-rcvbuf",
        what: "large-receive-buffer",
        from: "4096 131072 1048576",
        to: "4096 131072 268435456",
        deviate: &["the first finding is receive-buffer-small"],
        not_found: Some("receive-buffer-small"),
    },
    Changed {
        scenario: "fibre",
        what: "slower-line",
        from: "rate = \"1gbit\"",
        to: "rate = \"600mbit\"",
        deviate: &["upload fills the line", "download fills the line"],
        not_found: None,
    },
];

impl Changed {
    pub(crate) fn text(&self) -> String {
        let text = Scenario::text(self.scenario).unwrap();
        assert!(
            text.contains(self.from),
            "{} has no '{}'",
            self.scenario,
            self.from
        );
        text.replace(self.from, self.to)
    }

    pub(crate) fn command(&self) -> [&'static str; 4] {
        ["check", "server", "--duration", "5s"]
    }

    /// Holds a Run made in it, and what of it deviates from the truth of the network before the change.
    pub(crate) fn is_seen(&self, run: &Run, deviations: &[String]) {
        for wanted in self.deviate {
            assert!(
                deviations.iter().any(|found| found.contains(wanted)),
                "{} {}: not '{wanted}' but {deviations:?}",
                self.scenario,
                self.what
            );
        }
        let mut causes = run.findings.iter().map(|finding| finding.cause.name());
        assert!(
            !causes.any(|cause| Some(cause) == self.not_found),
            "{} {}: {:?}",
            self.scenario,
            self.what,
            run.findings
        );
    }
}
