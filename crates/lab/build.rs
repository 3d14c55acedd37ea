//! Lists the scenarios that come with plumb, so that a file in `scenarios/` is all that one takes.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let list: String = files
        .iter()
        .filter_map(|file| {
            let name = file.file_stem()?;
            Some(format!("({name:?}, include_str!({file:?})),\n"))
        })
        .collect();
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("built_in.rs"), format!("&[{list}]"))
}
