//! Keys: for authenticated STAMP, in files; for responders; and for the replacement of addresses.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use plumb_wire::irtt::Key as IrttKey;
use plumb_wire::native::key::{KEY_BYTES, Key as ResponderKey};
use plumb_wire::stamp::{Key, MAX_KEY_BYTES};

use crate::output::say;
use crate::usage::wrong;

/// The key of a responder: the text itself, or the line in a file that is written as `@FILE`.
pub(crate) fn of_responder(text: &str) -> anyhow::Result<ResponderKey> {
    let from_file = text.strip_prefix('@').map(|file| {
        let bytes = bytes_of(Path::new(file), *KEY_BYTES.end())?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    let key = from_file.unwrap_or_else(|| Ok(text.to_owned()))?;
    ResponderKey::new(&key).with_context(|| {
        let (least, most) = (KEY_BYTES.start(), KEY_BYTES.end());
        format!("that is no key of a responder: a key is one line of {least} to {most} bytes")
    })
}

/// A key of names that is shorter can be found by trying all of them (NIST SP 800-131A: 112 bits at least).
const LEAST_TO_REPLACE: usize = 16;

/// More than a key ever is, in bytes: what is longer is another file.
const MOST_TO_REPLACE: usize = 1 << 20;

/// The secret by which addresses and names are replaced: what the file holds, or a random one that is not kept.
pub(crate) fn to_replace(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let Some(file) = file else {
        let mut key = vec![0; 32];
        getrandom::fill(&mut key).context("cannot get random numbers")?;
        say(
            "Addresses are replaced by a random key, which is not kept: another run gives others. --key FILE gives the same.",
        );
        return Ok(key);
    };
    let name = file.display();
    let key = bytes_of(file, MOST_TO_REPLACE)?;
    match key.len() {
        LEAST_TO_REPLACE..=MOST_TO_REPLACE => Ok(key),
        length if length > MOST_TO_REPLACE => Err(wrong(format!(
            "{name} has more than a megabyte: that is no key"
        ))),
        length => Err(wrong(format!(
            "the key in {name} has {length} bytes, which can be guessed; make one of {LEAST_TO_REPLACE} at least: head -c 32 /dev/urandom > {name}"
        ))),
    }
}

/// What a file holds, as far as it can be a key of so many bytes.
fn bytes_of(file: &Path, most: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // No more than shows that it is too long: it may be a device.
    let most = most as u64 + 3;
    std::fs::File::open(file)
        .and_then(|opened| opened.take(most).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read the key in {}", file.display()))?;
    Ok(bytes)
}

/// The key in a file as `of` takes it: its bytes, without the end of a line behind them.
fn in_file<K>(file: &Path, of: impl FnOnce(&[u8]) -> Option<K>) -> anyhow::Result<K> {
    let bytes = bytes_of(file, MAX_KEY_BYTES)?;
    let key = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let key = key.strip_suffix(b"\r").unwrap_or(key);
    let key = Some(key).filter(|key| key.len() <= MAX_KEY_BYTES);
    key.and_then(of).with_context(|| {
        format!(
            "{} holds no key: a key is 1 to {MAX_KEY_BYTES} bytes, such as `openssl rand -hex 32` writes",
            file.display()
        )
    })
}

/// The key of authenticated STAMP in a file.
pub(crate) fn read(file: &Path) -> anyhow::Result<Key> {
    in_file(file, Key::new)
}

/// The key of irtt in a file, as text or, behind `0x`, in hexadecimal, as irtt's own `--hmac` takes it.
pub(crate) fn of_irtt(file: &Path) -> anyhow::Result<IrttKey> {
    in_file(file, |key| match key.strip_prefix(b"0x") {
        Some(hex) => IrttKey::new(&bytes_of_hex(hex)?),
        None => IrttKey::new(key),
    })
}

fn bytes_of_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = hex.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_is_the_line_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let says = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            read(&file).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(says(b"secret\n"), Ok(()));
        assert_eq!(says(&[b'x'; 64]), Ok(()));
        for wrong in [b"\n".as_slice(), b"", &[b'x'; 65], &[b'x'; 4000]] {
            assert!(says(wrong).is_err_and(|says| says.contains("1 to 64 bytes")));
        }
        std::fs::write(&file, "0x4a656665\n").unwrap();
        assert!(of_irtt(&file).is_ok());
        for wrong in ["0x", "0x4", "0x4g", ""] {
            std::fs::write(&file, wrong).unwrap();
            assert!(of_irtt(&file).is_err(), "{wrong}");
        }
        let missing = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("none"), "{missing}");
    }
}
