//! Whose certificates are believed, as options say.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plumb_probe::{Trust, TrustError};
use plumb_wire::url::{Scheme, Url};

/// Whose certificates are believed.
#[derive(Args, Default)]
pub(crate) struct TrustOptions {
    /// Over HTTPS: a PEM file of the authorities to trust [default: those that this system trusts]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Over HTTPS: accept any certificate
    #[arg(long)]
    insecure: bool,
}

impl TrustOptions {
    /// Whether either option is given.
    pub(crate) fn is_given(&self) -> bool {
        self.ca.is_some() || self.insecure
    }

    /// Any, those that a file's authorities signed, or those that this system believes.
    pub(crate) fn trust(&self) -> anyhow::Result<Trust> {
        if self.insecure {
            return Ok(Trust::anyone()?);
        }
        let Some(file) = &self.ca else {
            return Ok(Trust::authorities(None)?);
        };
        let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        Trust::authorities(Some(&pem))
            .with_context(|| format!("cannot take {} for certificates", file.display()))
    }

    /// The same for a page. One that comes without TLS is also loaded where this system trusts no authority.
    pub(crate) fn trust_for(&self, page: &Url) -> anyhow::Result<Trust> {
        let trust = self.trust();
        let nobody = matches!(&trust, Err(error) if matches!(error.downcast_ref(), Some(TrustError::NoRoots(_))));
        match page.origin.scheme {
            Scheme::Http if nobody => Ok(Trust::nobody()?),
            _ => trust,
        }
    }
}
