//! What `make install` and the packages are made by.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{PLUMB, repository, stderr, stdout};

fn run(script: &str, arguments: &[&str], variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(repository().join("dist").join(script));
    command.args(arguments).envs(variables.iter().copied());
    // What is needed is here: nothing may be downloaded in a test.
    command.env("CARGO_NET_OFFLINE", "true");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", stderr(&output));
    output
}

#[test]
fn installing_below_a_folder_writes_nothing_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = Path::new("/opt/plumb");
    let variables = [("PREFIX", prefix), ("DESTDIR", folder.path())];
    run("install.sh", &[PLUMB], &variables);
    let installed = folder.path().join("opt/plumb");
    for file in [
        "bin/plumb",
        "share/man/man1/plumb-check.1.gz",
        "share/bash-completion/completions/plumb",
        "share/zsh/site-functions/_plumb",
        "share/fish/vendor_completions.d/plumb.fish",
        "share/doc/plumb/LICENSE-MIT",
        "share/doc/plumb/docs/install.md",
    ] {
        assert!(installed.join(file).exists(), "{file}");
    }
    // The unit starts the binary that was installed, by the path that it will have.
    let unit = installed.join("lib/systemd/system/plumb-serve.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    assert!(
        unit.contains("ExecStart=/opt/plumb/bin/plumb serve"),
        "{unit}"
    );
    let others = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(others, 1, "all is below the prefix");
}

#[test]
fn licences_are_of_all_that_is_linked_and_of_nothing_else() {
    let said = stdout(&run("third-party.py", &[], &[]));
    for linked in [
        "\nrustls ",
        "\nhyper ",
        "\nlibsqlite3-sys ",
        "SQLite",
        "musl",
    ] {
        assert!(said.contains(linked), "{linked}");
    }
    // For tests, for building, and macros.
    for other in ["\nproptest ", "\ninsta ", "\ncc ", "\nserde_derive "] {
        assert!(!said.contains(other), "{other}");
    }
    assert!(
        said.contains("Permission is hereby granted"),
        "texts are there"
    );
}
