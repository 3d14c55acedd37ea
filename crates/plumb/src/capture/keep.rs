//! `-w` and `--anonymise`: which packets are kept, where, and without what.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use plumb_capture::Anonymiser;
use plumb_measure::capture::{Files, PacketCopy, Ring};
use plumb_model::units::ByteCount;

use crate::key;
use crate::usage::wrong;

#[derive(Args)]
pub(super) struct Keep {
    /// Keep the packets that count in this file, as pcapng
    #[arg(short, long, value_name = "FILE", conflicts_with = "both")]
    write: Option<PathBuf>,
    /// Keep packets in a ring of so many files; the oldest is removed
    #[arg(long, value_name = "N", requires_all = ["write", "ring_size"])]
    ring: Option<NonZeroUsize>,
    /// Size of each file of the ring
    #[arg(long, value_name = "SIZE", requires = "ring", value_parser = some_bytes)]
    ring_size: Option<ByteCount>,
    /// Replace addresses, and cut payload
    #[arg(long, alias = "anonymize", conflicts_with = "both")]
    anonymise: bool,
    /// Take the key from this file, so that several captures agree
    #[arg(long = "key", value_name = "FILE", requires = "anonymise")]
    anonymise_key: Option<PathBuf>,
}

fn some_bytes(text: &str) -> Result<ByteCount, String> {
    match text.parse::<ByteCount>() {
        Ok(size) if size.bytes() > 0 => Ok(size),
        _ => Err("write a size above zero as 500kB, 10MB or 1GB".to_owned()),
    }
}

impl Keep {
    /// Where packets of an interface go as they are captured; what is anonymised is copied later.
    pub(super) fn live(&self) -> Option<Files> {
        match self.anonymise {
            true => None,
            false => self.files(),
        }
    }

    /// Begins the copy of packets that come from files, or are anonymised.
    pub(super) fn copy(
        &self,
        inputs: &[PathBuf],
        is_live: bool,
    ) -> anyhow::Result<Option<PacketCopy>> {
        let Some(files) = self.files().filter(|_| self.anonymise || !is_live) else {
            return Ok(None);
        };
        let output = self.write.as_deref().unwrap_or(Path::new(""));
        if inputs.iter().any(|input| is_same(input, output)) {
            let name = output.display();
            return Err(wrong(format!(
                "-w {name} would overwrite the capture that is read; write to another file"
            )));
        }
        Ok(Some(PacketCopy::begin(files)?))
    }

    /// Who replaces addresses, where that was asked for.
    pub(super) fn anonymiser(&self) -> anyhow::Result<Option<Anonymiser>> {
        if !self.anonymise {
            return Ok(None);
        }
        let secret = key::to_replace(self.anonymise_key.as_deref())?;
        Ok(Some(Anonymiser::new(&secret)))
    }

    fn files(&self) -> Option<Files> {
        let ring = self.ring.zip(self.ring_size).map(|(files, size)| Ring {
            files: files.get(),
            bytes: size.bytes(),
        });
        self.write.as_deref().map(|path| Files::new(path, ring))
    }
}

/// Whether two names are of one file.
fn is_same(a: &Path, b: &Path) -> bool {
    let [a, b] = [a, b].map(|path| fs::metadata(path).ok().filter(fs::Metadata::is_file));
    a.zip(b)
        .is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
}
