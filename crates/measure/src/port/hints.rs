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

/// Domains of edges: their certificates bear them, or the aliases of what they serve end there. Only the last alias is
/// seen: aliases of Azure Front Door end in t-msedge.net, and Akamai's edgekey.net in akamaiedge.net.
const DOMAINS: &[(&str, &str)] = &[
    ("cloudflaressl.com", "Cloudflare"),
    ("cdn.cloudflare.net", "Cloudflare"),
    ("cloudfront.net", "Amazon CloudFront"),
    ("fastly.net", "Fastly"),
    ("fastlylb.net", "Fastly"),
    ("akamaized.net", "Akamai"),
    ("akamai.net", "Akamai"),
    ("akamaiedge.net", "Akamai"),
    ("azureedge.net", "Azure Front Door"),
    ("azurefd.net", "Azure Front Door"),
    ("t-msedge.net", "Azure Front Door"),
    ("b-cdn.net", "Bunny"),
    ("kxcdn.com", "KeyCDN"),
    ("cdn77.org", "CDN77"),
];

/// Fields in which edges name the site at which they are.
const SITES: &[&str] = &[
    "cf-ray",
    "x-amz-cf-pop",
    "x-served-by",
    "x-77-pop",
    "x-vercel-id",
];

/// Whose edges have names like this one.
fn domain(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let within = |domain: &str| {
        name.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    DOMAINS.iter().copied().find(|(domain, _)| within(domain))
}

/// What can be said of a connection to a name that is an alias of `canonical_name`.
pub(super) fn edge(seen: &Exchange, canonical_name: Option<&str>) -> Option<String> {
    let field = |name: &str| seen.head.as_ref().and_then(|head| head.field(name));
    let sign = SIGNS.iter().find(|(name, part, _)| {
        field(name).is_some_and(|value| value.to_ascii_lowercase().contains(part))
    });
    let alias = || canonical_name.and_then(|name| Some((name, domain(name)?.1)));
    let edge = if let Some((name, _, whose)) = sign {
        let site = SITES.iter().find_map(|site| field(site));
        let site = site.map_or_else(String::new, |site| format!(", which calls itself {site}"));
        format!("{whose}, by the field {name}{site}")
    } else if let Some((name, whose)) = alias() {
        format!("{whose}, for the name resolves to {name}")
    } else {
        let mut names = seen.tls.iter().flat_map(|tls| &tls.names);
        let (suffix, whose) = names.find_map(|name| domain(name))?;
        return Some(format!(
            "The certificate is for names of {suffix} ({whose}): an edge of a content network, or a server that \
             shares its certificate."
        ));
    };
    Some(format!(
        "An edge of a content network answers ({edge}): its times are those to the edge, not to the server behind \
         it. Such addresses are often anycast: from another place another edge answers."
    ))
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
                valid_until_s: None,
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
            closed: None,
            error: None,
        }
    }

    #[test]
    fn edges_are_pointed_out_where_the_evidence_shows_them() {
        let own = seen(&[("server", "nginx")], &["example.net"]);
        for alias in [None, Some("web1.example.net"), Some("notcloudfront.net")] {
            assert_eq!(edge(&own, alias), None, "{alias:?}");
        }
        let says = |seen: &Exchange, alias, words: &[&str]| {
            let said = edge(seen, alias).unwrap();
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        };
        let alias = Some("d1.CloudFront.net.");
        says(
            &own,
            alias,
            &["Amazon CloudFront, for the name resolves to d1"],
        );
        let alias = Some("part-0013.t-0009.t-msedge.net");
        says(&own, alias, &["Azure Front Door"]);
        says(
            &seen(&[("cf-ray", "8f-FRA")], &[]),
            None,
            &["Cloudflare", "8f-FRA"],
        );
        says(
            &seen(&[], &["d1.cloudfront.net"]),
            None,
            &["CloudFront", "certificate"],
        );
    }
}
