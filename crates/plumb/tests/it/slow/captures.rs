//! Classes of segments on forty lines, beside what each line did to every packet.

use crate::capture_truth::of_lines;

/// What a line does to packets besides its rate and its delay.
const HARMS: [&str; 5] = [
    "",
    r#"{ type = "loss", ratio = "0.5%" },"#,
    r#"{ type = "gilbert_elliott", p = "0.5%", r = "25%" },"#,
    r#"{ type = "reorder", ratio = "2%", extent = 5 },"#,
    r#"{ type = "strip_tcp_options", options = ["sack"] }, { type = "loss", ratio = "0.3%" },"#,
];

#[test]
#[ignore = "slow"]
fn forty_lines_have_the_classes_that_they_made() {
    let mut lines = Vec::new();
    for rate in ["5mbit", "20mbit", "50mbit", "100mbit"] {
        for delay in ["4ms", "35ms"] {
            for harm in HARMS {
                let line = |harm: &str| {
                    format!(
                        r#"{harm} {{ type = "shaper", rate = "{rate}", queue = {{ type = "fifo", limit = "80p" }} }}, {{ type = "delay", delay = "{delay}" }}"#
                    )
                };
                lines.push((line(harm), line("")));
            }
        }
    }
    let pairs: Vec<_> = lines
        .iter()
        .map(|(up, down)| (up.as_str(), down.as_str()))
        .collect();
    let tallies = of_lines(&pairs);
    println!("{tallies:?}");
    for (class, tally) in &tallies {
        assert!(
            tally.right >= 100 && tally.least() >= 0.99,
            "{class}: {tallies:?}"
        );
    }
}
