//! Where packets are lost, as opposed to where a router declines to answer.
//!
//! A packet that is lost before it reaches a hop would have been lost before any hop beyond it. So a hop that answers
//! less often than the hops beyond it loses nothing: it limits the rate of its ICMP, or is busy forwarding. What is
//! lost on the path shows at some hop and at all beyond. Less often by chance is neither: a few probes do not decide
//! it. Behind the last hop that answers there is no hop to compare it with. So its answers must be of a kind that is
//! always given: replies, and not ICMP errors, of which hosts and routers limit the rate alike.

use crate::loss::at_least_ratio;
use crate::results::path::{HopAnswers, PathLoss};

/// How sure it must be that a hop answers more sparingly than those beyond it: the probability of as much
/// by chance (Fisher's exact test).
const SPARING_CHANCE: f64 = 0.01;
/// Hops for which the probes speak within so much of the best log-likelihood are as good: two
/// units are about 95 % (a quarter of χ² with one degree of freedom is 0.96; two are cautious).
const AS_LIKELY: f64 = 2.0;

/// The probes to a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of the hop; 1 is the first router.
    pub ttl: u8,
    /// Probes that were sent to it.
    pub sent: u64,
    /// Probes that were not answered.
    pub lost: u64,
}

impl Count {
    fn answers(&self) -> bool {
        self.lost < self.sent
    }
}

/// What the last hop that answers says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// Replies to what it was asked, each time.
    Replies,
    /// That it does not deliver packets: as often as it likes.
    Errors,
}

/// How each hop answers, and where packets are lost. `hops` are in the order of their distance.
pub fn examine(hops: &[Count], says: Last) -> (Vec<HopAnswers>, Option<PathLoss>) {
    let mut answers = vec![HopAnswers::Silent; hops.len()];
    // Probes to the hops beyond, as far as they are of use.
    let (mut sent, mut lost) = (0, 0);
    let mut sound: Vec<Count> = Vec::new();
    for (hop, how) in hops.iter().zip(&mut answers).rev() {
        if !hop.answers() {
            continue;
        }
        let beyond = Count { ttl: 0, sent, lost };
        *how = if sent > 0 && is_sparing(hop, &beyond) {
            HopAnswers::Sparing
        } else if sent > 0 && lost == 0 && hop.lost > 0 {
            HopAnswers::TooFew
        } else {
            sound.push(*hop);
            sent += hop.sent;
            lost += hop.lost;
            match says {
                Last::Errors if hop.lost > 0 => HopAnswers::Unclear,
                _ => HopAnswers::Well,
            }
        };
    }
    sound.reverse();
    let loss = match says {
        Last::Replies => beginning(&sound),
        Last::Errors => None,
    };
    (answers, loss)
}

fn is_sparing(hop: &Count, beyond: &Count) -> bool {
    hop.lost > 0 && by_chance(hop, beyond) < SPARING_CHANCE
}

/// The probability that a hop loses so many or more of all that were lost, if it loses as many as
/// the others (the upper tail of the hypergeometric distribution).
fn by_chance(hop: &Count, beyond: &Count) -> f64 {
    let all = hop.sent + beyond.sent;
    let lost = hop.lost + beyond.lost;
    let ways =
        |k: u64| ln_choose(hop.sent, k) + ln_choose(beyond.sent, lost - k) - ln_choose(all, lost);
    (hop.lost..=lost.min(hop.sent))
        .filter(|k| lost - k <= beyond.sent)
        .map(|k| ways(k).exp())
        .sum()
}

/// ln of the binomial coefficient.
fn ln_choose(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n.saturating_sub(k))
}

/// ln n!: exact for small numbers, by Stirling's series with three terms above.
fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    let n = n as f64;
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3))
}

/// The hop at which loss begins: of all steps from one loss ratio to a higher one, that under which
/// what was seen is likeliest.
fn beginning(sound: &[Count]) -> Option<PathLoss> {
    let last = sound.last().filter(|last| last.lost > 0)?;
    let sums = |hops: &[Count]| {
        hops.iter().fold((0, 0), |(sent, lost), hop| {
            (sent + hop.sent, lost + hop.lost)
        })
    };
    let mut steps = Vec::new();
    for (index, hop) in sound.iter().enumerate() {
        let (before, after) = sound.split_at(index);
        let (sent0, lost0) = sums(before);
        let (sent1, lost1) = sums(after);
        let rises = sent0 == 0 || lost0 as f64 * (sent1 as f64) < lost1 as f64 * sent0 as f64;
        if rises {
            let likelihood = ln_likelihood(sent0, lost0) + ln_likelihood(sent1, lost1);
            // It may also begin at silent or sparing hops between.
            let after = before
                .last()
                .map_or(1, |before| before.ttl.saturating_add(1));
            let step = Step {
                likelihood,
                ttl: hop.ttl,
                earliest_ttl: after,
                sent: sent1,
                lost: lost1,
            };
            steps.push(step);
        }
    }
    let by_likelihood = |a: &&Step, b: &&Step| a.likelihood.total_cmp(&b.likelihood);
    let best = steps.iter().max_by(by_likelihood)?;
    let as_likely = || {
        let enough = best.likelihood - AS_LIKELY;
        steps.iter().filter(move |step| step.likelihood >= enough)
    };
    Some(PathLoss {
        ratio: best.lost as f64 / best.sent as f64,
        at_least_ratio: at_least_ratio(best.sent, best.lost),
        sent_beyond: best.sent,
        lost_beyond: best.lost,
        begins_at_ttl: best.ttl,
        earliest_ttl: as_likely()
            .map(|s| s.earliest_ttl)
            .min()
            .unwrap_or(best.ttl),
        latest_ttl: as_likely().map(|s| s.ttl).max().unwrap_or(best.ttl),
        sent: last.sent,
        lost: last.lost,
    })
}

/// A step from one loss ratio to a higher one.
struct Step {
    /// ln of how likely what was seen is under it.
    likelihood: f64,
    /// The first hop behind it that answers and is not sparing.
    ttl: u8,
    /// The first hop behind the last such hop before it, which may be silent or sparing.
    earliest_ttl: u8,
    /// Probes to the hops behind it.
    sent: u64,
    /// How many of them were lost.
    lost: u64,
}

/// ln of the greatest likelihood of so many losses.
fn ln_likelihood(sent: u64, lost: u64) -> f64 {
    let term = |count: u64| {
        if count == 0 {
            0.0
        } else {
            count as f64 * (count as f64 / sent as f64).ln()
        }
    };
    term(lost) + term(sent - lost)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use HopAnswers::{Silent, Sparing, TooFew, Unclear, Well};
    use proptest::prelude::*;

    fn hops(lost: &[(u64, u64)]) -> Vec<Count> {
        lost.iter()
            .zip(1..)
            .map(|((sent, lost), ttl)| Count {
                ttl,
                sent: *sent,
                lost: *lost,
            })
            .collect()
    }

    #[test]
    fn a_router_that_limits_its_icmp_loses_nothing() {
        let (answers, loss) = examine(
            &hops(&[(50, 0), (50, 35), (50, 50), (50, 7), (50, 0)]),
            Last::Replies,
        );
        assert_eq!(answers, [Well, Sparing, Silent, Sparing, Well]);
        assert_eq!(loss, None);
    }

    #[test]
    fn few_probes_do_not_tell_a_limit_from_loss() {
        let how = |counts: &[(u64, u64)]| examine(&hops(counts), Last::Replies);
        // One of three beside three that were answered is as likely as not.
        assert_eq!(
            how(&[(3, 0), (3, 1), (3, 0)]),
            (vec![Well, TooFew, Well], None)
        );
        assert_eq!(
            how(&[(3, 1), (3, 2), (3, 0)]),
            (vec![TooFew, TooFew, Well], None)
        );
        assert_eq!(how(&[(10, 1), (10, 0)]), (vec![TooFew, Well], None));
        // The same shares of more probes, and one that nearly never answers.
        assert_eq!(how(&[(30, 10), (30, 0)]), (vec![Sparing, Well], None));
        assert_eq!(how(&[(10, 7), (10, 0)]), (vec![Sparing, Well], None));
        // A step of chance: of a path that loses 1 % of all, half of such hops are only unlucky.
        assert_eq!(how(&[(100, 2), (100, 0)]).0, [TooFew, Well]);
    }

    #[test]
    fn loss_begins_where_it_goes_on() {
        let counts = hops(&[
            (100, 0),
            (100, 40),
            (100, 0),
            (100, 12),
            (100, 9),
            (100, 11),
        ]);
        let (answers, loss) = examine(&counts, Last::Replies);
        assert_eq!(answers, [Well, Sparing, Well, Well, Well, Well]);
        let loss = loss.unwrap();
        assert_eq!(
            (loss.begins_at_ttl, loss.earliest_ttl, loss.latest_ttl),
            (4, 4, 4)
        );
        assert!((loss.ratio - 32.0 / 300.0).abs() < 1e-12);
        assert_eq!((loss.sent_beyond, loss.lost_beyond), (300, 32));
        assert_eq!((loss.sent, loss.lost), (100, 11));
    }

    #[test]
    fn three_probes_do_not_say_where() {
        let (_, loss) = examine(&hops(&[(3, 0), (3, 0), (3, 0), (3, 1)]), Last::Replies);
        let loss = loss.unwrap();
        assert_eq!((loss.begins_at_ttl, loss.lost), (4, 1));
        assert!(loss.earliest_ttl < 4, "{loss:?}");
        // Everything is lost from the first line on.
        let (_, loss) = examine(&hops(&[(50, 5), (50, 6), (50, 4)]), Last::Replies);
        assert_eq!(loss.unwrap().earliest_ttl, 1);
        assert_eq!(examine(&[], Last::Replies), (vec![], None));
    }

    #[test]
    fn behind_the_last_that_answers_nobody_tells() {
        // Two routers with one limit, and a target that is silent, or answers by errors too.
        let counts = hops(&[(40, 0), (40, 38), (40, 32), (40, 32), (40, 40)]);
        let (answers, loss) = examine(&counts, Last::Errors);
        assert_eq!(answers, [Well, Unclear, Unclear, Unclear, Silent]);
        assert_eq!(loss, None);
        let (answers, loss) = examine(&hops(&[(40, 0), (40, 9), (40, 0)]), Last::Errors);
        assert_eq!((answers, loss), (vec![Well, Sparing, Well], None));
    }

    proptest! {
        #[test]
        fn a_last_hop_that_answers_all_means_no_loss(counts in proptest::collection::vec((1u64..200, 0u64..200), 0..30)) {
            let counts: Vec<_> = counts.iter().map(|(sent, lost)| (*sent, *lost.min(sent))).collect();
            let (answers, loss) = examine(&hops(&[counts.as_slice(), &[(5, 0)]].concat()), Last::Replies);
            prop_assert_eq!(loss, None);
            prop_assert_eq!(answers.last(), Some(&Well));
            let (_, loss) = examine(&hops(&counts), Last::Replies);
            if let Some(loss) = loss {
                prop_assert!(loss.earliest_ttl <= loss.begins_at_ttl && loss.begins_at_ttl <= loss.latest_ttl);
                prop_assert!(loss.ratio > 0.0 && loss.ratio <= 1.0);
                prop_assert!(loss.at_least_ratio >= 0.0 && loss.at_least_ratio < loss.ratio);
            }
        }

        #[test]
        fn a_path_that_loses_is_seldom_called_a_limit(
            cycles in 1usize..60, hops_there in 1usize..6, loss in 0.0..0.5f64, seed in any::<u64>(),
        ) {
            // A line of routers that always answer, before which packets are lost: each hop misses as many as
            // those beyond it, but for chance.
            let mut state = seed | 1;
            let mut lost = || {
                // xorshift64 (Marsaglia 2003)
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                u64::from(((state >> 11) as f64 / (1u64 << 53) as f64) < loss)
            };
            let mut wrong = 0;
            for _ in 0..100 {
                let mut count = || (cycles as u64, (0..cycles).map(|_| lost()).sum());
                let counts: Vec<(u64, u64)> = (0..=hops_there).map(|_| count()).collect();
                let (answers, _) = examine(&hops(&counts), Last::Replies);
                wrong += usize::from(answers.contains(&Sparing));
            }
            // 1 % for each of up to five hops; a draw of a hundred seldom has thrice as many.
            prop_assert!(wrong <= 16, "{wrong} of 100");
        }

        #[test]
        fn factorials_agree(n in 2u64..400) {
            let exact: f64 = (2..=n).map(|i| (i as f64).ln()).sum();
            prop_assert!((ln_factorial(n) - exact).abs() < 1e-7 * exact.max(1.0));
        }
    }
}
