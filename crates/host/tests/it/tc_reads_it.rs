//! tc reads the commands of a shaper, in a network namespace without a line: what the running kernel lacks is refused by the
//! kernel (status 2), and a word that tc does not know by tc itself (status 1).

use std::process::Command;

use plumb_host::render::commands;
use plumb_model::direction::OneDirection;
use plumb_model::finding::{Action, ShaperAction};
use plumb_model::framing::Cells;

fn status(line: &str) -> (i32, String) {
    let script = format!(
        "ip link add eth0 type veth peer name ifb0 && ip link set eth0 up && ip link set ifb0 up; \
         WAN=eth0; {line}"
    );
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), text)
}

#[test]
fn every_line_of_a_shaper() {
    let directions = [OneDirection::Up, OneDirection::Down];
    let all = directions
        .map(|direction| [Cells::None, Cells::Atm, Cells::Ptm].map(|cells| (direction, cells)));
    for (direction, cells) in all.into_iter().flatten() {
        let action = Action::Shaper(ShaperAction {
            direction,
            rate_bps: 18_900_000,
            overhead_bytes: 18,
            mpu_bytes: 64,
            cells,
            qdisc: "fq_codel".into(),
        });
        let lines = commands(&action);
        let tc = lines.iter().filter_map(|line| {
            let at = line.find("tc ")?;
            line.get(at..)
        });
        let tc: Vec<&str> = tc.collect();
        assert!(tc.len() >= 4, "{lines:?}");
        for line in tc {
            let (status, text) = status(line);
            assert_ne!(status, 1, "{line}: {text}");
            assert!(!text.contains("Cannot find device"), "{line}: {text}");
        }
    }
    let (told, text) = status("tc qdisc replace dev $WAN root fq_codel sensible");
    assert_eq!(told, 1, "{text}");
}
