//! The arrows between the crates point one way, as ARCHITECTURE.md has them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

const MAY_USE: [(&str, &[&str]); 12] = [
    ("model", &[]),
    ("wire", &["model"]),
    ("net", &["model"]),
    ("diagnose", &["model"]),
    ("report", &["model"]),
    ("link", &["model", "wire"]),
    ("lab", &["link", "model", "net", "wire"]),
    ("probe", &["model", "net", "wire"]),
    ("load", &["model", "net", "wire"]),
    ("host", &["model", "net"]),
    ("serve", &["host", "load", "model", "net", "probe", "wire"]),
    (
        "check",
        &["diagnose", "host", "load", "model", "net", "probe", "wire"],
    ),
];

fn crates() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn arrows_point_one_way() {
    for (name, allowed) in MAY_USE {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
        let used = dependencies
            .lines()
            .take_while(|line| !line.starts_with("[dev"))
            .filter_map(|line| line.strip_prefix("plumb-")?.split(['.', ' ', '=']).next());
        for used in used {
            assert!(
                allowed.contains(&used),
                "{name} uses {used}, and may use only {allowed:?}"
            );
        }
    }
}

#[test]
fn every_crate_is_in_the_table() {
    for entry in std::fs::read_dir(crates()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name == "plumb" || MAY_USE.iter().any(|(known, _)| *known == name),
            "{name} is in no row"
        );
    }
}

#[test]
fn unsafe_code_stands_only_in_net() {
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        if folder.file_name().is_some_and(|n| n == "net") {
            continue;
        }
        let mut open = vec![folder.join("src")];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(
                    !text.contains("allow(unsafe_code)"),
                    "{} allows unsafe code",
                    path.display()
                );
            }
        }
    }
}
