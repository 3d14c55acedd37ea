//! Packs the knowledge base, so that a file in `kb/` is all that a page takes. Its other names stand in its first line:
//! `<!-- also: rtt, fping -->`.

use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Pages that stand beside what they are about.
const ELSEWHERE: [(&str, &str); 3] = [
    ("scenario", "scenarios/README.md"),
    ("cells", "scenarios/cells.md"),
    ("far-end", "docs/measure-without-a-far-end.md"),
];

fn main() -> io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for entry in fs::read_dir(repository.join("kb"))? {
        let file = entry?.path();
        if let (Some("md"), Some(topic)) = (
            file.extension().and_then(|e| e.to_str()),
            file.file_stem().and_then(|name| name.to_str()),
        ) {
            files.push((topic.to_owned(), file.clone()));
        }
    }
    files.extend(ELSEWHERE.map(|(topic, file)| (topic.to_owned(), repository.join(file))));
    files.sort();
    println!(
        "cargo::rerun-if-changed={}",
        repository.join("kb").display()
    );
    let mut pages = Vec::new();
    for (topic, file) in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file)?;
        let also = text
            .strip_prefix("<!-- also: ")
            .and_then(|rest| rest.split_once(" -->\n"));
        let (names, text) = also.unwrap_or(("", &text));
        let also: Vec<&str> = names.split(", ").filter(|name| !name.is_empty()).collect();
        pages.push(serde_json::json!({ "topic": topic, "also": also, "text": text }));
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let packed = fs::File::create(Path::new(&out).join("pages.json.deflate"))?;
    let mut packed = DeflateEncoder::new(packed, Compression::best());
    packed.write_all(&serde_json::to_vec(&pages)?)?;
    packed.finish()?;
    Ok(())
}
