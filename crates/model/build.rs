//! Lists the causes: each is a file in `diagnose/src/causes`, whose name is the cause's and whose first sentence says
//! what it is.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/src/causes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    let mut variants = String::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read_to_string(file)?;
        let name = file.file_stem().and_then(|name| name.to_str());
        let meaning = text
            .strip_prefix("//!")
            .and_then(|text| text.lines().next());
        let (Some(name), Some(meaning)) = (name, meaning) else {
            let why = format!(
                "{}: the first line must be //! and say what the cause is",
                file.display()
            );
            return Err(io::Error::other(why));
        };
        let variant: String = name.split('_').map(capital).collect();
        let word = name.replace('_', "-");
        variants += &format!("    ///{meaning}\n    {variant} = {word:?},\n");
    }
    let list = format!(
        "vocabulary! {{\n/// The causes that plumb can name.\npub enum Cause {{\n{variants}}}\n}}\n"
    );
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("causes.rs"), list)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
