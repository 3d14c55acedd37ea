//! Kernel variables under /proc/sys.
//!
//! `/proc/sys/net` shows the network namespace of the calling thread.

use std::io;
use std::path::PathBuf;

/// A kernel variable that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {key}{value}: {source}")]
pub struct SysctlError {
    verb: &'static str,
    key: String,
    value: String,
    source: io::Error,
}

impl SysctlError {
    /// Whether this kernel, or this namespace, does not have the variable.
    pub fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Reads a variable such as `net.ipv4.tcp_rmem`.
///
/// # Errors
/// When it is absent or may not be read.
pub fn read(key: &str) -> Result<String, SysctlError> {
    std::fs::read_to_string(path(key))
        .map(|text| text.trim().to_owned())
        .map_err(|source| SysctlError {
            verb: "read",
            key: key.to_owned(),
            value: String::new(),
            source,
        })
}

/// Writes a variable.
///
/// # Errors
/// When it is absent, may not be written, or refuses the value.
pub fn write(key: &str, value: &str) -> Result<(), SysctlError> {
    std::fs::write(path(key), value).map_err(|source| SysctlError {
        verb: "set",
        key: key.to_owned(),
        value: format!(" to '{value}'"),
        source,
    })
}

/// A variable of whole numbers separated by blanks; `None` when it is absent or no such thing.
pub fn read_numbers(key: &str) -> Option<Vec<u64>> {
    read(key)
        .ok()?
        .split_whitespace()
        .map(|n| n.parse().ok())
        .collect()
}

/// Dots become slashes; what would leave /proc/sys does not name a variable.
fn path(key: &str) -> PathBuf {
    let relative: PathBuf = key
        .split('.')
        .filter(|part| !part.is_empty() && !part.contains('/'))
        .collect();
    PathBuf::from("/proc/sys").join(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        assert_eq!(
            path("net.ipv4.tcp_rmem"),
            PathBuf::from("/proc/sys/net/ipv4/tcp_rmem")
        );
        assert_eq!(path("../../etc/passwd"), PathBuf::from("/proc/sys"));
    }

    #[test]
    fn reads_what_the_kernel_says() {
        assert_eq!(read_numbers("net.ipv4.tcp_rmem").map(|n| n.len()), Some(3));
        assert!(read("net.ipv4.no_such").is_err_and(|e| e.is_absent()));
    }
}
