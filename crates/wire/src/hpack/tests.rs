#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;
use proptest::prelude::*;

/// What RFC 9113 has a table of at first.
const TABLE_BYTES: usize = 4096;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(u8::is_ascii_hexdigit)
        .map(|digit| (digit as char).to_digit(16).unwrap() as u8)
        .collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    pairs.iter().map(|(n, v)| (bytes(n), bytes(v))).collect()
}

#[test]
fn numbers_are_those_of_the_rfc() {
    assert_eq!(Reader(&[0b1110_1010]).number(5), Ok(10));
    assert_eq!(Reader(&[0x1f, 0x9a, 0x0a]).number(5), Ok(1337));
    assert_eq!(Reader(&[42]).number(7), Ok(42));
    assert_eq!(
        Reader(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0]).number(5),
        Err(HpackError::Number)
    );
    assert_eq!(Reader(&[0x1f, 0x80]).number(5), Err(HpackError::Truncated));
    let mut out = Vec::new();
    number(&mut out, 0, 5, 1337);
    assert_eq!(out, [0x1f, 0x9a, 0x0a]);
}

/// RFC 7541, C.2: a field in each representation.
#[test]
fn representations_are_those_of_the_rfc() {
    for (block, name, value, table_bytes) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
            55,
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path",
            "/sample/path",
            0,
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password",
            "secret",
            0,
        ),
        ("82", ":method", "GET", 0),
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES, 1 << 16);
        let decoded = decoder.decode(&hex(block));
        assert_eq!(decoded, Ok(fields(&[(name, value)])));
        assert_eq!(decoder.table.bytes(), table_bytes, "{name}");
    }
}

/// RFC 7541, C.3 and C.4: three requests on one connection, without and with the Huffman code.
#[test]
fn requests_are_those_of_the_rfc() {
    let first = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    let second = [&first[..], &[("cache-control", "no-cache")]].concat();
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    for blocks in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES, 1 << 16);
        for (block, wanted, table_bytes) in [
            (blocks[0], &first[..], 57),
            (blocks[1], &second, 110),
            (blocks[2], &third, 164),
        ] {
            assert_eq!(decoder.decode(&hex(block)), Ok(fields(wanted)));
            assert_eq!(decoder.table.bytes(), table_bytes);
        }
    }
}

/// RFC 7541, C.5 and C.6: three answers through a table of 256 bytes, which drops the oldest.
#[test]
fn answers_are_those_of_the_rfc() {
    let answer = |status, date, more: &[(&'static str, &'static str)]| {
        let mut all = vec![
            (":status", status),
            ("cache-control", "private"),
            ("date", date),
            ("location", "https://www.example.com"),
        ];
        all.extend_from_slice(more);
        fields(&all)
    };
    let early = "Mon, 21 Oct 2013 20:13:21 GMT";
    let late = "Mon, 21 Oct 2013 20:13:22 GMT";
    let more = [
        ("content-encoding", "gzip"),
        (
            "set-cookie",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ];
    for blocks in [
        [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
             474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
             666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
             3630 303b 2076 6572 7369 6f6e 3d31",
        ],
        [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
             63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
             b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ],
    ] {
        let mut decoder = Decoder::new(256, 1 << 16);
        for (block, wanted, table_bytes) in [
            (blocks[0], answer("302", early, &[]), 222),
            (blocks[1], answer("307", early, &[]), 222),
            (blocks[2], answer("200", late, &more), 215),
        ] {
            let decoded = decoder.decode(&hex(block)).unwrap();
            let sorted = |mut fields: Vec<Field>| {
                fields.sort();
                fields
            };
            assert_eq!(sorted(decoded), sorted(wanted));
            assert_eq!(decoder.table.bytes(), table_bytes);
        }
    }
}

#[test]
fn the_table_stays_within_its_bound() {
    // 4097 is more than was allowed; 0 empties it; between fields it may not change.
    for (block, decoded) in [
        ("3fe2 1f", Err(HpackError::TableSize)),
        ("3fe1 1f", Ok(Vec::new())),
        ("20", Ok(Vec::new())),
        ("82 20", Err(HpackError::TableSize)),
        ("be", Err(HpackError::Index)),
        ("80", Err(HpackError::Index)),
        ("40", Err(HpackError::Truncated)),
        ("4081 ff", Err(HpackError::Huffman)),
    ] {
        let mut decoder = Decoder::new(TABLE_BYTES, 1 << 16);
        assert_eq!(decoder.decode(&hex(block)), decoded, "{block}");
    }
}

/// One entry of 4 kB, named again by one byte each: 64 bytes would become 256 kB.
#[test]
fn a_bomb_is_stopped_by_the_bound_of_the_list() {
    let mut block = vec![0x40, 1, b'a'];
    number(&mut block, 0, 7, 4000);
    block.extend(std::iter::repeat_n(b'x', 4000));
    block.extend([0xbe; 64]);
    let mut decoder = Decoder::new(TABLE_BYTES, 1 << 16);
    assert_eq!(decoder.decode(&block), Err(HpackError::TooLarge(1 << 16)));
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(list in proptest::collection::vec(("[a-z:-]{0,12}", ".{0,300}"), 0..20)) {
        let block = encode(list.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let decoded = Decoder::new(0, 1 << 20).decode(&block).unwrap();
        let wanted: Vec<(&str, &str)> = list.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        prop_assert_eq!(decoded, fields(&wanted));
    }

    #[test]
    fn any_blocks_are_survived(blocks: Vec<Vec<u8>>) {
        let mut decoder = Decoder::new(256, 4096);
        for block in blocks {
            if let Ok(fields) = decoder.decode(&block) {
                prop_assert!(fields.iter().map(|(n, v)| n.len() + v.len() + ENTRY_BYTES).sum::<usize>() <= 4096);
            }
            prop_assert!(decoder.table.bytes() <= 256);
        }
    }
}
