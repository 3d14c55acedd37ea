//! What `contrib` has for Prometheus and Grafana, in a real Prometheus that scrapes a real `plumb watch`; and one to which that
//! sends by itself.

use std::fs;
use std::process::Command;

use crate::common::{PLUMB, need_root, output_of, repository, stderr, stdout};

/// One target answers, and the other's port is closed.
const WATCHED: &str = r#"
[store]
path = "w.db"

[page]
listen = "127.0.0.1:7590"

[[target]]
name = "alive"
host = "127.0.0.1"
probe = "icmp"
every = "1s"
more_often_than_10s = true

[[target]]
name = "dead"
host = "127.0.0.1"
port = 9
probe = "tcp"
every = "1s"
more_often_than_10s = true
"#;

const CONFIGURATION: &str = r#"
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [plumb-watch.rules.yml]
scrape_configs:
  - job_name: plumb-watch
    static_configs: [{targets: ["127.0.0.1:7590"]}]
"#;

/// In a network namespace of its own, so that no port is taken. Both end with it.
const SCRIPT: &str = r#"
cd "$FOLDER"
ip link set lo up
"$PLUMB" watch w.toml > watch.said 2>&1 &
prometheus --config.file=p.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9090 > prometheus.said 2>&1 &
trap 'kill %1 %2; wait' EXIT
python3 "$QUERIES" plumb-watch.rules.yml "$DASHBOARD"
status=$?
[ "$status" = 0 ] || tail -n 20 watch.said prometheus.said >&2
exit "$status"
"#;

#[test]
#[ignore = "slow: needs Prometheus"]
fn every_query_of_the_rules_and_the_dashboard_has_an_answer() {
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let contrib = repository().join("contrib");
    fs::write(folder.path().join("w.toml"), WATCHED).unwrap();
    fs::write(folder.path().join("p.yml"), CONFIGURATION).unwrap();
    fs::copy(
        contrib.join("prometheus/plumb-watch.rules.yml"),
        folder.path().join("plumb-watch.rules.yml"),
    )
    .unwrap();
    let queries = repository().join("crates/plumb/tests/it/slow/prometheus.py");
    let output = output_of(
        Command::new("unshare")
            .args(["--net", "bash", "-c", SCRIPT])
            .env("FOLDER", folder.path())
            .env("PLUMB", PLUMB)
            .env("QUERIES", queries)
            .env("DASHBOARD", contrib.join("grafana/plumb-watch.json")),
    );
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("7 rules, 13 panels"), "{said}");
}

/// Where the metrics are sent.
const REMOTE_WRITE: &str = r#"
[remote_write]
url = "http://127.0.0.1:9090/api/v1/write"
interval = "1s"
labels = { instance = "here" }
"#;

/// Prometheus is there later than plumb; then a target goes.
const SENT: &str = r#"
cd "$FOLDER"
ip link set lo up
"$PLUMB" watch w.toml > watch.said 2>&1 &
trap 'kill $(jobs -p); wait' EXIT
for _ in $(seq 100); do
    ! grep -q 'nothing is sent yet' watch.said || break
    sleep 0.1
done
sleep 3
since=$(date +%s.%N)
prometheus --config.file=p.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9090 \
    --web.enable-remote-write-receiver > prometheus.said 2>&1 &
python3 "$QUERIES" --sent "$since" && {
    cp without.toml w.toml
    kill -HUP %1
    python3 "$QUERIES" --gone dead
}
status=$?
[ "$status" = 0 ] || tail -n 20 watch.said prometheus.said >&2
! grep 'refused, and dropped' watch.said || exit 1
exit "$status"
"#;

#[test]
#[ignore = "slow: needs Prometheus"]
fn what_is_sent_arrives_and_what_is_gone_is_gone() {
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (without, _) = WATCHED.rsplit_once("[[target]]").unwrap();
    fs::write(path.join("w.toml"), format!("{WATCHED}{REMOTE_WRITE}")).unwrap();
    fs::write(
        path.join("without.toml"),
        format!("{without}{REMOTE_WRITE}"),
    )
    .unwrap();
    fs::write(path.join("p.yml"), "global: {}\n").unwrap();
    let queries = repository().join("crates/plumb/tests/it/slow/prometheus.py");
    let output = output_of(
        Command::new("unshare")
            .args(["--net", "bash", "-c", SENT])
            .env("FOLDER", path)
            .env("PLUMB", PLUMB)
            .env("QUERIES", queries),
    );
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{said}");
}
