//! Two machines, a link, and what is measured over it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use plumb_lab::stats::LabStats;
use plumb_model::distribution::Distribution;
use plumb_model::run::Run;
use plumb_net::tc::Qdisc;
use serde_json::Value;

use crate::common::{PLUMB, stderr, stdout};

/// Two machines and one link between them.
pub(crate) const TWO: &str = r#"
name = "two"
summary = "two machines"
[[node]]
name = "client"
[[node]]
name = "server"
[[service]]
node = "server"
run = ["iperf3", "--server"]
port = 5201
"#;

/// A file that goes when it is dropped.
pub(crate) struct ScenarioFile(tempfile::TempDir);

impl ScenarioFile {
    pub(crate) fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.toml"), text).unwrap();
        Self(folder)
    }

    /// [`TWO`] with a link of these cells each way.
    pub(crate) fn two(up: &str, down: &str) -> Self {
        Self::new(&format!(
            "{TWO}\n[[link]]\nname = \"line\"\nbetween = [\"client\", \"server\"]\nup = [{up}]\ndown = [{down}]\n"
        ))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("scenario.toml")
    }

    pub(crate) fn stats(&self) -> LabStats {
        let text = fs::read_to_string(self.0.path().join("stats.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command in the network and returns what it printed.
    pub(crate) fn run(&self, backend: &str, command: &[&str]) -> String {
        let stats = self.0.path().join("stats.json");
        let output = Command::new(PLUMB)
            .args(["lab", "run", "--backend", backend, "--stats"])
            .args([stats, self.path()])
            .arg("--")
            .args(command)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}{}",
            stdout(&output),
            stderr(&output)
        );
        stdout(&output)
    }

    /// Round trips of `count` probes, one every millisecond.
    pub(crate) fn ping(&self, backend: &str, count: u64) -> Pinged {
        let count_text = count.to_string();
        let run = self.run(
            backend,
            &[
                "plumb",
                "ping",
                "--json",
                "-i",
                "1ms",
                "-c",
                &count_text,
                "server",
            ],
        );
        Pinged::read(&run)
    }

    /// Payload rate that the server received, without the first two seconds, in bit/s.
    pub(crate) fn iperf(&self, backend: &str, options: &[&str]) -> f64 {
        let mut command = vec!["iperf3", "--json", "-C", "cubic", "-O", "2", "-c", "server"];
        command.extend(options);
        received(&self.run(backend, &command))
    }
}

pub(crate) fn received(iperf: &str) -> f64 {
    let report: Value = serde_json::from_str(iperf).unwrap();
    report["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap_or_else(|| panic!("{report}"))
}

/// Round trips, and how many were lost.
#[derive(Debug)]
pub(crate) struct Pinged {
    pub(crate) rtt_s: Distribution,
    pub(crate) sent: u64,
}

impl Pinged {
    pub(crate) fn read(run: &str) -> Self {
        Run::from_json(run).unwrap();
        let run: Value = serde_json::from_str(run).unwrap();
        let result = &run["measurements"][0]["result"];
        Self {
            rtt_s: serde_json::from_value(result["rtt_s"].clone()).unwrap(),
            sent: result["sent"].as_u64().unwrap(),
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        self.sent - self.rtt_s.count
    }
}

/// For `make bench`: a line that vm/run.sh collects.
pub(crate) fn bench(what: &str, by: &str, pinged: &Pinged) {
    let Distribution {
        mean,
        stddev,
        p50,
        p99,
        ..
    } = pinged.rtt_s;
    let (sent, lost) = (pinged.sent, pinged.lost());
    println!(
        "\nvm-bench: {{\"what\":\"{what}\",\"by\":\"{by}\",\"sent\":{sent},\"lost\":{lost},\"rtt_mean_s\":{mean:.7},\"rtt_stddev_s\":{stddev:.7},\"rtt_p50_s\":{p50:.7},\"rtt_p99_s\":{p99:.7}}}"
    );
}

/// How many of `n` independent events of probability `p` may happen: four standard deviations on
/// either side, which a true kernel leaves in one run of 16,000.
pub(crate) fn expected(n: u64, p: f64) -> std::ops::RangeInclusive<f64> {
    let mean = n as f64 * p;
    let four = 4.0 * (mean * (1.0 - p)).sqrt();
    mean - four..=mean + four
}

pub(crate) fn kinds(qdiscs: &[Qdisc]) -> Vec<&str> {
    qdiscs.iter().map(|q| q.kind.as_str()).collect()
}
