//! Whose certificates are believed, as options say.

use std::path::Path;

use anyhow::Context as _;
use plumb_probe::Trust;

/// Any, those that a file's authorities signed, or those that this system believes.
pub(crate) fn trust(ca: Option<&Path>, insecure: bool) -> anyhow::Result<Trust> {
    if insecure {
        return Ok(Trust::anyone()?);
    }
    let Some(file) = ca else {
        return Ok(Trust::authorities(None)?);
    };
    let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Trust::authorities(Some(&pem))
        .with_context(|| format!("cannot take {} for certificates", file.display()))
}
