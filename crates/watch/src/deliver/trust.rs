//! Whose certificates are believed by what sends.

use std::path::PathBuf;

use plumb_probe::Trust;

/// What a file says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Believed {
    /// Whom the system believes.
    System,
    /// What the authorities of this PEM file signed.
    File(PathBuf),
    Anyone,
}

impl Believed {
    /// Reads `ca` and `insecure`.
    pub(crate) fn read(ca: Option<PathBuf>, insecure: bool) -> Result<Self, String> {
        match (ca, insecure) {
            (Some(_), true) => Err(
                "ca names who is believed, and insecure believes anyone: leave one of them out"
                    .to_owned(),
            ),
            (Some(file), false) => Ok(Self::File(absolute("ca", file)?)),
            (None, true) => Ok(Self::Anyone),
            (None, false) => Ok(Self::System),
        }
    }

    /// Messages are few: certificates are read each time rather than kept, so that a new one counts at once.
    pub(crate) fn trust(&self) -> Result<Trust, String> {
        match self {
            Self::System => Trust::authorities(None).map_err(|error| error.to_string()),
            Self::Anyone => Trust::anyone().map_err(|error| error.to_string()),
            Self::File(file) => {
                let name = file.display();
                let pem =
                    std::fs::read(file).map_err(|error| format!("cannot read {name}: {error}"))?;
                Trust::authorities(Some(&pem)).map_err(|error| format!("{name}: {error}"))
            }
        }
    }
}

/// A file that a delivery reads, which does not depend on where plumb was begun.
pub(crate) fn absolute(key: &str, file: PathBuf) -> Result<PathBuf, String> {
    match file.is_absolute() {
        true => Ok(file),
        false => Err(format!(
            "{key} is the whole path of a file, such as \"/etc/plumb/{key}\""
        )),
    }
}
