use proptest::prelude::*;

use super::*;
use crate::unit::Unit;

const HEAD: &str = "[store]\npath = \"w.db\"\n";

fn error(targets: &str) -> String {
    Config::parse(&format!("{HEAD}{targets}"))
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_left_out_has_a_usual_value() {
    let text = format!("{HEAD}[[target]]\nname = \"gw\"\nhost = \"192.0.2.1\"\nprobe = \"icmp\"\n");
    let config = Config::parse(&text).unwrap();
    assert_eq!(config.listen, LISTEN);
    let target = config.targets.first().unwrap();
    assert_eq!((target.every, target.probe), (EVERY, "icmp"));
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_words() {
    let target =
        |more: &str| format!("[[target]]\nname = \"a\"\nhost = \"h\"\nprobe = \"icmp\"\n{more}\n");
    let cases = [
        (
            target("evry = \"10s\""),
            "line 7, `evry = \"10s\"`: unknown field `evry`",
        ),
        (
            target("every = \"never\""),
            "line 7, `every = \"never\"`: write an interval",
        ),
        (
            target("every = \"1s\""),
            "line 7, `every = \"1s\"`: others' hosts",
        ),
        (target("every = \"1ms\""), "between 100ms and 24h"),
        (target("port = 5"), "icmp has no ports"),
        (target("insecure = true"), "it is for https alone"),
        (
            target("").replace("icmp", "carrier pigeon"),
            "no probe is called 'carrier pigeon'",
        ),
        (target("").replace("icmp", "tcp"), "tcp needs a port"),
        (
            target("").repeat(2),
            "line 9, `name = \"a\"`: line 4 has a target of that name",
        ),
        (
            target("") + &target("").replace("\"a\"", "\"b\""),
            "the target 'a' probes the same",
        ),
        (
            target("").replace("\"h\"", "\"\""),
            "write the name or the address of one host",
        ),
        ("".into(), "it watches nothing"),
        (
            target("every = \"20s\"")
                + &target("every = \"15s\"\nport = 80")
                    .replace("\"a\"", "\"b\"")
                    .replace("icmp", "tcp"),
            "line 10, `host = \"h\"`: with this target h is probed more often than once in 10s",
        ),
        ("[[target".into(), "line 3, `[[target`"),
    ];
    for (text, expected) in cases {
        let said = error(&text);
        assert!(said.contains(expected), "{text}\n{said}");
    }
}

#[test]
fn a_host_that_is_near_may_be_probed_often() {
    let text =
        "[[target]]\nname = \"a\"\nhost = \"192.168.1.1\"\nprobe = \"icmp\"\nevery = \"1s\"\n";
    Config::parse(&format!("{HEAD}{text}")).unwrap();
    let often = text.replace("192.168.1.1", "h") + "more_often_than_10s = true\n";
    Config::parse(&format!("{HEAD}{often}")).unwrap();
}

#[test]
fn a_strangers_host_may_have_several_probes_that_are_seldom() {
    let target = |name: &str, probe: &str| {
        format!(
            "[[target]]\nname = \"{name}\"\nhost = \"h\"\nprobe = \"{probe}\"\nevery = \"30s\"\n"
        )
    };
    let text = ["icmp", "http", "https"]
        .map(|probe| target(probe, probe))
        .concat();
    let config = Config::parse(&format!("{HEAD}{text}")).unwrap();
    assert_eq!(config.summary(), "3 targets, 0.10 probes a second");
}

/// Two targets, and what is wrong after them.
fn error_after_targets(more: &str) -> String {
    let targets = "[[target]]\nname = \"a\"\nhost = \"h\"\nprobe = \"icmp\"\n\
                   [[target]]\nname = \"b\"\nhost = \"i\"\nprobe = \"icmp\"\nevery = \"1m\"\n";
    error(&format!("{targets}{more}"))
}

#[test]
fn what_is_wrong_with_alarms_and_maintenance_is_said() {
    let alarm = |more: &str| format!("[[alarm]]\nname = \"x\"\n{more}\n");
    let loss = "kind = \"threshold\"\nquantity = \"loss\"\nabove = \"5%\"\n";
    let cases = [
        (
            alarm("kind = \"omen\""),
            "line 14, `kind = \"omen\"`: alarm 'x': no rule is of kind 'omen'; there are threshold, pattern, change",
        ),
        (
            alarm(&format!("{loss}over = \"5m\"\nabvoe = 1")),
            "unknown field `abvoe`",
        ),
        (alarm(loss), "missing field `over`"),
        (
            alarm(&format!("{loss}over = \"5m\"\ntargets = [\"c\"]")),
            "line 18, `targets = [\"c\"]`: no target is called 'c'",
        ),
        (
            alarm(&format!("{loss}over = \"5m\"\ntargets = []")),
            "it lists no target",
        ),
        (
            alarm(&format!("{loss}over = \"1m\"")),
            "fewer than 3 probes of 'b'",
        ),
        (
            alarm(&format!("{loss}over = \"25h\"")),
            "over is a time from 60 s to 86400 s",
        ),
        (
            alarm(&format!("{loss}over = \"5m\"\nraise_after = \"soon\"")),
            "raise_after is a time",
        ),
        (
            alarm(&format!("{loss}over = \"5m\"")).repeat(2),
            "another alarm is called 'x'",
        ),
        (
            alarm("kind = \"pattern\"\npattern = \">0%,>5ms\"\ntargets = [\"a\"]"),
            "of losses or of round trips, not of both",
        ),
        (
            alarm("kind = \"change\"\nquantity = \"loss\""),
            "a change is of the median or of p95",
        ),
        (
            alarm("kind = \"change\"\ndays = 5\nleast_days = 6"),
            "least_days is a number from 3 to days",
        ),
        (
            "[[deliver]]\nname = \"m\"\nkind = \"pigeon\"".into(),
            "line 14, `kind = \"pigeon\"`: delivery 'm': no delivery is of kind 'pigeon'",
        ),
        (
            "[[deliver]]\nname = \"m\"\nkind = \"exec\"\ncommand = []".into(),
            "the command is empty",
        ),
        (
            "[[deliver]]\nname = \"m\"\nkind = \"webhook\"\nurl = \"http://h/\"\ninsecure = true"
                .into(),
            "insecure is for https alone",
        ),
        (
            "[[deliver]]\nname = \"m\"\nkind = \"webhook\"\nurl = \"h\"".into(),
            "delivery 'm': ",
        ),
        (
            "behind = \"c\"".into(),
            "line 12, `behind = \"c\"`: no target is called 'c'",
        ),
        ("behind = \"b\"".into(), "'b' would be behind itself"),
        (
            "[[maintenance]]\nfrom = \"03:00\"\nuntil = \"03:00\"".into(),
            "line 13, `from = \"03:00\"`: the maintenance begins and ends",
        ),
        (
            "[[maintenance]]\nfrom = \"03:00\"\nuntil = \"04:00\"\nday = []".into(),
            "unknown field `day`",
        ),
    ];
    for (more, expected) in cases {
        let said = error_after_targets(&more);
        assert!(said.contains(expected), "{more}\n{said}");
    }
    let slow_router = "[[target]]\nname = \"a\"\nhost = \"h\"\nprobe = \"icmp\"\nbehind = \"b\"\n\
                       [[target]]\nname = \"b\"\nhost = \"i\"\nprobe = \"icmp\"\nevery = \"1m\"\n";
    let said = error(slow_router);
    assert!(said.contains("probed more seldom than 'a'"), "{said}");
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused(text in "[ -~\\n\\t\\u{e9}\\u{4e2d}]{0,200}") {
        let _ = Config::parse(&text);
        let _ = Config::parse(&format!("{HEAD}[[target]]\n{text}"));
    }
}

#[test]
fn each_kind_is_read_and_refuses_what_is_of_another() {
    let target = |probe: &str, more: &str| {
        let host = match probe {
            "command" => "",
            _ => "host = \"192.168.1.1\"\n",
        };
        format!("[[target]]\nname = \"a\"\n{host}probe = \"{probe}\"\n{more}\n")
    };
    for (probe, more, unit) in [
        ("stamp", "", Unit::Seconds),
        ("udp", "port = 7000", Unit::Seconds),
        ("udp-port", "port = 7", Unit::Seconds),
        ("irtt", "", Unit::Seconds),
        ("one-way", "direction = \"up\"", Unit::Seconds),
        ("path", "", Unit::Seconds),
        ("smtp", "", Unit::Seconds),
        ("certificate", "", Unit::Days),
        ("radius", "secret_file = \"/f\"", Unit::Seconds),
        ("load", "", Unit::Seconds),
        ("rate", "direction = \"down\"", Unit::BitsPerSecond),
        ("command", "command = [\"true\"]", Unit::Number),
    ] {
        let config = Config::parse(&format!("{HEAD}{}", target(probe, more))).unwrap();
        let read = config.targets.first().unwrap();
        assert_eq!((read.probe, read.kind.unit()), (probe, unit));
        let said = error(&target(probe, &format!("{more}\nflavour = 1")));
        assert!(said.contains("unknown field `flavour`"), "{said}");
    }
    for (text, words) in [
        (target("one-way", ""), "it lacks direction"),
        (
            format!("[page]\nproxy_header = \"X-User\"\n{}", target("icmp", "")),
            "`[page]`: proxy_header and proxies belong together",
        ),
        (
            format!("[remote_write]\nurl = \"h\"\n{}", target("icmp", "")),
            "`url = \"h\"`: ",
        ),
        (target("udp-port", ""), "udp-port needs a port"),
        (
            target("command", "command = []"),
            "`command = []`: the command is empty",
        ),
        (
            target("command", "command = [\"true\"]\nhost = \"h\""),
            "command measures no host",
        ),
        (
            target("rate", "direction = \"up\"\nevery = \"20s\""),
            "`every = \"20s\"`: a path is loaded a tenth of the time",
        ),
        (
            target("path", "every = \"20s\"").replace("192.168.1.1", "h"),
            "more often than once in 10s",
        ),
    ] {
        let said = error(&text);
        assert!(said.contains(words), "{text}\n{said}");
    }
}

#[test]
fn values_have_alarms_of_their_own() {
    let days = "[[target]]\nname = \"tls\"\nhost = \"192.168.1.1\"\nprobe = \"certificate\"\n";
    let alarm = |quantity: &str, more: &str| {
        format!(
            "{days}[[alarm]]\nname = \"x\"\nkind = \"threshold\"\nquantity = \"{quantity}\"\nover = \"3h\"\n{more}\n"
        )
    };
    let text = alarm("value", "below = 14\ntargets = [\"tls\"]");
    Config::parse(&format!("{HEAD}{text}")).unwrap();
    for (text, words) in [
        (
            alarm("median", "above = \"80ms\"\ntargets = [\"tls\"]"),
            "unlike 'tls'",
        ),
        (
            alarm("value", "below = \"soon\""),
            "write a value as a number",
        ),
        (alarm("value", "below = 1\nabove = 2"), "write one limit"),
        (
            alarm("loss", "below = \"5%\""),
            "only a value has a limit below",
        ),
    ] {
        let said = error(&text);
        assert!(said.contains(words), "{text}\n{said}");
    }
    // Rules of round trips pass over what is none.
    let text = alarm("median", "above = \"80ms\"").replace("3h", "5m");
    Config::parse(&format!("{HEAD}{text}")).unwrap();
}

const DEVICE: &str = "[[device]]\nname = \"sw1\"\nhost = \"192.168.1.2\"\ncommunity_file = \"/etc/plumb/community\"\n";

#[test]
fn a_device_is_a_target_with_series() {
    let config = Config::parse(&format!("{HEAD}{DEVICE}")).unwrap();
    let device = config.targets.first().unwrap();
    assert_eq!(
        (device.probe, device.every),
        ("device", Duration::from_secs(60))
    );
    assert!(config.warnings.is_empty());
    let series = config.series("sw1 port Gi1/1 in use").unwrap();
    assert_eq!(
        (series.kind.unit(), series.behind.as_deref()),
        (Unit::Percent, Some("sw1"))
    );
    for name in ["sw1", "sw1 port Gi1/1", "sw2 uptime", "sw1uptime"] {
        assert!(config.series(name).is_none(), "{name}");
    }
    let text = format!(
        "{HEAD}{}",
        DEVICE.replace(
            "community_file = \"/etc/plumb/community\"",
            "community = \"public\""
        )
    );
    let warned = Config::parse(&text).unwrap().warnings;
    assert!(
        matches!(&warned[..], [words] if words.starts_with("sw1: its community stands in the file")),
        "{warned:?}"
    );
}

#[test]
fn what_is_wrong_with_a_device_is_named() {
    for (more, words) in [
        (
            "every = \"500ms\"",
            "a device is asked every second at most",
        ),
        ("probe = \"icmp\"", "unknown field `probe`"),
        ("ports = \"eth0\"", "invalid type"),
        (
            "[[target]]\nname = \"sw1 uptime\"\nhost = \"192.168.1.3\"\nprobe = \"icmp\"",
            "the name of a series of 'sw1'",
        ),
        (
            "[[alarm]]\nname = \"a\"\nkind = \"threshold\"\nquantity = \"value\"\nabove = 1\nover = \"10m\"\n\
             targets = [\"sw1 port eth0\"]",
            "no target is called 'sw1 port eth0'",
        ),
        (
            "[[alarm]]\nname = \"a\"\nkind = \"threshold\"\nquantity = \"median\"\nabove = \"1s\"\nover = \"10m\"\n\
             targets = [\"sw1 port * in\"]",
            "unlike 'sw1 port * in'",
        ),
    ] {
        let why = error(&format!("{DEVICE}{more}\n"));
        assert!(why.contains(words), "{more}: {why}");
    }
    assert!(
        error("[[target]]\nname = \"a\"\nhost = \"h\"\nprobe = \"device\"\n")
            .contains("no probe is called 'device'")
    );
}

#[test]
fn flows_have_their_exporters_and_usual_values() {
    let flows = |more: &str| {
        let text = format!("{HEAD}[[flows]]\nname = \"core\"\nlisten = \"0.0.0.0:2055\"\n{more}\n");
        Config::parse(&text)
    };
    let config = flows("exporters = [\"10.0.0.1\", \"2001:db8::/32\"]").unwrap();
    let source = config.flows.first().unwrap();
    assert_eq!((source.hosts, source.top, source.one_in), (false, 50, 1.0));
    assert_eq!(source.exporters.len(), 2);
    assert!(
        config
            .summary()
            .ends_with("flows that are sent to 0.0.0.0:2055"),
        "{}",
        config.summary()
    );
    let exporters = "exporters = [\"10.0.0.1\"]\n";
    for (more, words) in [
        ("", "it lacks exporters = "),
        ("exporters = []", "name 1 to 1000 addresses or prefixes"),
        (
            "exporters = [\"router\"]",
            "`exporters = [\"router\"]`: 'router': write an address",
        ),
        (&format!("{exporters}top = 0"), "top is 1 to 1000"),
        (&format!("{exporters}sampling = 0"), "sampling is 100 where"),
        (&format!("{exporters}hosts = 1"), "invalid type"),
        (
            &format!("{exporters}host = \"h\""),
            "unknown field `host` of [[flows]]",
        ),
        (
            &format!("{exporters}[[flows]]\nname = \"b\"\nlisten = \"0.0.0.0:2055\"\n{exporters}"),
            "'core' listens at 0.0.0.0:2055 already",
        ),
        (
            &format!(
                "{exporters}[[flows]]\nname = \"core\"\nlisten = \"0.0.0.0:2056\"\n{exporters}"
            ),
            "other [[flows]] are called 'core'",
        ),
    ] {
        let why = flows(more).unwrap_err().to_string();
        assert!(why.contains(words), "{more}: {why}");
    }
    assert!(
        error("[[flows]]\nname = \"a\"\nlisten = \"2055\"")
            .contains("write an address of this host")
    );
    assert!(error("").contains("it watches nothing"));
}
