//! The tables of names and values (RFC 7541, section 2.3).

use std::collections::VecDeque;

/// What an entry of the dynamic table counts beside its name and value, in bytes (RFC 7541, section 4.1); a list of
/// fields counts the same (RFC 9113, section 6.5.2).
pub(super) const ENTRY_BYTES: usize = 32;

/// A name and its value.
pub type Field = (Vec<u8>, Vec<u8>);

/// The static table (RFC 7541, appendix A); the first entry has index 1.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The index of a field in the static table, and whether its value is there too.
pub(super) fn find(name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
    let mut named = None;
    for ((known, known_value), index) in STATIC.iter().zip(1..) {
        if known.as_bytes() == name {
            if known_value.as_bytes() == value {
                return Some((index, true));
            }
            named = named.or(Some((index, false)));
        }
    }
    named
}

/// Both tables of one direction, of which the dynamic one is bounded.
#[derive(Debug)]
pub(super) struct Table {
    dynamic: VecDeque<Field>,
    bytes: usize,
    /// What the sender has set it to.
    max_bytes: usize,
    /// What it may be set to.
    limit_bytes: usize,
}

impl Table {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self {
            dynamic: VecDeque::new(),
            bytes: 0,
            max_bytes: limit_bytes,
            limit_bytes,
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Field> {
        match index.checked_sub(1).map(|at| (at, STATIC.get(at))) {
            None => None,
            Some((_, Some((name, value)))) => {
                Some((name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            }
            Some((at, None)) => self.dynamic.get(at - STATIC.len()).cloned(),
        }
    }

    /// Section 4.4: what does not fit empties the table and is no error.
    pub(super) fn insert(&mut self, field: Field) {
        let bytes = size(&field);
        self.evict(self.max_bytes.saturating_sub(bytes));
        if bytes <= self.max_bytes {
            self.bytes += bytes;
            self.dynamic.push_front(field);
        }
    }

    /// False where that is more than is allowed.
    pub(super) fn resize(&mut self, max_bytes: usize) -> bool {
        let allowed = max_bytes <= self.limit_bytes;
        if allowed {
            self.max_bytes = max_bytes;
            self.evict(max_bytes);
        }
        allowed
    }

    fn evict(&mut self, until_bytes: usize) {
        while self.bytes > until_bytes {
            let Some(oldest) = self.dynamic.pop_back() else {
                break;
            };
            self.bytes -= size(&oldest);
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn size(field: &Field) -> usize {
    field.0.len() + field.1.len() + ENTRY_BYTES
}
