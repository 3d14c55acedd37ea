//! Whose certificates are believed over TLS.

use std::fmt;
use std::sync::Arc;

use plumb_wire::tls;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};

/// Whose certificates are believed, and with that how TLS is begun. Cheap to copy.
#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
    checks: bool,
}

/// Why there are no trusted certificates.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file holds no certificate.
    #[error("there is no certificate in it: it begins with '-----BEGIN CERTIFICATE-----' (PEM)")]
    NoCertificate,
    /// A certificate in the file cannot be read.
    #[error("a certificate in it cannot be read: {0}")]
    Certificate(String),
    /// This system has no trusted certificates.
    #[error(
        "this system has no certificate of anybody to believe ({0}): install ca-certificates, give a file (--ca), \
         or take any certificate (--insecure)"
    )]
    NoRoots(String),
    /// TLS cannot be spoken.
    #[error("TLS cannot be spoken: {0}")]
    Tls(#[from] rustls::Error),
}

impl Trust {
    /// Any certificate: for what measures, and sends nothing that is worth a secret.
    ///
    /// # Errors
    /// When TLS cannot be spoken.
    pub fn anyone() -> Result<Self, TrustError> {
        Ok(Self::with(tls::client(None)?, false))
    }

    /// What the authorities of a PEM file signed, or where there is none those that the system believes
    /// (SSL_CERT_FILE and SSL_CERT_DIR choose them, as with OpenSSL).
    ///
    /// # Errors
    /// When there is no certificate of an authority, or one cannot be read.
    pub fn authorities(pem: Option<&[u8]>) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        match pem {
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let wrong = |error: String| TrustError::Certificate(error);
                    let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                    roots
                        .add(certificate)
                        .map_err(|error| wrong(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(TrustError::NoCertificate);
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                // Of hundreds some may be of a kind that is not known here.
                let (added, _) = roots.add_parsable_certificates(found.certs);
                if added == 0 {
                    let why = found
                        .errors
                        .first()
                        .map_or("none found".to_owned(), |e| e.to_string());
                    return Err(TrustError::NoRoots(why));
                }
            }
        }
        Ok(Self::with(tls::client_that_believes(roots)?, true))
    }

    /// An empty store: for protocols that begin without TLS, where no certificate is checked.
    ///
    /// # Errors
    /// When TLS cannot be spoken.
    pub fn nobody() -> Result<Self, TrustError> {
        Ok(Self::with(
            tls::client_that_believes(RootCertStore::empty())?,
            true,
        ))
    }

    fn with(config: ClientConfig, checks: bool) -> Self {
        Self {
            config: Arc::new(config),
            checks,
        }
    }

    /// Whether certificates are checked at all.
    pub fn checks(&self) -> bool {
        self.checks
    }

    /// How TLS is begun.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}

/// What to do about a certificate that was not believed; `None` where TLS failed for another reason.
pub(crate) fn disbelief(error: &rustls::Error) -> Option<String> {
    let why = unbelieved(error)?;
    Some(format!(
        "{why} (--ca FILE names who may sign it, --insecure takes any)"
    ))
}

/// Why a certificate was not believed; `None` where TLS failed for another reason.
pub(crate) fn unbelieved(error: &rustls::Error) -> Option<String> {
    let rustls::Error::InvalidCertificate(why) = error else {
        return None;
    };
    let why = match why {
        CertificateError::UnknownIssuer => {
            "no authority that is believed here signed it".to_owned()
        }
        // A trusted certificate has this name, but another key.
        CertificateError::BadSignature => "the one whom it names did not sign it".to_owned(),
        CertificateError::NotValidForNameContext { .. } | CertificateError::NotValidForName => {
            "it is for another name".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it is out of date".to_owned()
        }
        // The verifier's own errors come as text alone.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is an authority's own, which no server may use".to_owned()
        }
        other => other.to_string(),
    };
    Some(format!("the certificate is not believed: {why}"))
}

/// The same beliefs are one value, handed around.
impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config)
    }
}

impl Eq for Trust {}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust")
            .field("checks", &self.checks)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        for pem in [
            "",
            "no certificate",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            let refused = Trust::authorities(Some(pem.as_bytes()));
            assert!(matches!(refused, Err(TrustError::NoCertificate)), "{pem}");
        }
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let refused = Trust::authorities(Some(broken.as_bytes()));
        assert!(
            matches!(refused, Err(TrustError::Certificate(_))),
            "{refused:?}"
        );
    }

    #[test]
    fn beliefs_are_the_same_only_as_copies() {
        let anyone = Trust::anyone().unwrap();
        assert_eq!(anyone, anyone.clone());
        assert_ne!(anyone, Trust::anyone().unwrap());
        assert!(!anyone.checks());
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_survived(pem: Vec<u8>) {
            let _ = Trust::authorities(Some(&pem));
        }
    }
}
