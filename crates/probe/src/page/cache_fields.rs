//! Fields of an answer that caches, proxies and edges of content networks add to it.

use std::collections::BTreeMap;

use plumb_wire::http_head::Head;

/// Names of the fields: from RFC 9110 (Via), RFC 9111 (Age), RFC 9211 (Cache-Status) and Server-Timing (W3C), and
/// fields that operators document of their own.
const NAMES: &[&str] = &[
    "age",
    "cache-status",
    "cf-cache-status",
    "cf-ray",
    "server-timing",
    "via",
    "x-amz-cf-pop",
    "x-azure-ref",
    "x-cache",
    "x-served-by",
    "x-vercel-id",
];

/// Characters of a value that are kept: the longest that say something have some sixty.
const MOST_CHARACTERS: usize = 100;

/// Those that an answer has.
pub(super) fn cache_fields(head: &Head) -> BTreeMap<String, String> {
    let known = NAMES.iter().filter_map(|name| {
        let value: String = head.field(name)?.chars().take(MOST_CHARACTERS).collect();
        Some(((*name).to_owned(), value))
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_caches_add_is_kept_and_nothing_else() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let head = Head {
            status: 200,
            fields: vec![
                field("set-cookie", "secret"),
                field("via", &"x".repeat(500)),
                field("age", "12"),
            ],
        };
        let found = cache_fields(&head);
        let lengths: Vec<_> = found.iter().map(|(n, v)| (n.as_str(), v.len())).collect();
        assert_eq!(lengths, [("age", 2), ("via", MOST_CHARACTERS)]);
    }
}
