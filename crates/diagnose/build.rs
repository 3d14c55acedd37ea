//! Makes a module of each file in `src/causes`, and a table of them, so that a file there is all that a cause takes.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/causes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    let (mut modules, mut table) = (String::new(), String::new());
    for file in &files {
        let Some(name) = file.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        modules += &format!("#[path = {file:?}]\nmod {name};\n");
        let word: String = name.split('_').map(capital).collect();
        table += &format!("    (Cause::{word}, &{name}::CAUSE),\n");
    }
    let all = format!(
        "{modules}\n/// Every file in `causes/`, by its cause.\nconst FILES: &[(Cause, &Entry)] = &[\n{table}];\n"
    );
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("causes.rs"), all)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
