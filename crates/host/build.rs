//! Writes the catalogue of knobs as JSON, which plumb reads anyway: TOML is for those who write it.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

const CATALOGUE: &str = "src/knobs/catalogue.toml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CATALOGUE}");
    let catalogue: toml::Table = toml::from_str(&fs::read_to_string(CATALOGUE)?)?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(
        Path::new(&out).join("catalogue.json"),
        serde_json::to_string(&catalogue)?,
    )?;
    Ok(())
}
