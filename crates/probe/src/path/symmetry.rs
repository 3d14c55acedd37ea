//! The forward path beside the reverse path, and whether they are one. Pure.
//!
//! A router answers with the address of the interface that the probe came in by, or, as RFC 1812 (section
//! 4.3.2.4) has it and Linux does, of that by which its answer leaves. Where both ways are one these are
//! one, and the two ways show the two ends of each line, and not one address twice. Lines between routers are numbered from small networks (RFC 3021:
//! /31, else /30; RFC 6164: /127): two addresses of one such network are the ends of one line. Routers that
//! answer with an address of their own whichever way they are asked show that one twice instead. Which
//! of both a path is like shows by which of both is found more often.
//!
//! What has nothing in common is only said to differ between things that have, or the ends, and where
//! the addresses are not of one larger network either, whose members may be neighbours.

use std::net::IpAddr;

use plumb_model::results::path::{Comparison, LineBothWays, PathHop, PathSymmetry, Sameness};

/// A hop: its time to live, and everybody who answered there.
struct Hop {
    ttl: u8,
    addresses: Vec<IpAddr>,
}

/// Compares the forward path with the reverse path, each with its hops from its start on and whether its
/// target answered.
pub fn symmetry(there: (&[PathHop], bool), back: (&[PathHop], bool)) -> PathSymmetry {
    let length =
        |(hops, reached): (&[PathHop], bool)| hops.last().filter(|_| reached).map(|last| last.ttl);
    let (forward_hops, return_hops) = (length(there), length(back));
    let forward = hops(there.0);
    let mut backward = hops(back.0);
    backward.reverse();
    let by_networks = align(&forward, &backward, &one_line);
    // The far ends stand in one of the lists only: the target in that there, this host in that back.
    let routers = |list: &[Hop], from: usize, to: usize| from..list.len().saturating_sub(to);
    let inner_forward = forward
        .get(routers(&forward, 0, forward_hops.is_some().into()))
        .unwrap_or_default();
    let inner_backward = backward
        .get(routers(&backward, return_hops.is_some().into(), 0))
        .unwrap_or_default();
    let by_addresses = align(inner_forward, inner_backward, &one_router);
    let (comparison, lines) = match (anchors(&by_networks), anchors(&by_addresses)) {
        (0, 0) => (Comparison::Nothing, by_networks),
        (networks, addresses) if addresses > networks => (Comparison::Addresses, by_addresses),
        _ => (Comparison::Networks, by_networks),
    };
    PathSymmetry {
        routes: judge(&lines, forward_hops.zip(return_hops)),
        forward_hops,
        return_hops,
        comparison,
        lines,
    }
}

fn hops(hops: &[PathHop]) -> Vec<Hop> {
    hops.iter()
        .map(|hop| Hop {
            ttl: hop.ttl,
            addresses: hop
                .addresses
                .iter()
                .filter_map(|a| a.parse().ok())
                .collect(),
        })
        .collect()
}

/// All lines together. Different lengths are different paths, whatever answers.
fn judge(lines: &[LineBothWays], lengths: Option<(u8, u8)>) -> Sameness {
    let any = |what| lines.iter().any(|line| line.sameness == what);
    match lengths {
        Some((there, back)) if there != back => Sameness::Differ,
        _ if any(Sameness::Differ) => Sameness::Differ,
        Some(_) if any(Sameness::Same) && !any(Sameness::Unknown) => Sameness::Same,
        _ => Sameness::Unknown,
    }
}

fn anchors(lines: &[LineBothWays]) -> usize {
    lines
        .iter()
        .filter(|line| line.sameness == Sameness::Same)
        .count()
}

/// The two lists side by side, so that as many pairs as possible are the same (the longest common
/// subsequence), and the rest in order between them.
fn align(
    forward: &[Hop],
    backward: &[Hop],
    same: &dyn Fn(&Hop, &Hop) -> bool,
) -> Vec<LineBothWays> {
    let pairs = common(forward, backward, same);
    let anchored = !pairs.is_empty();
    let mut lines = Vec::new();
    let (mut f, mut b) = (0, 0);
    let ends = std::iter::once((forward.len(), backward.len()));
    for (to_f, to_b) in pairs.into_iter().chain(ends) {
        between(
            forward.get(f..to_f).unwrap_or_default(),
            backward.get(b..to_b).unwrap_or_default(),
            anchored,
            &mut lines,
        );
        if let (Some(one), Some(other)) = (forward.get(to_f), backward.get(to_b)) {
            lines.push(LineBothWays {
                forward_ttl: Some(one.ttl),
                return_ttl: Some(other.ttl),
                sameness: Sameness::Same,
            });
        }
        (f, b) = (to_f + 1, to_b + 1);
    }
    lines
}

/// Hops between two pairs that are the same, or the ends.
fn between(forward: &[Hop], backward: &[Hop], anchored: bool, lines: &mut Vec<LineBothWays>) {
    let unequal = forward.len() != backward.len();
    for index in 0..forward.len().max(backward.len()) {
        let (one, other) = (forward.get(index), backward.get(index));
        let apart = match (one, other) {
            (Some(one), Some(other)) => are_apart(one, other),
            _ => true,
        };
        lines.push(LineBothWays {
            forward_ttl: one.map(|hop| hop.ttl),
            return_ttl: other.map(|hop| hop.ttl),
            sameness: if anchored && (apart || unequal) {
                Sameness::Differ
            } else {
                Sameness::Unknown
            },
        });
    }
}

/// Places of the pairs of the longest common subsequence.
fn common(
    forward: &[Hop],
    backward: &[Hop],
    same: &dyn Fn(&Hop, &Hop) -> bool,
) -> Vec<(usize, usize)> {
    let width = backward.len() + 1;
    // How many pairs there are from each place on; the last row and column are the ends.
    let mut best = vec![0_usize; (forward.len() + 1) * width];
    let at = |best: &[usize], f: usize, b: usize| best.get(f * width + b).copied().unwrap_or(0);
    for (f, one) in forward.iter().enumerate().rev() {
        for (b, other) in backward.iter().enumerate().rev() {
            let paired = match same(one, other) {
                true => at(&best, f + 1, b + 1) + 1,
                false => 0,
            };
            let most = paired.max(at(&best, f + 1, b)).max(at(&best, f, b + 1));
            if let Some(place) = best.get_mut(f * width + b) {
                *place = most;
            }
        }
    }
    let mut pairs = Vec::new();
    let (mut f, mut b) = (0, 0);
    while let (Some(one), Some(other)) = (forward.get(f), backward.get(b)) {
        if same(one, other) && at(&best, f, b) == at(&best, f + 1, b + 1) + 1 {
            pairs.push((f, b));
            (f, b) = (f + 1, b + 1);
        } else if at(&best, f + 1, b) >= at(&best, f, b + 1) {
            f += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

fn any_pair(one: &Hop, other: &Hop, holds: impl Fn(IpAddr, IpAddr) -> bool) -> bool {
    one.addresses
        .iter()
        .any(|a| other.addresses.iter().any(|b| holds(*a, *b)))
}

fn one_line(one: &Hop, other: &Hop) -> bool {
    any_pair(one, other, |a, b| a != b && in_one_network(a, b, 30, 126))
}

fn one_router(one: &Hop, other: &Hop) -> bool {
    any_pair(one, other, |a, b| a == b)
}

/// Whether both answered, and with addresses that are of no one network as a local one has.
fn are_apart(one: &Hop, other: &Hop) -> bool {
    !one.addresses.is_empty()
        && !other.addresses.is_empty()
        && !any_pair(one, other, |a, b| in_one_network(a, b, 24, 64))
}

fn in_one_network(a: IpAddr, b: IpAddr, v4_bits: u32, v6_bits: u32) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= v4_bits,
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= v6_bits,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::path::HopAnswers;
    use proptest::prelude::*;

    /// A hop for each word; `*` does not answer.
    fn path(addresses: &str) -> Vec<PathHop> {
        (1..)
            .zip(addresses.split_whitespace())
            .map(|(ttl, address)| PathHop {
                ttl,
                address: None,
                addresses: Some(address)
                    .filter(|a| *a != "*")
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
                name: None,
                asn: None,
                as_name: None,
                place: None,
                sent: 3,
                received: 3,
                unanswered_ratio: 0.0,
                answers: HopAnswers::Well,
                rtt_s: None,
                last_rtt_s: None,
                annotation: None,
                this_host: false,
                mpls: Vec::new(),
                return_hops: None,
                notes: Vec::new(),
            })
            .collect()
    }

    /// What each line comes to, as `there-back` with a sign between: `=`, `/` for what differs, `?`.
    fn seen(there: &str, back: &str) -> (Sameness, String) {
        let found = symmetry((&path(there), true), (&path(back), true));
        let ttl = |ttl: Option<u8>| ttl.map_or_else(String::new, |ttl| ttl.to_string());
        let lines: Vec<String> = found
            .lines
            .iter()
            .map(|line| {
                let sign = match line.sameness {
                    Sameness::Same => '=',
                    Sameness::Differ => '/',
                    Sameness::Unknown => '?',
                };
                format!("{}{sign}{}", ttl(line.forward_ttl), ttl(line.return_ttl))
            })
            .collect();
        (found.routes, lines.join(" "))
    }

    #[test]
    fn one_line_shows_its_two_ends() {
        let (routes, lines) = seen("10.0.0.2 10.0.1.2 10.0.2.2", "10.0.2.1 10.0.1.1 10.0.0.1");
        assert_eq!((routes, lines.as_str()), (Sameness::Same, "1=3 2=2 3=1"));
        let (routes, lines) = seen("fd00::2 fd00:1::2", "fd00:1::1 fd00::1");
        assert_eq!((routes, lines.as_str()), (Sameness::Same, "1=2 2=1"));
    }

    #[test]
    fn another_line_between_the_same_routers_differs() {
        let (routes, lines) = seen("10.0.0.2 10.0.1.2 10.0.3.2", "10.0.3.1 10.0.2.1 10.0.0.1");
        assert_eq!((routes, lines.as_str()), (Sameness::Differ, "1=3 2/2 3=1"));
    }

    #[test]
    fn paths_of_different_lengths_differ_whatever_answers() {
        let (routes, lines) = seen("10.0.0.2 10.0.5.2", "10.0.4.2 10.0.2.1 10.0.1.1");
        assert_eq!(routes, Sameness::Differ, "{lines}");
        let (routes, lines) = seen("10.0.0.2 * 10.0.5.2", "10.0.5.1 * * 10.0.0.1");
        assert_eq!(
            (routes, lines.as_str()),
            (Sameness::Differ, "1=4 2/3 /2 3=1")
        );
    }

    #[test]
    fn routers_with_one_address_show_it_twice() {
        let (routes, lines) = seen("1.1.1.1 2.2.2.2 9.9.9.9", "2.2.2.2 1.1.1.1 8.8.8.8");
        assert_eq!((routes, lines.as_str()), (Sameness::Same, "1=2 2=1"));
        let (routes, _) = seen(
            "1.1.1.1 2.2.2.2 4.4.4.4 9.9.9.9",
            "4.4.4.4 3.3.3.3 1.1.1.1 8.8.8.8",
        );
        assert_eq!(routes, Sameness::Differ);
    }

    #[test]
    fn what_tells_nothing_is_not_said_to_differ() {
        for (there, back) in [
            // Nothing in common at all.
            ("1.1.1.1 2.2.2.2", "3.3.3.3 4.4.4.4"),
            // A silent router.
            ("10.0.0.2 * 10.0.2.2", "10.0.2.1 10.0.1.1 10.0.0.1"),
            // Members of one exchange.
            ("10.0.0.2 5.5.5.57 10.0.2.2", "10.0.2.1 5.5.5.12 10.0.0.1"),
            ("", ""),
        ] {
            assert_eq!(seen(there, back).0, Sameness::Unknown, "{there} {back}");
        }
        let unreached = symmetry((&path("10.0.0.2"), true), (&path("10.0.0.1"), false));
        assert_eq!(
            (unreached.routes, unreached.return_hops),
            (Sameness::Unknown, None)
        );
    }

    proptest! {
        /// Every hop stands in one line, in order.
        #[test]
        fn every_hop_stands_in_one_line(there in proptest::collection::vec("10\\.0\\.[0-4]\\.[12]|\\*", 0..12),
                                        back in proptest::collection::vec("10\\.0\\.[0-4]\\.[12]|\\*", 0..12)) {
            let (there, back) = (path(&there.join(" ")), path(&back.join(" ")));
            let found = symmetry((&there, false), (&back, false));
            let forward: Vec<u8> = found.lines.iter().filter_map(|l| l.forward_ttl).collect();
            let mut backward: Vec<u8> = found.lines.iter().filter_map(|l| l.return_ttl).collect();
            backward.reverse();
            prop_assert_eq!(forward, (1..=there.len() as u8).collect::<Vec<_>>());
            prop_assert_eq!(backward, (1..=back.len() as u8).collect::<Vec<_>>());
        }
    }
}
