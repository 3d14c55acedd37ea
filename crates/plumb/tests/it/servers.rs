//! Far ends that nobody typed: the servers of a list, and what becomes of them without consent.

use std::fs;
use std::path::Path;

use plumb_model::run::Run;
use tempfile::TempDir;

use crate::common::network::Network;

/// Of each direction: slow, so that many such tests fit beside each other.
const LINE: &str = r#"{ type = "shaper", rate = "10mbit", queue = { type = "fifo", limit = "40ms" } }, { type = "delay", delay = "10ms" }"#;

/// What M-Lab's locate service answers, with the responder for the nearest server and one before it that cannot be found.
const NEAREST: &str = r#"{"results": [
    {"machine": "gone", "urls": {"wss:///ndt/v7/download": "wss://no.such.host/d", "wss:///ndt/v7/upload": "wss://no.such.host/u"}},
    {"machine": "near", "urls": {"wss:///ndt/v7/download": "wss://near:4043/ndt/v7/download?access_token=a", "wss:///ndt/v7/upload": "wss://near:4043/ndt/v7/upload?access_token=b"}}]}"#;

/// A network in which `server` has the locate service, and `near` a responder; the folder of its files, and of settings.
fn network() -> (Network, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("plumb")).unwrap();
    fs::write(folder.path().join("nearest.json"), NEAREST).unwrap();
    let mut network = Network::served_line(LINE, LINE);
    network.set("client", "forward = false").node("near", "");
    network.serves("near");
    network.link(
        "to-near",
        ["client", "near"],
        &format!("up = [{LINE}]\ndown = [{LINE}]"),
    );
    let path = folder.path().display().to_string();
    let serve = [
        "/usr/bin/python3",
        "-m",
        "http.server",
        "8000",
        "--directory",
        &path,
    ];
    network.service("server", &serve, 8000);
    (network, folder)
}

fn write(folder: &TempDir, file: &str, text: &str) {
    fs::write(folder.path().join("plumb").join(file), text).unwrap();
}

/// What `plumb check` printed, and said.
fn check(network: &Network, settings: &Path, options: &str) -> (String, String) {
    let home = settings.display();
    let script = format!(
        "export XDG_CONFIG_HOME={home}; plumb check --quick -t 2 --insecure {options} --json 2> {home}/said < /dev/null; cat {home}/said >&2"
    );
    let (printed, _) = network.script(&script);
    let said = fs::read_to_string(settings.join("said")).unwrap();
    (printed, said)
}

fn has_rates(run: &Run) -> bool {
    run.measurements
        .iter()
        .any(|m| m.outcome.throughput().is_some())
}

#[test]
fn a_public_server_is_measured_with_after_consent_alone() {
    let (network, settings) = network();
    let list = "[[server]]\nname = 'lab'\nprotocol = 'ndt7'\nhost = 'http://server:8000/nearest.json'\npublishes = 'It publishes all'\n";
    write(&settings, "servers.toml", list);

    let (run, said) = check(&network, settings.path(), "");
    let run: Run = serde_json::from_str(&run).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(!has_rates(&run), "measured without consent");
    assert!(said.contains("plumb explain far-end"), "{said}");

    let (run, said) = check(&network, settings.path(), "--server lab");
    assert!(run.is_empty(), "{run}");
    assert!(
        said.contains("It publishes all") && said.contains("lab = true"),
        "{said}"
    );

    write(&settings, "consent.toml", "lab = true\n");
    let (run, said) = check(&network, settings.path(), "");
    let run: Run = serde_json::from_str(&run).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(has_rates(&run), "{said}");
    let target = run.target.as_ref().unwrap();
    assert_eq!(target.name, "near:4043");
    let note = run.notes.first().unwrap();
    assert!(note.contains("'lab'") && note.contains("agreed"), "{note}");
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("a second one in another network"))
    );
}

#[test]
fn the_first_of_ones_own_servers_that_answers_is_measured_with() {
    let (network, settings) = network();
    let list = "[[server]]\nname = 'dead'\nprotocol = 'native'\nhost = 'near:9'\n\
                [[server]]\nname = 'own'\nprotocol = 'native'\nhost = 'near'\n";
    write(&settings, "servers.toml", list);
    let (run, said) = check(&network, settings.path(), "");
    let run: Run = serde_json::from_str(&run).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(has_rates(&run), "{said}");
    assert_eq!(run.target.as_ref().unwrap().name, "near");
    assert!(said.contains("'dead' (near:9) does not answer"), "{said}");

    // A web server without a port is looked for on that of HTTPS and on that of `plumb serve`.
    let web = "[[server]]\nname = 'web'\nprotocol = 'http'\nhost = 'near'\n";
    write(&settings, "servers.toml", &(web.to_owned() + list));
    let (run, said) = check(&network, settings.path(), "");
    let run: Run = serde_json::from_str(&run).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(has_rates(&run) && said.contains("'web' (near)"), "{said}");

    let (_, said) = check(&network, settings.path(), "--server nowhere");
    assert!(
        said.contains("no server 'nowhere'") && said.contains("own"),
        "{said}"
    );
    write(&settings, "consent.toml", "lab: yes\n");
    let (_, said) = check(&network, settings.path(), "");
    assert!(said.contains("consent.toml"), "{said}");
}
