#!/usr/bin/env python3
"""Prints the licences of all that is linked into plumb, from cargo's metadata and the sources of each crate.

    dist/third-party.py [TARGET]    TARGET is one of Rust's, such as x86_64-unknown-linux-musl

What only builds or tests plumb is not linked, and left out. A crate without a licence ends it with status 1.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

# Texts of licences as crates name them.
TEXTS = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)

# What crates carry of others, and Rust's standard library and C library, which cargo does not list.
BESIDES = [
    ("Rust's standard library", "MIT OR Apache-2.0", "https://github.com/rust-lang/rust"),
    ("musl, in the static binary", "MIT", "https://musl.libc.org"),
    ("SQLite, in libsqlite3-sys", "public domain", "https://sqlite.org/copyright.html"),
]


def cargo(*arguments):
    command = [*os.environ.get("CARGO", "cargo").split(), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(metadata):
    """The ids of plumb and all that it is linked with: what normal dependencies reach, and no macros."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    reached, left = set(), [id for id in nodes if packages[id]["name"] == "plumb"]
    while left:
        id = left.pop()
        macro = any("proc-macro" in target["kind"] for target in packages[id]["targets"])
        if id in reached or macro:
            continue
        reached.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                left.append(dependency["pkg"])
    return [packages[id] for id in reached]


def main():
    target = sys.argv[1:2] or ["x86_64-unknown-linux-musl"]
    os.chdir(Path(__file__).parent.parent)
    text = cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", target[0])
    crates = [crate for crate in linked(json.loads(text)) if crate["source"]]
    crates.sort(key=lambda crate: (crate["name"], crate["version"]))
    print(f"plumb is linked with {len(crates)} crates of others, each under the licence named.")
    for name, licence, source in BESIDES:
        print(f"\n{name}\n  {licence}\n  {source}")
    texts, without = {}, []
    for crate in crates:
        folder = Path(crate["manifest_path"]).parent
        licence = crate["license"] or crate["license_file"]
        if not licence:
            without.append(crate["name"])
        print(f"\n{crate['name']} {crate['version']}\n  {licence}\n  {crate['repository'] or crate['source']}")
        for file in sorted(folder.iterdir()):
            if file.is_file() and TEXTS.match(file.name):
                body = "\n".join(line.rstrip() for line in file.read_text(errors="replace").splitlines()).strip()
                texts.setdefault(body, []).append(f"{crate['name']} {crate['version']}")
    for body, of in sorted(texts.items(), key=lambda item: item[1]):
        print(f"\n{'=' * 79}\n{', '.join(of)}\n{'=' * 79}\n\n{body}")
    if without:
        sys.exit(f"dist/third-party.py: no licence is named by {', '.join(without)}")


main()
