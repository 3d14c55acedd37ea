#![allow(clippy::unwrap_used)]

use plumb_model::direction::OneDirection;
use plumb_model::framing::Cells;
use plumb_model::vocabulary::Vocabulary as _;

use super::*;

const COLUMNS: usize = 76;

fn shaper(direction: OneDirection) -> ShaperAction {
    ShaperAction {
        direction,
        rate_bps: 18_900_000,
        overhead_bytes: 18,
        mpu_bytes: 64,
        cells: Cells::None,
        qdisc: "fq_codel".into(),
    }
}

fn text(direction: OneDirection, router: Router) -> String {
    lines(&[shaper(direction)], router).join("\n")
}

#[test]
fn every_router_has_the_rate_of_the_direction_and_says_where_it_is_from() {
    for (router, word) in Router::WORDS {
        for direction in [OneDirection::Up, OneDirection::Down] {
            let text = text(direction, *router);
            // 18.9 Mbit/s, or of IP packets alone 18.9 * 1500 / 1518 = 18.67, to what the menu takes.
            let rates = ["18900", "18675", "18.9", "18.6"];
            assert!(
                rates.iter().any(|rate| text.contains(rate)),
                "{word}: {text}"
            );
            let tried = matches!(router, Router::Linux | Router::Generic);
            assert_eq!(
                text.contains("Not tried on a device") && text.contains("read 2026-"),
                !tried,
                "{word}: {text}"
            );
        }
        assert_ne!(
            text(OneDirection::Up, *router),
            text(OneDirection::Down, *router),
            "{word}"
        );
    }
}

#[test]
fn what_people_type_into_menus_fits_a_screen_and_is_never_cut() {
    for (router, word) in Router::WORDS {
        // What is pasted into a shell may be longer: it is continued there.
        let shell = of(*router).source.is_none_or(|source| source.shell);
        if shell && *router != Router::Generic {
            continue;
        }
        for line in lines(&[shaper(OneDirection::Down)], *router) {
            assert!(line.chars().count() <= COLUMNS, "{word}: {line}");
        }
    }
}

#[test]
fn a_direction_does_not_switch_the_other_one_off() {
    let up = text(OneDirection::Up, Router::Openwrt);
    assert!(up.contains("sqm.wan.upload=18900"), "{up}");
    assert!(
        up.contains("get sqm.wan.download || uci set sqm.wan.download=0"),
        "{up}"
    );
    let down = text(OneDirection::Down, Router::Openwrt);
    assert!(down.contains("sqm.wan.download=18900"), "{down}");
}

#[test]
fn without_a_managed_queue_it_says_so_and_what_to_do() {
    for direction in [OneDirection::Up, OneDirection::Down] {
        let text = text(direction, Router::Fritzbox);
        assert!(
            text.contains("no managed queue") && text.contains("OpenWrt"),
            "{text}"
        );
    }
}

#[test]
fn a_floating_rule_has_the_gateway_that_its_form_demands() {
    for direction in [OneDirection::Up, OneDirection::Down] {
        let text = text(direction, Router::Pfsense);
        assert!(
            text.contains("Direction: out") && text.contains("Gateway: the WAN's"),
            "{text}"
        );
    }
}

#[test]
fn plain_words_have_no_commands() {
    let text = text(OneDirection::Up, Router::Generic);
    assert!(
        text.contains("CAKE or FQ-CoDel") && text.contains("upload 18900 kbit/s"),
        "{text}"
    );
    assert!(!text.contains("tc ") && !text.contains('$'), "{text}");
}

#[test]
fn on_ethernet_its_header_is_not_counted_twice() {
    let text = text(OneDirection::Up, Router::Linux);
    assert!(
        text.contains("rate 18900kbit ceil 18900kbit overhead 4 mpu 64"),
        "{text}"
    );
    assert!(
        text.contains("cake bandwidth 18900kbit overhead 18 mpu 64"),
        "{text}"
    );
}

#[test]
fn on_a_line_of_ptm_a_shaper_that_cannot_count_it_has_less_of_the_rate() {
    let ptm = ShaperAction {
        cells: Cells::Ptm,
        ..shaper(OneDirection::Up)
    };
    for (router, rate) in [
        (Router::Linux, "htb rate 18609kbit ceil 18609kbit"),
        (
            Router::Linux,
            "cake bandwidth 18900kbit overhead 18 mpu 64 ptm",
        ),
        (Router::Openwrt, "sqm.wan.upload=18609"),
    ] {
        let text = lines(std::slice::from_ref(&ptm), router).join("\n");
        assert!(text.contains(rate), "{text}");
    }
}

#[test]
fn both_directions_are_set_in_one_go() {
    let both = [shaper(OneDirection::Up), shaper(OneDirection::Down)];
    for (router, word) in Router::WORDS {
        let lines = lines(&both, *router);
        let text = lines.join("\n");
        assert_eq!(
            text.matches("Not tried").count(),
            usize::from(of(*router).source.is_some())
        );
        for direction in [OneDirection::Up, OneDirection::Down] {
            let alone = self::text(direction, *router);
            let own = alone
                .lines()
                .find(|line| line.contains("18900") || line.contains("18675"));
            let own = own.filter(|_| *router != Router::Generic);
            assert!(own.is_none_or(|own| text.contains(own)), "{word}: {text}");
        }
    }
    let linux = lines(&both, Router::Linux).join("\n");
    assert_eq!(linux.matches("WAN=eth0").count(), 1, "{linux}");
    let openwrt = lines(&both, Router::Openwrt).join("\n");
    assert!(
        openwrt.contains("sqm.wan.upload=18900\nuci set sqm.wan.download=18900"),
        "{openwrt}"
    );
    assert!(!openwrt.contains("=0\n"), "{openwrt}");
    let generic = lines(&both, Router::Generic).join("\n");
    assert!(
        generic.contains("upload 18900 kbit/s, download 18900 kbit/s"),
        "{generic}"
    );
}

#[test]
fn commands_survive_copying() {
    let both = [shaper(OneDirection::Up), shaper(OneDirection::Down)];
    for (router, word) in Router::WORDS {
        if of(*router).source.is_some_and(|source| !source.shell) {
            continue;
        }
        for line in lines(&both, *router) {
            let comment = line.find(" #");
            assert!(line.starts_with('#') || comment.is_none(), "{word}: {line}");
        }
    }
    let linux = lines(&both, Router::Linux);
    let at = |what: &str| linux.iter().position(|line| line.contains(what)).unwrap();
    assert!(at("cake bandwidth") < at("htb"), "{linux:?}");
    assert!(linux.iter().all(|line| !line.contains("&&")), "{linux:?}");
}
