//! Questions of DNS over UDP (RFC 1035) and how they were answered.

use std::collections::{BTreeMap, HashMap};

use plumb_model::order::sort_few;
use plumb_model::results::capture::{DnsAnswer, DnsSums};
use plumb_wire::dns::code_name;

use crate::packet::Network;
use crate::table::{FlowKey, Seeded};
use crate::tcp::samples::Samples;

pub(crate) use plumb_wire::dns::PORT;

/// Questions that wait for an answer at a time; more would be an attack, and are not followed.
const MOST_WAITING: usize = 65_536;
/// A question that was not answered for so long is given up, and the same once more is another one: the C library's
/// resolver asks each of three servers twice for 5 s by default (resolv.conf(5)).
const GIVEN_UP_NS: u64 = 60_000_000_000;
/// Slowest answers that are named.
const SLOWEST: usize = 10;
/// Longest name (RFC 1035, section 3.1).
const MAX_NAME_BYTES: usize = 255;
const NS_PER_S: f64 = 1e9;

/// A question that waits.
#[derive(Debug)]
struct Question {
    asked_ns: u64,
    name: String,
}

/// What was asked and answered.
#[derive(Debug, Default)]
pub(crate) struct Dns {
    waiting: HashMap<(FlowKey, u16), Question, Seeded>,
    queries: u64,
    answers: u64,
    repeated: u64,
    /// Questions that were given up, and when that was looked at.
    given_up: u64,
    looked_ns: u64,
    codes: BTreeMap<String, u64>,
    times: Samples,
    slowest: Vec<DnsAnswer>,
}

impl Dns {
    /// Takes in a message.
    pub(crate) fn message(&mut self, network: &Network, ports: [u16; 2], payload: &[u8], now: u64) {
        let Some(([i0, i1, high, low, ..], rest)) = payload.split_first_chunk::<12>() else {
            return;
        };
        let id = u16::from_be_bytes([*i0, *i1]);
        let [source, destination] = ports;
        let ends = ((network.source, source), (network.destination, destination));
        let (key, _) = FlowKey::new(ends.0, ends.1, network.protocol);
        if high & 0x80 == 0 {
            self.queries += 1;
            self.give_up(now);
            let waits = self.waiting.contains_key(&(key, id));
            self.repeated += u64::from(waits);
            if !waits && self.waiting.len() < MOST_WAITING {
                let question = Question {
                    asked_ns: now,
                    name: name(rest),
                };
                self.waiting.insert((key, id), question);
            }
            return;
        }
        self.answers += 1;
        let code = code_name(low & 0x0f);
        *self.codes.entry(code.to_owned()).or_default() += 1;
        let Some(question) = self.waiting.remove(&(key, id)) else {
            return;
        };
        let ns = now.saturating_sub(question.asked_ns);
        self.times.add(ns);
        let answer_s = ns as f64 / NS_PER_S;
        let slow = self.slowest.len() < SLOWEST;
        if slow
            || self
                .slowest
                .last()
                .is_some_and(|fastest| fastest.answer_s < answer_s)
        {
            self.slowest.push(DnsAnswer {
                name: question.name,
                server: network.source.to_string(),
                code: code.to_owned(),
                answer_s,
            });
            sort_few(&mut self.slowest, |a, b| b.answer_s.total_cmp(&a.answer_s));
            self.slowest.truncate(SLOWEST);
        }
    }

    /// Gives up what was asked too long ago, now and then.
    fn give_up(&mut self, now: u64) {
        if now.saturating_sub(self.looked_ns) < GIVEN_UP_NS {
            return;
        }
        self.looked_ns = now;
        let before = self.waiting.len();
        self.waiting
            .retain(|_, question| now.saturating_sub(question.asked_ns) < GIVEN_UP_NS);
        self.given_up += (before - self.waiting.len()) as u64;
    }

    pub(crate) fn finish(self) -> DnsSums {
        DnsSums {
            queries: self.queries,
            answers: self.answers,
            repeated: self.repeated,
            unanswered: self.given_up + self.waiting.len() as u64,
            codes: self.codes,
            answer_s: self.times.distribution(),
            slowest: self.slowest,
        }
    }
}

/// The name of a question, as much of it as is whole; a question has no pointers.
fn name(mut bytes: &[u8]) -> String {
    let mut name = String::new();
    // Ends with the name: each turn passes a label.
    while let Some((length @ 1..=63, rest)) = bytes.split_first() {
        let Some((label, rest)) = rest.split_at_checked(usize::from(*length)) else {
            break;
        };
        if name.len() + label.len() > MAX_NAME_BYTES {
            break;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|byte| match byte {
            b'!'..=b'~' => char::from(*byte),
            _ => '?',
        }));
        bytes = rest;
    }
    match name.is_empty() {
        true => ".".to_owned(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::{Transport, decode};
    use crate::read::Frame;
    use crate::testing::ipv4;

    const S: u64 = 1_000_000_000;

    /// A message of a resolver at that time: a question, or its answer.
    fn message(dns: &mut Dns, is_answer: bool, now: u64) {
        let mut datagram = Vec::new();
        let ports: [u16; 2] = if is_answer { [53, 4000] } else { [4000, 53] };
        for field in [ports[0], ports[1], 8 + 12, 0] {
            datagram.extend(field.to_be_bytes());
        }
        datagram.extend([
            0,
            7,
            if is_answer { 0x80 } else { 0 },
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ]);
        let hosts = [[10, 0, 0, 1], [10, 0, 0, 53]];
        let [from, to] = if is_answer {
            [hosts[1], hosts[0]]
        } else {
            hosts
        };
        let bytes = ipv4(17, from, to, &datagram);
        let packet = decode(&Frame {
            unix_ns: now,
            link: 101,
            bytes: &bytes,
            original_bytes: bytes.len() as u32,
        });
        let Transport::Udp { ports, payload } = packet.transport else {
            panic!("{packet:?}");
        };
        dns.message(&packet.network.unwrap(), ports, payload, now);
    }

    #[test]
    fn a_question_that_was_given_up_is_not_answered_hours_later() {
        let mut dns = Dns::default();
        message(&mut dns, false, S);
        message(&mut dns, false, 6 * S);
        for hour in [1, 2] {
            let asked = hour * 3600 * S;
            message(&mut dns, false, asked);
            message(&mut dns, true, asked + S / 50);
        }
        let sums = dns.finish();
        assert_eq!((sums.queries, sums.answers), (4, 2));
        assert_eq!((sums.repeated, sums.unanswered), (1, 1));
        assert!((sums.answer_s.unwrap().max - 0.02).abs() < 1e-6);
    }
}
