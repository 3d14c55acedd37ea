//! What came of a page load, as a Run has it.

use plumb_model::distribution::Distribution;
use plumb_model::results::page_load::{
    CriticalStep, ObjectSource, PageLoadResult, PageObject, PageOrigin, RoundTrips,
};
use plumb_model::run::kept;
use plumb_wire::url::Url;

use super::loader::{Left, Loader};
use super::object::Object;
use super::origin::{Connection, Established, Server, Span};
use super::plan::Objects;

/// What slow start sends first, in bytes: ten segments (RFC 6928), each of what is left of 1500 bytes behind the headers of
/// IPv4 and of TCP with timestamps.
const FIRST_WINDOW_BYTES: u64 = 10 * 1448;

impl Loader {
    /// What has come of it so far.
    pub(crate) fn result(&self) -> PageLoadResult {
        let page = self.objects.get(self.page);
        let html_ns = page.and_then(|page| page.end_ns.filter(|_| !page.redirected));
        let whole = || self.objects.iter().filter_map(|object| object.end_ns);
        let load_s = html_ns
            .and_then(|_| whole().max())
            .map(|end| self.since(end));
        let critical = html_ns.map(|_| self.critical_objects()).unwrap_or_default();
        let failed = self
            .objects
            .iter()
            .filter(|object| object.error.is_some())
            .count();
        let established = || {
            self.connections
                .iter()
                .filter_map(|c| c.established.as_ref())
        };
        let objects: Vec<PageObject> = self
            .objects
            .iter()
            .enumerate()
            .map(|(at, _)| at)
            .filter_map(|at| self.object(at))
            .collect();
        let first_bytes = objects.iter().filter_map(|object| object.first_byte_s);
        let bodies = objects.iter().filter_map(|object| object.body_s);
        PageLoadResult {
            url: self
                .objects
                .first()
                .map(|first| recorded(&first.url))
                .unwrap_or_default(),
            page_url: page
                .filter(|page| page.status.is_some())
                .map(|page| recorded(&page.url)),
            redirects: page.map_or(0, |page| page.redirects.into()),
            status: page.and_then(|page| page.status),
            protocol: page
                .and_then(|page| self.connection_of(page))
                .map(|(_, e)| e.version),
            objects_from: match self.wanted {
                Objects::Found => ObjectSource::Page,
                Objects::Listed(_) => ObjectSource::List,
                Objects::None => ObjectSource::None,
            },
            gzip_allowed: self.gzip,
            complete: failed == 0 && self.left.is_empty() && html_ns.is_some(),
            first_byte_s: page
                .and_then(|page| page.first_byte_ns)
                .map(|first| self.since(first)),
            html_s: html_ns.map(|end| self.since(end)),
            load_s,
            bytes: self.objects.iter().map(|object| object.bytes).sum(),
            requested: self.objects.len() as u64,
            failed: failed as u64,
            connections: established().count() as u64,
            round_trips: load_s.map(|load_s| self.round_trips(&critical, load_s)),
            cache_fields: page
                .map(|page| page.cache_fields.clone())
                .unwrap_or_default(),
            critical_path: self.steps(&critical),
            dns_s: Distribution::of(
                self.servers
                    .iter()
                    .filter_map(|s| s.dns)
                    .map(Span::length_s),
            ),
            connect_s: Distribution::of(established().map(connect_s)),
            tls_s: Distribution::of(
                established()
                    .filter_map(|e| e.tls.as_ref())
                    .map(|tls| tls.handshake.length_s()),
            ),
            object_first_byte_s: Distribution::of(first_bytes),
            object_body_s: Distribution::of(bodies),
            origins: self
                .servers
                .iter()
                .enumerate()
                .map(|(at, server)| self.page_origin(at, server))
                .collect(),
            objects,
            left_out: self
                .left
                .iter()
                .map(|(left, count)| self.sentence(*left, *count))
                .collect(),
        }
    }

    fn since(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.begun_ns) as f64 / 1e9
    }

    /// The connection that an object was asked for on.
    fn connection_of(&self, object: &Object) -> Option<(&Connection, &Established)> {
        let connection = self.connections.get(object.connection?)?;
        Some((connection, connection.established.as_ref()?))
    }

    fn object(&self, at: usize) -> Option<PageObject> {
        let object = self.objects.get(at)?;
        let connection = self.connection_of(object);
        // What a connection and a name took is shown with the first object that had to wait for it.
        let opened = connection
            .filter(|_| !object.reused)
            .map(|(_, established)| established);
        let first_of_server = self.objects.iter().find(|o| o.server == object.server);
        let named = first_of_server.is_some_and(|first| std::ptr::eq(first, object));
        let server = self.servers.get(object.server);
        Some(PageObject {
            url: recorded(&object.url),
            kind: object.kind,
            found_in: object.found_in.map(|found_in| found_in as u64),
            origin: object.server as u64,
            protocol: connection.map(|(_, established)| established.version),
            connection: object.connection.map(|connection| connection as u64),
            reused_connection: object.connection.map(|_| object.reused),
            found_s: self.since(object.found_ns),
            dns_s: server
                .filter(|_| named)
                .and_then(|server| server.dns)
                .map(Span::length_s),
            connect_s: opened.map(connect_s),
            tls_s: opened
                .and_then(|e| e.tls.as_ref())
                .map(|tls| tls.handshake.length_s()),
            sent_s: object.sent_ns.map(|sent| self.since(sent)),
            first_byte_s: between(object.sent_ns, object.first_byte_ns),
            body_s: between(object.first_byte_ns, object.end_ns),
            bytes: object.bytes,
            status: object.status,
            error: object.error.clone(),
        })
    }

    fn page_origin(&self, at: usize, server: &Server) -> PageOrigin {
        let connections = self.connections.iter().filter(|c| c.server == at);
        let established: Vec<&Established> =
            connections.filter_map(|c| c.established.as_ref()).collect();
        let objects = || self.objects.iter().filter(|object| object.server == at);
        let first = established.first();
        PageOrigin {
            origin: server.origin.to_string(),
            address: first.map(|first| first.address.ip().to_string()),
            protocol: first.map(|first| first.version),
            tls: first
                .and_then(|first| first.tls.as_ref())
                .map(|tls| tls.version.clone()),
            dns_s: server.dns.map(Span::length_s),
            rtt_s: established
                .iter()
                .map(|e| connect_s(e))
                .min_by(f64::total_cmp),
            connections: established.len() as u64,
            objects: objects().count() as u64,
            bytes: objects().map(|object| object.bytes).sum(),
            error: server.error.clone(),
        }
    }

    /// From the one asked for to the one that was complete last, each found in the one before.
    fn critical_objects(&self) -> Vec<&Object> {
        let last = self
            .objects
            .iter()
            .filter(|object| object.end_ns.is_some())
            .max_by_key(|object| object.end_ns);
        let mut chain: Vec<&Object> = Vec::new();
        let mut next = last;
        while let Some(object) = next {
            chain.push(object);
            // Who names an object was known before it, so that this ends.
            next = object.found_in.and_then(|at| self.objects.get(at));
        }
        chain.reverse();
        chain
    }

    fn steps(&self, chain: &[&Object]) -> Vec<CriticalStep> {
        let ends = chain.iter().skip(1).map(|next| next.found_ns);
        let ends = ends.chain(chain.last().and_then(|last| last.end_ns));
        let number = |object: &Object| {
            let at = self.objects.iter().position(|o| std::ptr::eq(o, object));
            at.unwrap_or_default() as u64
        };
        chain
            .iter()
            .zip(ends)
            .map(|(object, end_ns)| {
                let sent_ns = object.sent_ns.unwrap_or(object.found_ns);
                let first_ns = object.first_byte_ns.unwrap_or(sent_ns);
                let waits = self.waits(object);
                let waited_s: f64 = waits.iter().map(|wait| wait.length_s()).sum();
                let [dns, connect, tls] = waits.map(Span::length_s);
                CriticalStep {
                    object: number(object),
                    blocked_s: seconds(object.found_ns, sent_ns) - waited_s,
                    dns_s: dns,
                    connect_s: connect,
                    tls_s: tls,
                    first_byte_s: seconds(sent_ns, first_ns),
                    body_s: seconds(first_ns, end_ns),
                }
            })
            .collect()
    }

    /// When an object waited for the lookup of its server's name, for TCP's handshake and for the TLS handshake; they
    /// do not overlap.
    fn waits(&self, object: &Object) -> [Span; 3] {
        let waiting = Span {
            from_ns: object.found_ns,
            to_ns: object.sent_ns.unwrap_or(object.found_ns),
        };
        let none = Span {
            from_ns: object.found_ns,
            to_ns: object.found_ns,
        };
        let within = |span: Option<Span>| span.map_or(none, |span| span.within(waiting));
        let established = self
            .connection_of(object)
            .map(|(_, established)| established);
        let dns = self
            .servers
            .get(object.server)
            .and_then(|server| server.dns);
        let tls = established.and_then(|established| established.tls.as_ref());
        [
            within(dns),
            within(established.map(|established| established.connect)),
            within(tls.map(|tls| tls.handshake)),
        ]
    }

    fn round_trips(&self, chain: &[&Object], load_s: f64) -> RoundTrips {
        let (mut count, mut time_s) = (0, 0.0);
        for (object, left) in chain.iter().zip((0..chain.len()).rev()) {
            let Some((_, established)) = self.connection_of(object) else {
                continue;
            };
            let [_, connect, tls] = self.waits(object);
            let mut here = 1;
            if connect.length_s() > 0.0 {
                here += 1;
            }
            if let Some(done) = established.tls.as_ref().filter(|_| tls.length_s() > 0.0) {
                here += done.round_trips;
            }
            // What names the next object may come with the first bytes; the last one is needed whole.
            if left == 0 {
                here += windows(object.carried_bytes, object.bytes);
            }
            count += here;
            time_s += here as f64 * connect_s(established);
        }
        RoundTrips {
            count,
            time_s,
            load_ratio: if load_s > 0.0 { time_s / load_s } else { 0.0 },
        }
    }

    fn sentence(&self, left: Left, count: u64) -> String {
        let objects = match count {
            1 => "1 object is".to_owned(),
            _ => format!("{count} objects are"),
        };
        match left {
            Left::Objects => format!(
                "{objects} left out: no more than {} are fetched.",
                self.limits.objects
            ),
            Left::Origins => format!(
                "{objects} left out: no more than {} servers are asked.",
                self.limits.origins
            ),
            Left::Port => {
                format!("{objects} left out: the port belongs to another service than the web.")
            }
            Left::Url => format!("{objects} left out: the reference is no URL."),
            Left::Compressed => format!(
                "{objects} not searched for others: the server compressed what was asked for uncompressed."
            ),
        }
    }
}

/// As the kernel timed it, or else by the clock.
/// What a Run keeps of a URL.
fn recorded(url: &Url) -> String {
    kept::url(&url.to_string())
}

fn connect_s(established: &Established) -> f64 {
    established
        .rtt_s
        .unwrap_or_else(|| established.connect.length_s())
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

fn between(from_ns: Option<u64>, to_ns: Option<u64>) -> Option<f64> {
    Some(seconds(from_ns?, to_ns?))
}

/// Round trips beyond the first in which slow start brings so many bytes: its window doubles with each, and has grown by
/// what the connection carried before (RFC 5681, section 3.1).
fn windows(before_bytes: u64, bytes: u64) -> u64 {
    let firsts = bytes.div_ceil(FIRST_WINDOW_BYTES.saturating_add(before_bytes));
    // The smallest number of windows whose sum, one less than a power of two, is as much.
    u64::from(u64::BITS - firsts.leading_zeros()).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_needs_so_many_round_trips() {
        for (before, windows_of_ten, more) in [
            (0, 0, 0),
            (0, 1, 0),
            (0, 2, 1),
            (0, 3, 1),
            (0, 4, 2),
            (0, 7, 2),
            (0, 8, 3),
            // The window has grown to four times the first.
            (3, 4, 0),
            (3, 5, 1),
        ] {
            let of = |count: u64| count * FIRST_WINDOW_BYTES;
            assert_eq!(
                windows(of(before), of(windows_of_ten)),
                more,
                "{before} {windows_of_ten}"
            );
        }
    }

    #[test]
    fn a_span_within_another_is_what_they_share() {
        let span = |from_ns, to_ns| Span { from_ns, to_ns };
        assert_eq!(span(0, 10).within(span(5, 20)), span(5, 10));
        assert_eq!(span(0, 10).within(span(10, 20)).length_s(), 0.0);
        assert_eq!(span(0, 10).within(span(15, 20)).length_s(), 0.0);
    }
}
