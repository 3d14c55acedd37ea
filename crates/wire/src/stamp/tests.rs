#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;
use proptest::prelude::*;
use std::time::Duration;

const NS: i64 = 1_000_000_000;

fn request(sequence: u32, sent_ns: i64) -> Request {
    Request {
        sequence,
        sent_ns,
        error: ErrorEstimate::new(true, Duration::from_millis(1)),
        session: 0x0a0b,
    }
}

#[test]
fn the_layout_is_that_of_rfc_8762() {
    let bytes = request(0x0102_0304, 0).write(None, &[], 0);
    assert_eq!(bytes.len(), OPEN_BYTES);
    assert_eq!(bytes[..4], [1, 2, 3, 4]);
    assert_eq!(bytes[4..12], [0x83, 0xaa, 0x7e, 0x80, 0, 0, 0, 0]);
    assert_eq!((bytes[12] & 0x80, bytes[14], bytes[15]), (0x80, 0x0a, 0x0b));
    assert_eq!(bytes[16..], [0; 28]);
    let key = Key::new(b"secret").unwrap();
    let sealed = request(0x0102_0304, 0).write(Some(&key), &[], 0);
    assert_eq!(sealed.len(), AUTHENTICATED_BYTES);
    assert_eq!(
        (&sealed[4..16], &sealed[16..18]),
        ([0; 12].as_slice(), [0x83, 0xaa].as_slice())
    );
    assert_eq!((sealed[26], sealed[27]), (0x0a, 0x0b));
    assert_eq!(sealed[28..96], [0; 68]);
}

#[test]
fn the_hmac_is_sha_256_cut_to_sixteen_bytes() {
    // RFC 4231, test case 2.
    let key = Key::new(b"Jefe").unwrap();
    let tag = key.tag(&[b"what do ya want ", b"for nothing?"]);
    assert_eq!(tag[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    assert!(Key::new(b"").is_none() && Key::new(&[1; 65]).is_none());
}

#[test]
fn a_reply_of_a_twamp_reflector_is_read() {
    // RFC 5357, section 4.2.1: 41 bytes, times in NTP format.
    let mut bytes = [0; TWAMP_REPLY_BYTES];
    bytes[3] = 7;
    bytes[4..8].copy_from_slice(&[0x83, 0xaa, 0x7e, 0x82]);
    bytes[13] = 1;
    bytes[16..20].copy_from_slice(&[0x83, 0xaa, 0x7e, 0x81]);
    bytes[27] = 9;
    bytes[28..32].copy_from_slice(&[0x83, 0xaa, 0x7e, 0x80]);
    bytes[40] = 250;
    let reply = Reply::parse(&bytes, None).unwrap();
    assert_eq!((reply.sequence, reply.request.sequence), (7, 9));
    assert_eq!(
        (reply.request.sent_ns, reply.received_ns, reply.sent_ns),
        (0, NS, 2 * NS)
    );
    assert_eq!((reply.request_hops, reply.session), (250, 0));
    assert!(Reply::parse(&bytes[..40], None).is_none());
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        sequence: u32, session: u16, sent_ns in 0i64..3_000_000_000 * NS,
        sealed: bool, size in 0usize..1500, padding in 0usize..50,
    ) {
        let key = sealed.then(|| Key::new(b"secret").unwrap());
        let request = Request { session, ..request(sequence, sent_ns) };
        let bytes = request.write(key.as_ref(), &[Tlv::ExtraPadding(padding)], size);
        prop_assert!(bytes.len() >= size);
        prop_assert_eq!(Request::parse(&bytes, key.as_ref()), Some(request));
        let other = Key::new(b"another").unwrap();
        prop_assert_eq!(Request::parse(&bytes, Some(&other)), None);
    }

    #[test]
    fn a_changed_bit_breaks_the_seal(byte in 0usize..112, bit in 0u32..8) {
        let key = Key::new(b"secret").unwrap();
        let mut bytes = request(1, 2).write(Some(&key), &[], 0);
        bytes[byte] ^= 1 << bit;
        prop_assert_eq!(Request::parse(&bytes, Some(&key)), None);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let key = Key::new(b"secret").unwrap();
        for key in [None, Some(&key)] {
            let _ = Request::parse(&bytes, key);
            if let Some(reply) = Reply::parse(&bytes, key) {
                let _ = reply.tlvs(&bytes, key);
            }
        }
        prop_assert_eq!(Reply::parse(&bytes, None).is_some(), bytes.len() >= TWAMP_REPLY_BYTES);
    }
}
