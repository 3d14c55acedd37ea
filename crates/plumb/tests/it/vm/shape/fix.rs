//! The commands that a finding has for a router with Linux: tc takes them, and lists the queue that they say.

use plumb_host::render::commands;
use plumb_model::direction::OneDirection;
use plumb_model::finding::{Action, ShaperAction};
use plumb_model::framing::Cells;
use serde_json::json;

use super::{Home, LINE, run, shell};
use crate::common::stdout;

/// In the command that shapes by CAKE.
const CAKE: &str = " root cake ";

#[test]
#[ignore = "runs in the virtual machine"]
fn tc_takes_what_a_finding_says_for_linux() {
    let home = Home::new();
    let before = home.state();
    for (direction, device) in [(OneDirection::Up, LINE), (OneDirection::Down, "ifb0")] {
        // On a line of PTM HTB gets 64/65 of the rate, and CAKE counts it by itself.
        for (cells, htb, cake) in [
            (Cells::None, "18900Kbit", "noatm"),
            (Cells::Atm, "18900Kbit", "atm"),
            (Cells::Ptm, "18609Kbit", "ptm"),
        ] {
            let lines = commands(&Action::Shaper(ShaperAction {
                direction,
                rate_bps: 18_900_000,
                overhead_bytes: 30,
                mpu_bytes: 64,
                cells,
                qdisc: "fq_codel".to_owned(),
            }));
            let script = format!("set -e\n{}", lines.join("\n")).replace("WAN=eth0", "WAN=wan");
            shell(&home.router, &script);
            let classes = stdout(&run(
                &home.router,
                "tc",
                &["-d", "class", "show", "dev", device],
            ));
            let is = |words: &str| assert!(classes.contains(words), "no {words}: {classes}");
            is(&format!("rate {htb} "));
            is(&format!("ceil {htb} "));
            is("overhead 16");
            assert_eq!(classes.contains("linklayer atm"), cells == Cells::Atm);
            let kinds: Vec<_> = home
                .qdiscs(device)
                .iter()
                .map(|q| q["kind"].clone())
                .collect();
            assert!(kinds.contains(&json!("htb")) && kinds.contains(&json!("fq_codel")));

            let instead: Vec<&String> = lines.iter().filter(|l| l.contains(CAKE)).collect();
            assert_eq!(instead.len(), 1, "{lines:?}");
            shell(&home.router, &format!("WAN={LINE}\n{}", instead[0]));
            let qdiscs = home.qdiscs(device);
            let root = qdiscs.iter().find(|q| q["root"] == true).unwrap();
            assert_eq!(root["kind"], "cake");
            let options = &root["options"];
            let listed = ["bandwidth", "overhead", "mpu", "atm"].map(|name| options[name].clone());
            assert_eq!(
                listed,
                [json!(18_900_000 / 8), json!(30), json!(64), json!(cake)]
            );

            let gone = match direction {
                OneDirection::Up => "tc qdisc del dev wan root",
                OneDirection::Down => "tc qdisc del dev wan ingress && ip link del ifb0",
            };
            shell(&home.router, gone);
            assert_eq!(home.state(), before);
        }
    }
}
