//! Messages of Prometheus Remote Write, as a sender writes them: `prometheus.WriteRequest` of version 1.0 and
//! `io.prometheus.write.v2.Request` of version 2.0, in Protobuf's wire format. Snappy and HTTP are the caller's.

use std::collections::HashMap;

/// Marks a series that has no more samples (Remote-Write 1.0, "Stale Markers").
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// The label that has the name of the metric.
pub const NAME: &str = "__name__";

/// Wire types of Protobuf.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// Which of the two messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

impl Version {
    /// `Content-Type` of a request.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::One => "application/x-protobuf",
            Self::Two => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }

    /// `X-Prometheus-Remote-Write-Version` of a request: receivers of 1.0 expect 0.1.0.
    pub fn header(self) -> &'static str {
        match self {
            Self::One => "0.1.0",
            Self::Two => "2.0.0",
        }
    }
}

/// What the values of a metric are, with the numbers of `Metadata.MetricType` of version 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Unspecified = 0,
    /// Counts up, and begins at zero again after a restart.
    Counter = 1,
    Gauge = 2,
}

/// One sample of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// All labels, by name in lexicographical order, with [`NAME`]; none is empty.
    pub labels: Vec<(String, String)>,
    pub kind: Kind,
    /// What the metric is, for people; empty where that is not known.
    pub help: &'static str,
    pub value: f64,
    /// When it was taken, ms since 1970.
    pub at_ms: i64,
}

/// The message of these samples, of one series each.
pub fn message(version: Version, samples: &[Sample]) -> Vec<u8> {
    match version {
        Version::One => message_of_1(samples),
        Version::Two => message_of_2(samples),
    }
}

fn message_of_1(samples: &[Sample]) -> Vec<u8> {
    let (mut out, mut series, mut part) = (Vec::new(), Vec::new(), Vec::new());
    for sample in samples {
        series.clear();
        for (name, value) in &sample.labels {
            part.clear();
            bytes(&mut part, 1, name.as_bytes());
            bytes(&mut part, 2, value.as_bytes());
            bytes(&mut series, 1, &part);
        }
        value_and_time(&mut part, sample);
        bytes(&mut series, 2, &part);
        bytes(&mut out, 1, &series);
    }
    out
}

fn message_of_2(samples: &[Sample]) -> Vec<u8> {
    // The first symbol is the empty one.
    let (mut symbols, mut numbers) = (vec![""], HashMap::from([("", 0_u64)]));
    let mut number = |text| {
        *numbers.entry(text).or_insert_with(|| {
            symbols.push(text);
            symbols.len() as u64 - 1
        })
    };
    let (mut all, mut series, mut part) = (Vec::new(), Vec::new(), Vec::new());
    for sample in samples {
        series.clear();
        part.clear();
        for (name, value) in &sample.labels {
            varint(&mut part, number(name.as_str()));
            varint(&mut part, number(value.as_str()));
        }
        bytes(&mut series, 1, &part);
        value_and_time(&mut part, sample);
        bytes(&mut series, 2, &part);
        part.clear();
        key(&mut part, 1, VARINT);
        varint(&mut part, sample.kind as u64);
        key(&mut part, 3, VARINT);
        varint(&mut part, number(sample.help));
        bytes(&mut series, 5, &part);
        bytes(&mut all, 5, &series);
    }
    let mut out = Vec::new();
    for symbol in symbols {
        bytes(&mut out, 4, symbol.as_bytes());
    }
    out.extend(all);
    out
}

/// `Sample` of both versions, in place of what was there.
fn value_and_time(out: &mut Vec<u8>, sample: &Sample) {
    out.clear();
    key(out, 1, FIXED64);
    out.extend(sample.value.to_bits().to_le_bytes());
    key(out, 2, VARINT);
    // An int64 below zero is written as its two's complement.
    varint(out, sample.at_ms.cast_unsigned());
}

fn key(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

fn bytes(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    key(out, field, LENGTH_DELIMITED);
    varint(out, content.len() as u64);
    out.extend(content);
}

/// Seven bits a byte, the lowest first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, value: f64, at_ms: i64) -> Sample {
        Sample {
            labels: vec![
                (NAME.to_owned(), name.to_owned()),
                ("a".to_owned(), "bc".to_owned()),
            ],
            kind: Kind::Gauge,
            help: "h",
            value,
            at_ms,
        }
    }

    /// Byte by byte, as Protobuf's documentation of the wire format has them.
    #[test]
    fn a_request_of_1_is_what_the_schema_says() {
        let request = message(Version::One, &[sample("m", 1.0, 300)]);
        let name = [0x0a, 8, b'_', b'_', b'n', b'a', b'm', b'e', b'_', b'_'];
        let expected = [
            [0x0a, 38].as_slice(),
            &[0x0a, 13],
            &name,
            &[0x12, 1, b'm'],
            &[0x0a, 7, 0x0a, 1, b'a', 0x12, 2, b'b', b'c'],
            &[
                0x12, 12, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 0xac, 0x02,
            ],
        ];
        assert_eq!(request, expected.concat());
        assert!(message(Version::One, &[]).is_empty());
    }

    #[test]
    fn a_request_of_2_has_each_text_once() {
        let samples = [sample("m", 1.0, 300), sample("m", STALE, -1)];
        let request = message(Version::Two, &samples);
        let name = [0x22, 8, b'_', b'_', b'n', b'a', b'm', b'e', b'_', b'_'];
        let head = [0x2a, 26, 0x0a, 4, 1, 2, 3, 4];
        let metadata = [0x2a, 4, 0x08, 2, 0x18, 5];
        let expected = [
            [0x22, 0].as_slice(),
            &name,
            &[
                0x22, 1, b'm', 0x22, 1, b'a', 0x22, 2, b'b', b'c', 0x22, 1, b'h',
            ],
            &head,
            &[
                0x12, 12, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 0xac, 0x02,
            ],
            &metadata,
            &[0x2a, 34, 0x0a, 4, 1, 2, 3, 4],
            &[0x12, 20, 0x09, 2, 0, 0, 0, 0, 0, 0xf0, 0x7f, 0x10],
            &[0xff; 9],
            &[0x01, 0x2a, 4, 0x08, 2, 0x18, 5],
        ];
        let found = request
            .iter()
            .zip(expected.concat())
            .position(|(a, b)| *a != b);
        assert_eq!((found, request.len()), (None, expected.concat().len()));
    }
}
