//! Key files of authenticated STAMP.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use plumb_wire::stamp::{Key, MAX_KEY_BYTES};

/// The key in a file: its bytes, without the end of a line behind them.
pub(crate) fn read(file: &Path) -> anyhow::Result<Key> {
    let mut bytes = Vec::new();
    // No more than tells that it is too long: it may be a device.
    let most = MAX_KEY_BYTES as u64 + 3;
    std::fs::File::open(file)
        .and_then(|opened| opened.take(most).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read the key in {}", file.display()))?;
    let key = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let key = key.strip_suffix(b"\r").unwrap_or(key);
    Key::new(key).with_context(|| {
        format!(
            "{} holds no key: a key is 1 to {MAX_KEY_BYTES} bytes, such as `openssl rand -hex 32` writes",
            file.display()
        )
    })
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
        let missing = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("none"), "{missing}");
    }
}
