//! HMAC-SHA-256 (RFC 2104), cut to as many bytes as a protocol has for it.

pub use ring::hmac::Key;
use ring::hmac::{Context, HMAC_SHA256};

/// A key of any length, as HMAC takes it.
pub fn key(secret: &[u8]) -> Key {
    Key::new(HMAC_SHA256, secret)
}

/// The first `N` bytes of the code of the parts, one after the other; of 32 at most.
pub fn code<const N: usize>(key: &Key, parts: &[&[u8]]) -> [u8; N] {
    let mut context = Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    let whole = context.sign();
    let mut code = [0; N];
    code.iter_mut()
        .zip(whole.as_ref())
        .for_each(|(to, from)| *to = *from);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test cases 2 and 5.
    #[test]
    fn the_codes_are_those_of_rfc_4231() {
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        assert_eq!(code(&key(b"Jefe"), &parts), [0x5b, 0xdc, 0xc1, 0x46]);
        let cut: [u8; 16] = code(&key(&[0x0c; 20]), &[b"Test With Truncation"]);
        assert_eq!(
            cut,
            0xa3b6_1674_7310_0ee0_6e0c_796c_2955_552b_u128.to_be_bytes()
        );
    }
}
