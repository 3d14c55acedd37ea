//! `lab impair` and `--backend kernel` refuse what cannot be before they change anything. What they
//! do where they can is tested in the virtual machine (vm/).

use std::process::{Command, Output};

use crate::common::live::pair;
use crate::common::network::Network;
use crate::common::{PLUMB, need_root, output_of, plumb, stderr, stdout};
use plumb_model::run::Run;

fn refused(output: &Output, status: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(
        words.iter().all(|word| text.contains(word)),
        "{words:?} in: {text}"
    );
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let output = plumb(&["lab", "impair", "no-such0", "delay", "1ms"]);
    refused(&output, 1, &["'no-such0'", "the interfaces are", "lo"]);
}

#[test]
fn what_is_no_impairment_is_refused() {
    // An interface that is not there, so that nothing can happen to one that is.
    for (what, says) in [
        (&["delay", "0ms"][..], "nothing to impair"),
        (&["rate", "0mbit"], "nothing would pass"),
        (&["loss", "200%"], "0% to 100%"),
        (&["lag", "5ms"], "'lag' is no impairment"),
    ] {
        let arguments = [&["lab", "impair", "no-such0"], what].concat();
        refused(&plumb(&arguments), 2, &[says]);
    }
    refused(
        &plumb(&["lab", "impair", "no-such0", "loss", "1%", "--for", "ever"]),
        2,
        &["--for"],
    );
}

#[test]
fn without_tc_the_package_is_named() {
    let output = output_of(
        Command::new(PLUMB)
            .args(["lab", "impair", "lo", "delay", "1ms"])
            .env("PATH", "/no/such/folder"),
    );
    refused(&output, 1, &["apt install iproute2"]);
}

#[test]
fn somebody_elses_queue_is_left_alone() {
    need_root();
    // In a network of the lab's own.
    let output = plumb(&[
        "lab",
        "run",
        "fibre",
        "--",
        "sh",
        "-c",
        "tc qdisc add dev lan root handle 5: pfifo limit 9; plumb lab impair lan loss 1%; echo status $?; tc qdisc show dev lan",
    ]);
    refused(
        &output,
        0,
        &["already has", "pfifo", "tc qdisc del dev lan root"],
    );
    let printed = stdout(&output);
    assert!(printed.contains("status 1"), "{printed}");
    assert!(printed.contains("qdisc pfifo 5: root"), "{printed}");
}

/// Before the kernel is asked for anything, so that it shows on every machine.
#[test]
fn a_cell_that_the_kernel_cannot_be_is_named() {
    need_root();
    let modem = r#"{ type = "shaper", name = "modem", rate = "1mbit", framing = "pppoe-ptm" }"#;
    let file = Network::line(modem, "").file();
    let file = file.path().to_str().unwrap();
    for options in [&[][..], &["--repeat", "2"]] {
        let run = [
            &["lab", "run", file, "--backend", "kernel"],
            options,
            &["--", "true"],
        ]
        .concat();
        refused(
            &plumb(&run),
            125,
            &["line.up", "'modem'", "PTM", "--backend emulated"],
        );
    }
    assert!(
        plumb(&["lab", "run", file, "--", "true"]).status.success(),
        "plumb's own can"
    );
}

/// A link without cells asks nothing of the kernel that it may not have.
#[test]
fn a_run_over_the_kernels_links_says_so() {
    need_root();
    let file = pair().file();
    for backend in ["kernel", "emulated"] {
        let output = output_of(
            Command::new(PLUMB)
                .args(["lab", "run", "--backend", backend])
                .arg(file.path())
                .args(["--", "plumb", "ping", "server", "--count", "3", "--json"]),
        );
        assert!(output.status.success(), "{}", stderr(&output));
        let mark = Run::from_json(&stdout(&output)).unwrap().local.lab.unwrap();
        assert_eq!(mark.backend.name(), backend);
        assert_eq!(mark.lateness_s.is_some(), backend == "emulated", "{mark:?}");
    }
}
