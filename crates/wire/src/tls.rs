//! TLS for a client that measures (RFC 8446): every handshake is a full one. The server always has to prove that it has
//! the key of its certificate, whatever certificate that is.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DEFAULT_VERSIONS, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use crate::native::control::Fingerprint;

/// ring: it builds with a C compiler alone, which linking needs anyway.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A client that authenticates no server by name. It accepts only the certificate with that fingerprint, regardless of
/// signer and age, over TLS 1.3 alone; without a fingerprint, every certificate and every version.
///
/// # Errors
/// Only when the cryptography does not know these versions, which it does.
pub fn client(accepted: Option<Fingerprint>) -> Result<ClientConfig, rustls::Error> {
    let provider = provider();
    let verifier = Verifier {
        accepted,
        algorithms: provider.signature_verification_algorithms,
    };
    let versions = match accepted {
        Some(_) => &[&TLS13],
        None => DEFAULT_VERSIONS,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(with_full_handshakes(config))
}

/// A client that accepts what these authorities signed for the name that it asks for.
///
/// # Errors
/// Only when the cryptography does not know the usual versions, which it does.
pub fn client_that_believes(authorities: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    Ok(with_full_handshakes(config))
}

/// Each connection is timed as the first one is.
fn with_full_handshakes(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config
}

#[derive(Debug)]
struct Verifier {
    /// The only one, where there is one.
    accepted: Option<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.accepted {
            Some(fingerprint) if fingerprint != Fingerprint::of(certificate) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
