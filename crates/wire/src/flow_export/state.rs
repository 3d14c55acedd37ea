//! What is kept of one exporter between its messages, and what was counted of them.

use std::collections::{BTreeMap, BTreeSet};

use super::Protocol;
use super::clock::{Behind, Clocks};
use super::domain::{Domain, DomainKey};
use super::held::Held;
use super::sequence::Step;
use super::template::Templates;

/// Domains of one exporter: a chassis has one for each of its line cards.
const MOST_DOMAINS: usize = 256;

/// What was seen of an exporter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    pub protocols: BTreeSet<Protocol>,
    pub messages: u64,
    pub records: u64,
    /// Messages that could not be read, or not in full.
    pub malformed: u64,
    /// By protocol: flows, datagrams or records that were lost on the path here ([`Protocol::counts`]).
    pub lost: BTreeMap<Protocol, u64>,
    /// How often the exporter began anew, or counted from elsewhere.
    pub begun_anew: u64,
    /// Templates that took the number of another one.
    pub changed_templates: u64,
    /// Templates that are none: without fields, empty, or longer than what is kept.
    pub refused_templates: u64,
    /// Sets of records whose template did not come in time.
    pub without_template: u64,
    /// Samples of sFlow that are no packets: counters, and what else a vendor adds.
    pub passed_over: u64,
    /// How far the exporter's clock is behind.
    pub behind: Option<Behind>,
    /// The lowest and highest rate of sampling that records had: one packet of so many.
    pub one_in: Option<(f64, f64)>,
    /// Flows of which the exporter did not say how they are sampled.
    pub sampling_unknown: u64,
}

/// The exporter's templates, domains and counts.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) seen: Seen,
    pub(super) templates: Templates,
    pub(super) held: Held,
    pub(super) domains: BTreeMap<DomainKey, Domain>,
}

impl State {
    /// What is kept of that domain. Where there are too many, that goes of which nothing came for the longest time.
    pub(super) fn domain(&mut self, key: DomainKey, now_ms: i64) -> &mut Domain {
        if !self.domains.contains_key(&key) && self.domains.len() >= MOST_DOMAINS {
            let oldest = self.domains.iter().min_by_key(|(_, domain)| domain.used_ms);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.domains.remove(&oldest);
                self.templates.remove_of(oldest, None);
            }
        }
        let domain = self.domains.entry(key).or_default();
        domain.used_ms = now_ms;
        domain
    }

    /// Notes a message of a protocol.
    pub(super) fn see_message(&mut self, protocol: Protocol, clocks: Option<Clocks>, now_ms: i64) {
        self.seen.messages += 1;
        self.seen.protocols.insert(protocol);
        if let Some(clocks) = clocks {
            self.seen.behind = Some(Behind::see(self.seen.behind, clocks.sent_ms, now_ms));
        }
    }

    /// Sees the uptime of a message: an exporter that began anew counts from the beginning, and its templates may be others.
    pub(super) fn see_uptime(&mut self, key: DomainKey, uptime_ms: u32, now_ms: i64) {
        let domain = self.domain(key, now_ms);
        if domain.began_anew(uptime_ms) {
            domain.sequence.forget();
            self.seen.begun_anew += 1;
            self.templates.remove_of(key, None);
        }
    }

    /// Sees the sequence number of a message that counts for so many, where that is known.
    pub(super) fn see_sequence(
        &mut self,
        key: DomainKey,
        number: u32,
        counts: Option<u32>,
        now_ms: i64,
    ) {
        let step = self.domain(key, now_ms).sequence.see(number, counts);
        let lost = self.seen.lost.entry(key.0).or_default();
        match step {
            Step::Next => {}
            Step::Lost(count) => *lost += u64::from(count),
            Step::Late => *lost = lost.saturating_sub(u64::from(counts.unwrap_or(0))),
            Step::Anew => self.seen.begun_anew += 1,
        }
    }
}

impl Seen {
    /// Counts a record that is handed on.
    #[inline]
    pub(super) fn see_record(&mut self, one_in: Option<f64>) {
        self.records += 1;
        match one_in {
            None => self.sampling_unknown += 1,
            Some(one_in) => {
                let (least, most) = self.one_in.unwrap_or((one_in, one_in));
                self.one_in = Some((least.min(one_in), most.max(one_in)));
            }
        }
    }
}
