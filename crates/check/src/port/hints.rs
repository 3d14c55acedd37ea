//! What the evidence says about where a connection ends.

use plumb_probe::exchange::Exchange;

/// A sign in the head of an answer: the field, what its value contains (in lower case; empty for anything),
/// and whose edges set it. From the operators' own documentation of what they add.
const SIGNS: &[(&str, &str, &str)] = &[
    ("cf-ray", "", "Cloudflare"),
    ("server", "cloudflare", "Cloudflare"),
    ("x-amz-cf-id", "", "Amazon CloudFront"),
    ("x-amz-cf-pop", "", "Amazon CloudFront"),
    ("x-fastly-request-id", "", "Fastly"),
    ("x-served-by", "cache-", "Fastly"),
    ("server", "akamaighost", "Akamai"),
    ("x-akamai-request-id", "", "Akamai"),
    ("akamai-grn", "", "Akamai"),
    ("x-azure-ref", "", "Azure Front Door"),
    ("x-msedge-ref", "", "Azure Front Door"),
    ("via", "google", "Google's front end"),
    ("server", "bunnycdn", "Bunny"),
    ("server", "keycdn", "KeyCDN"),
    ("x-77-pop", "", "CDN77"),
    ("x-vercel-id", "", "Vercel"),
];

/// Names that certificates of edges bear.
const CERTIFICATES: &[(&str, &str)] = &[
    ("cloudflaressl.com", "Cloudflare"),
    ("cloudfront.net", "Amazon CloudFront"),
    ("fastly.net", "Fastly"),
    ("akamaized.net", "Akamai"),
    ("akamai.net", "Akamai"),
    ("azureedge.net", "Azure Front Door"),
    ("b-cdn.net", "Bunny"),
];

/// Fields in which edges name the site at which they are.
const SITES: &[&str] = &[
    "cf-ray",
    "x-amz-cf-pop",
    "x-served-by",
    "x-77-pop",
    "x-vercel-id",
];

/// What can be said.
pub(super) fn hints(seen: &Exchange) -> Vec<String> {
    let mut hints = Vec::new();
    let field = |name: &str| seen.head.as_ref().and_then(|head| head.field(name));
    let sign = SIGNS.iter().find(|(name, part, _)| {
        field(name).is_some_and(|value| value.to_ascii_lowercase().contains(part))
    });
    let names = || seen.tls.iter().flat_map(|tls| &tls.names);
    let certificate = CERTIFICATES
        .iter()
        .find(|(suffix, _)| names().any(|name| name.ends_with(suffix)));
    match (sign, certificate) {
        (Some((name, _, whose)), _) => {
            let site = SITES.iter().find_map(|site| field(site));
            let site = site.map_or_else(String::new, |site| format!(", which calls itself {site}"));
            hints.push(format!(
                "An edge of a content network answers ({whose}, by the field {name}{site}): its times are those \
                 to the edge, not to the server behind it. Such addresses are often anycast: from another place \
                 another edge answers."
            ));
        }
        (None, Some((suffix, whose))) => hints.push(format!(
            "The certificate is for names of {suffix} ({whose}): an edge of a content network, or a server that \
             shares its certificate."
        )),
        (None, None) => {}
    }
    hints
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::TimestampSource;
    use plumb_probe::exchange::TlsSeen;
    use plumb_wire::http_head::Head;
    use std::time::Duration;

    fn seen(fields: &[(&str, &str)], names: &[&str]) -> Exchange {
        Exchange {
            connect: Duration::ZERO,
            connect_stamps: TimestampSource::Kernel,
            syn_again: false,
            local: None,
            tls: Some(TlsSeen {
                handshake: Duration::ZERO,
                version: String::new(),
                cipher_suite: String::new(),
                names: names.iter().map(|n| (*n).to_owned()).collect(),
            }),
            first_byte: None,
            head: Some(Head {
                status: 200,
                fields: fields
                    .iter()
                    .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                    .collect(),
            }),
            banner: None,
            error: None,
        }
    }

    #[test]
    fn edges_are_pointed_out_where_the_evidence_shows_them() {
        assert!(hints(&seen(&[("server", "nginx")], &["example.net"])).is_empty());
        let edge = hints(&seen(&[("cf-ray", "8f-FRA")], &[]));
        assert!(
            edge.iter()
                .any(|hint| hint.contains("Cloudflare") && hint.contains("8f-FRA")),
            "{edge:?}"
        );
        let shared = hints(&seen(&[], &["d1.cloudfront.net"]));
        assert!(shared.iter().any(|hint| hint.contains("CloudFront")));
    }
}
