use std::convert::Infallible;

use super::*;
use crate::store::Store;

const START_S: i64 = 1_000 * 86_400;

const TARGETS: &str = "[store]\npath = \"w.db\"\n\
    [[target]]\nname = \"router\"\nhost = \"192.168.1.1\"\nprobe = \"icmp\"\n\
    [[target]]\nname = \"host\"\nhost = \"192.168.2.1\"\nprobe = \"icmp\"\nbehind = \"router\"\n";

const LOSS: &str = "[[alarm]]\nname = \"loss\"\nkind = \"threshold\"\nquantity = \"loss\"\nabove = \"10%\"\nover = \"5m\"\n\
    raise_after = \"1m\"\nclear_after = \"3m\"\n";

/// A probe each 10 s, which is lost where `lost` says so of the target and the second.
struct Line<F>(F);

impl<F: Fn(&str, i64) -> bool> History for Line<F> {
    type Error = Infallible;

    fn samples(&self, target: &str, from_s: i64) -> Result<Vec<Sample>, Infallible> {
        let sample = |at_s: i64| Sample {
            sent_us: at_s * 1_000_000,
            value: (!self.0(target, at_s - START_S)).then_some(0.02),
        };
        let from_s = from_s.max(START_S).div_euclid(10) * 10;
        Ok((from_s..from_s + 90_000).step_by(10).map(sample).collect())
    }

    fn quarters(&self, _: &str, _: (i64, i64)) -> Result<Vec<(i64, Distribution)>, Infallible> {
        Ok(Vec::new())
    }
}

/// What was raised and cleared in these minutes: target, minute, whether it was raised, and the words.
fn judged(
    engine: &mut Engine,
    minutes: std::ops::Range<i64>,
    lost: impl Fn(&str, i64) -> bool,
) -> Vec<(String, i64, bool, String)> {
    let line = Line(lost);
    let mut found = Vec::new();
    for minute in minutes {
        for alarm in engine.judge(&line, START_S + minute * 60).unwrap() {
            let words = alarm.in_words();
            found.push((alarm.target, minute, alarm.cleared_s.is_none(), words));
        }
    }
    found
}

fn engine(more: &str) -> Engine {
    Engine::new(
        &Config::parse(&format!("{TARGETS}{more}")).unwrap(),
        Vec::new(),
    )
}

#[test]
fn an_alarm_is_raised_and_cleared_once_each() {
    let mut engine = engine(LOSS);
    // Half of the probes for 10 minutes, of the host alone.
    let found = judged(&mut engine, 1..60, |target, at_s| {
        target == "host" && (1200..1800).contains(&at_s) && at_s % 20 == 0
    });
    // 3 of 30 lost at the end of minute 21, 6 a minute later, and 9 when that has lasted a minute; 3 again from minute 34 on.
    let seen: Vec<_> = found
        .iter()
        .map(|(target, at, raised, _)| (target.as_str(), *at, *raised))
        .collect();
    assert_eq!(seen, [("host", 23, true), ("host", 37, false)], "{found:?}");
    assert_eq!(found[0].3, "loss of 30.0 %");
}

#[test]
fn what_comes_and_goes_is_one_alarm() {
    let mut engine = engine(LOSS);
    let found = judged(&mut engine, 1..120, |target, at_s| {
        target == "host" && (1200..4800).contains(&at_s) && at_s % 360 < 60
    });
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn what_is_behind_a_dead_router_is_counted_with_it() {
    let mut engine = engine(LOSS);
    // The host is silent 30 s longer than its router.
    let found = judged(&mut engine, 1..60, |target, at_s| {
        (1205..1800 + 30 * i64::from(target == "host")).contains(&at_s)
    });
    let raised: Vec<_> = found.iter().filter(|(_, _, raised, _)| *raised).collect();
    let [(target, _, _, words)] = raised[..] else {
        panic!("{found:?}");
    };
    assert_eq!(target, "router");
    assert!(words.ends_with(", with 1 target behind it"), "{words}");
}

#[test]
fn maintenance_raises_nothing_and_what_outlasts_it_does() {
    let maintenance =
        "[[maintenance]]\nfrom = \"00:15\"\nuntil = \"00:40\"\ntargets = [\"router\"]\n";
    let during = |target: &str, at_s: i64| target == "router" && (1200..1800).contains(&at_s);
    assert_eq!(
        judged(&mut engine(&format!("{LOSS}{maintenance}")), 1..60, during),
        []
    );
    let longer = |target: &str, at_s: i64| target == "router" && (1200..3000).contains(&at_s);
    let found = judged(&mut engine(&format!("{LOSS}{maintenance}")), 1..49, longer);
    assert_eq!(found.iter().map(|found| found.1).collect::<Vec<_>>(), [41]);
}

#[test]
fn a_restart_neither_loses_nor_repeats_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let config = Config::parse(&format!("{TARGETS}{LOSS}")).unwrap();
    let mut written = Vec::new();
    // Another process every seven minutes.
    for minutes in [1..8, 8..15, 15..22, 22..29, 29..36, 36..60] {
        let mut store = Store::open(&path).unwrap();
        let mut engine = Engine::new(&config, store.standing().unwrap());
        let line = Line(|target: &str, at_s| target == "host" && (600..1800).contains(&at_s));
        for minute in minutes {
            let changed = engine.judge(&line, START_S + minute * 60).unwrap();
            store
                .write_alarms(&changed, ("", 0), std::iter::empty())
                .unwrap();
            written.extend(changed);
        }
    }
    let raised = written
        .iter()
        .filter(|alarm| alarm.cleared_s.is_none())
        .count();
    assert_eq!((raised, written.len()), (1, 2), "{written:?}");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.standing().unwrap(), []);
    assert_eq!(store.alarms("host", 9).unwrap(), written[1..]);
}

#[test]
fn an_alarm_of_a_rule_that_is_gone_is_cleared() {
    let mut first = engine(LOSS);
    let dead = |target: &str, at_s: i64| target == "router" && at_s > 600;
    let line = Line(dead);
    let mut standing = Vec::new();
    for minute in 1..20 {
        standing.extend(first.judge(&line, START_S + minute * 60).unwrap());
    }
    assert_eq!(standing.len(), 1);
    let config = Config::parse(TARGETS).unwrap();
    let found = judged(&mut Engine::new(&config, standing), 20..23, dead);
    assert_eq!(
        found.iter().map(|found| found.2).collect::<Vec<_>>(),
        [false]
    );
}

/// A device, and a rule for some of its series; the other rule is of no name.
const DEVICE: &str = "[[device]]\nname = \"sw1\"\nhost = \"192.168.3.1\"\nevery = \"10s\"\ncommunity = \"public\"\n\
    [[alarm]]\nname = \"full\"\nkind = \"threshold\"\nquantity = \"value\"\nabove = 0.01\nover = \"5m\"\n\
    targets = [\"sw1 port eth* in\"]\n";

#[test]
fn a_series_is_judged_by_the_rules_that_name_it() {
    let text = format!("{TARGETS}{LOSS}{DEVICE}");
    let config = Config::parse(&text).unwrap();
    let series = |name: &str| config.series(name).unwrap();
    let mut engine = Engine::new(&config, Vec::new());
    for name in ["sw1 port eth0 in", "sw1 port eth0 out", "sw1 uptime"] {
        engine.add_series(series(name));
        engine.add_series(series(name));
    }
    let found = judged(&mut engine, 1..20, |_, _| false);
    let seen: Vec<_> = found
        .iter()
        .map(|(target, _, raised, _)| (target.as_str(), *raised))
        .collect();
    assert_eq!(seen, [("sw1 port eth0 in", true)], "{found:?}");
    // It stands on after a restart, though the device was not asked yet.
    let standing = Alarm {
        rule: "full".to_owned(),
        target: "sw1 port eth0 in".to_owned(),
        since_s: 0,
        raised_s: 0,
        cleared_s: None,
        words: String::new(),
        behind: Vec::new(),
    };
    let engine = Engine::new(&config, vec![standing]);
    assert!(!engine.has_orphans());
}

#[test]
fn a_series_is_quiet_while_its_device_is_maintained() {
    let maintained = "[[maintenance]]\nfrom = \"00:00\"\nuntil = \"23:59\"\ntargets = [\"sw1\"]\n";
    let config = Config::parse(&format!("{TARGETS}{DEVICE}{maintained}")).unwrap();
    let mut engine = Engine::new(&config, Vec::new());
    engine.add_series(config.series("sw1 port eth0 in").unwrap());
    assert!(judged(&mut engine, 1..20, |_, _| false).is_empty());
}
