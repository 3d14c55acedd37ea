//! A certificate that signs itself (X.509, RFC 5280), written as DER (X.690). Who it is for proves nothing: clients
//! know it by its fingerprint.

use ring::digest::{SHA256, digest};
use ring::error::Unspecified;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

// Tags (X.690, section 8; those with a number in brackets are RFC 5280's).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;

// Identifiers, with their tag and length.
/// ecdsa-with-SHA256, 1.2.840.10045.4.3.2 (RFC 5758).
const ECDSA_SHA256: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
/// id-ecPublicKey, 1.2.840.10045.2.1, and secp256r1, 1.2.840.10045.3.1.7 (RFC 5480).
const EC_KEY: &[u8] = &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// id-at-commonName, 2.5.4.3, and id-ce-subjectAltName, 2.5.29.17.
const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 4, 3];
const ALT_NAME: &[u8] = &[0x06, 3, 0x55, 0x1d, 0x11];

/// From the beginning of time to the end that RFC 5280 has for "no end" (section 4.1.2.5).
const NOT_BEFORE: &[u8] = b"700101000000Z";
const NOT_AFTER: &[u8] = b"99991231235959Z";

/// Bytes of a serial number; RFC 5280 allows 20.
const SERIAL_BYTES: usize = 16;

/// A certificate, and its key in PKCS #8.
pub(crate) struct SelfSigned {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl SelfSigned {
    /// A new key, and a certificate for a host name. It fails only where the system gives no random numbers.
    pub(crate) fn generate(host: &str) -> Result<Self, Unspecified> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).map_err(|_| Unspecified)?;
        let content = content(host, pair.public_key().as_ref());
        let signature = pair.sign(&random, &content)?;
        let parts = [&content, &signing(), &bits(signature.as_ref())];
        Ok(Self {
            certificate: element(SEQUENCE, &parts.map(Vec::as_slice)),
            key: key.as_ref().to_vec(),
        })
    }
}

/// What is signed (TBSCertificate, RFC 5280, section 4.1).
fn content(host: &str, public_key: &[u8]) -> Vec<u8> {
    // Version 3 is written as 2.
    let version = element(VERSION, &[&element(INTEGER, &[&[2]])]);
    let common = element(
        SEQUENCE,
        &[COMMON_NAME, &element(UTF8_STRING, &[host.as_bytes()])],
    );
    let name = element(SEQUENCE, &[&element(SET, &[&common])]);
    let validity = element(
        SEQUENCE,
        &[
            &element(UTC_TIME, &[NOT_BEFORE]),
            &element(GENERALIZED_TIME, &[NOT_AFTER]),
        ],
    );
    let algorithm = element(SEQUENCE, &[EC_KEY, P256]);
    let key = element(SEQUENCE, &[&algorithm, &bits(public_key)]);
    let names = element(SEQUENCE, &[&element(DNS_NAME, &[host.as_bytes()])]);
    let alternative = element(SEQUENCE, &[ALT_NAME, &element(OCTET_STRING, &[&names])]);
    let extensions = element(EXTENSIONS, &[&element(SEQUENCE, &[&alternative])]);
    element(
        SEQUENCE,
        &[
            &version,
            &serial(public_key),
            &signing(),
            &name,
            &validity,
            &name,
            &key,
            &extensions,
        ],
    )
}

/// A number that no other key's certificate has: positive, and not shorter for leading zeros.
fn serial(public_key: &[u8]) -> Vec<u8> {
    let digest = digest(&SHA256, public_key);
    let mut number = digest.as_ref().iter().copied().take(SERIAL_BYTES);
    let first = number.next().unwrap_or_default() & 0x3f | 0x40;
    element(INTEGER, &[&[first], &number.collect::<Vec<_>>()])
}

fn signing() -> Vec<u8> {
    element(SEQUENCE, &[ECDSA_SHA256])
}

/// A string of whole bytes: none of the last one's bits is unused.
fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes])
}

/// Tag, length in as few bytes as it takes (X.690, section 10.1), content. What stands here has a few hundred bytes.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [high, low] = u16::try_from(content.len())
        .unwrap_or(u16::MAX)
        .to_be_bytes();
    let mut der = vec![tag];
    match (high, low) {
        (0, ..0x80) => der.push(low),
        (0, _) => der.extend([0x81, low]),
        _ => der.extend([0x82, high, low]),
    }
    der.extend(content);
    der
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

    #[test]
    fn lengths_take_as_few_bytes_as_they_can() {
        for (length, head) in [
            (0x7f, &[4, 0x7f][..]),
            (0x80, &[4, 0x81, 0x80]),
            (0xff, &[4, 0x81, 0xff]),
            (0x100, &[4, 0x82, 1, 0]),
        ] {
            let der = element(OCTET_STRING, &[&vec![7; length]]);
            assert_eq!(der[..head.len()], *head);
            assert_eq!(der.len(), head.len() + length);
        }
    }

    #[test]
    fn it_is_for_the_host_and_signed_by_its_own_key() {
        let made = SelfSigned::generate("plumb").unwrap();
        assert_eq!(
            plumb_wire::certificate::dns_names(&made.certificate),
            ["plumb"]
        );
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &made.key, &random).unwrap();
        let key = pair.public_key().as_ref();
        let content = content("plumb", key);
        // SEQUENCE with two bytes of length, the content, the algorithm, and the signature's own head.
        let signed = &made.certificate[4..];
        assert!(signed.starts_with(&content));
        let signature = &signed[content.len() + signing().len() + 3..];
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
            .verify(&content, signature)
            .unwrap();
        assert_ne!(
            SelfSigned::generate("plumb").unwrap().certificate,
            made.certificate
        );
    }
}
