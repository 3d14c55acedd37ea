use super::*;
use crate::config::Config;

/// A file whose mesh has these lines behind its name, and two members.
fn parsed(own: &str, more: &str) -> Result<Config, String> {
    let member =
        |name: &str, host: &str| format!("[[mesh.member]]\nname = \"{name}\"\nhost = \"{host}\"\n");
    let members = member("a", "127.0.0.1") + &member("b", "240.0.0.2") + &member("c", "240.0.0.3");
    let text =
        format!("[store]\npath = \"w.db\"\n[mesh]\nname = \"campus\"\n{own}\n{members}{more}");
    Config::parse(&text).map_err(|error| error.to_string())
}

const PROBES: &str = "[[mesh.probe]]\nprobe = \"icmp\"\nevery = \"1m\"\n[[mesh.probe]]\nprobe = \"one-way\"\nevery = \"5m\"\nprotocol = \"stamp\"\ndscp = [0, 46]\n[[mesh.probe]]\nprobe = \"rate\"\nlasts = \"3s\"\n";

#[test]
fn a_member_measures_its_own_row_as_ordinary_targets() {
    let config = parsed("self = \"b\"", PROBES).unwrap();
    let names: Vec<_> = config.targets.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "b → a icmp",
            "b → a one-way dscp 0",
            "b → a one-way dscp 46",
            "b → a rate",
            "b → c icmp",
            "b → c one-way dscp 0",
            "b → c one-way dscp 46",
            "b → c rate",
        ]
    );
    let target = &config.targets[6];
    assert_eq!(
        (target.host.as_str(), target.group.as_deref(), target.every),
        ("240.0.0.3", Some("mesh campus"), Duration::from_secs(300))
    );
    assert!(format!("{:?}", target.kind).contains("dscp: Some(46)"));
    let mesh = config.mesh.as_ref().unwrap();
    let slots: Vec<_> = config.targets.iter().map(|t| mesh.slot_of(t)).collect();
    assert_eq!(slots.iter().flatten().count(), 2);
    assert_eq!(slots[7], mesh.table.slot(1, 2, 0));
    // Keys open it by its group.
    let part = |group: &str| config.of_groups(&[group.to_owned()]);
    assert!(part("mesh campus").mesh.is_some() && part("other").mesh.is_none());
}

#[test]
fn members_find_themselves_and_agree_on_the_rest() {
    // 127.0.0.1 is an address of every machine, and 240.0.0.0/4 (reserved, RFC 1112) of none.
    let found = parsed("", PROBES).unwrap().mesh.unwrap();
    assert_eq!((found.own, found.table.is_empty()), (0, false));
    let named = parsed("self = \"c\"", PROBES).unwrap().mesh.unwrap();
    assert_eq!(
        (named.own, &named.digest, named.table),
        (2, &found.digest, found.table)
    );
    let other = parsed("", &PROBES.replace("46", "34")).unwrap();
    assert_ne!(other.mesh.unwrap().digest, found.digest);
}

#[test]
fn what_is_wrong_is_said_in_words() {
    let extra = |name: &str, host: &str, more: &str| {
        format!("{PROBES}[[mesh.member]]\nname = \"{name}\"\nhost = \"{host}\"\n{more}")
    };
    let probe = |more: &str| format!("[[mesh.probe]]\n{more}\n");
    for (own, more, words) in [
        (
            "self = \"x\"",
            PROBES.to_owned(),
            "line 5, `self = \"x\"`: no member of the mesh is called 'x'",
        ),
        (
            "",
            extra("d", "localhost", ""),
            "'a' and 'd' are both this machine",
        ),
        ("", extra("a", "240.0.0.9", ""), "'a' and 'a' are one"),
        ("", extra("d", "240.0.0.3", ""), "'c' and 'd' are one"),
        (
            "",
            extra("d → e", "240.0.0.9", ""),
            "without control characters and →",
        ),
        ("", extra("d", "240.0.0.9", "page = \"ftp://x\""), "page: "),
        (
            "",
            extra("d", "240.0.0.9", "page = \"http://x/y\""),
            "where plumb watch is",
        ),
        (
            "",
            extra("d", "240.0.0.9", "page_key_file = \"/k\""),
            "name that too",
        ),
        (
            "",
            extra(
                "d",
                "240.0.0.9",
                "page = \"http://x/\"\npage_key_file = \"k\"",
            ),
            "whole path",
        ),
        ("", extra("d", "240.0.0.9", "hots = 1"), "unknown field"),
        ("", String::new(), "measures 1 to 12 things"),
        (
            "",
            PROBES.repeat(2),
            "another probe of the mesh is called 'icmp'",
        ),
        ("", probe("every = \"1m\""), "it lacks probe"),
        (
            "",
            probe("probe = \"pigeon\""),
            "no probe is called 'pigeon'",
        ),
        (
            "",
            probe("probe = \"command\"\ncommand = [\"true\"]"),
            "measures no host",
        ),
        (
            "",
            probe("probe = \"icmp\"\nhost = \"h\""),
            "the members are the hosts",
        ),
        (
            "",
            probe("probe = \"rate\"\ndirection = \"down\""),
            "a row is measured from",
        ),
        (
            "",
            probe("probe = \"icmp\"\nevry = \"1m\""),
            "unknown field `evry`",
        ),
        (
            "",
            probe("probe = \"one-way\"\ndscp = [0, 64]"),
            "different numbers from 0 to 63",
        ),
        (
            "",
            probe("probe = \"one-way\"\ndscp = [8, 8]"),
            "different numbers from 0 to 63",
        ),
        (
            "",
            probe("probe = \"icmp\"\ndscp = [0]"),
            "unknown field `dscp`",
        ),
        (
            "",
            probe("probe = \"rate\"\nevery = \"5h\""),
            "a whole part of it",
        ),
        (
            "",
            probe("probe = \"rate\"\nevery = \"1m\""),
            "6 loads one after the other",
        ),
        (
            "",
            probe("probe = \"rate\"") + &probe("probe = \"load\"\nevery = \"12h\""),
            "one interval",
        ),
    ] {
        let why = parsed(own, &more).unwrap_err();
        assert!(why.contains(words), "{words}: {why}");
    }
    let text = "[store]\npath = \"w.db\"\n[mesh]\nname = \"m\"\n";
    let members = "[[mesh.member]]\nname = \"a\"\nhost = \"240.0.0.1\"\n[[mesh.member]]\nname = \"b\"\nhost = \"240.0.0.2\"\n";
    let why = |text: &str| Config::parse(text).unwrap_err().to_string();
    let none = why(&format!("{text}{members}{PROBES}"));
    assert!(none.contains("this machine is no member"), "{none}");
    let few = why(&format!("{text}{PROBES}"));
    assert!(
        few.contains("2 to 100 [[mesh.member]], and this one 0"),
        "{few}"
    );
}

#[test]
fn alarms_of_a_shared_file_name_rows_by_patterns() {
    let alarm = "[[alarm]]\nname = \"loss\"\nkind = \"threshold\"\nquantity = \"loss\"\nabove = \"5%\"\nover = \"30m\"\ntargets = [\"* → * icmp\"]\n";
    for own in ["a", "b", "c"] {
        let own = format!("self = \"{own}\"");
        parsed(&own, &format!("{PROBES}{alarm}")).unwrap();
    }
    let wrong = alarm.replace("icmp", "tcp");
    let why = parsed("", &format!("{PROBES}{wrong}")).unwrap_err();
    assert!(why.contains("no target is called '* → * tcp'"), "{why}");
}
