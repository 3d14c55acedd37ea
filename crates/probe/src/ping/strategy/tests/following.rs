//! Probes that follow answers, and those that leave ahead of them.

use super::*;

#[test]
fn flooding_sends_when_answered_or_after_ten_milliseconds() {
    let flood = Plan {
        pace: Pace::Flood,
        ..plan(5)
    };
    // Answered after 2 ms; the third and the fourth not at all.
    let mut net = Virtual::new(|n| {
        if matches!(n, 2 | 3) {
            vec![]
        } else {
            vec![2 * MS]
        }
    });
    let log = net.run(&flood);
    let gaps_us: Vec<u64> = net
        .sent
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1000)
        .collect();
    assert_eq!(gaps_us[2..], [10_000, 10_000]);
    assert!(
        gaps_us[..2].iter().all(|us| (2_000..2_100).contains(us)),
        "{gaps_us:?}"
    );
    let result = log.result(0.0, 10.0);
    assert_eq!((result.sent, result.received), (5, 3));
    assert!(result.lateness_s.unwrap().max < 0.001);
    // It ends with its time, where there is no count.
    let mut net = Virtual::new(|_| vec![2 * MS]);
    let timed = Plan {
        count: None,
        duration: Some(Duration::from_millis(50)),
        ..flood
    };
    let sent = net.run(&timed).samples.len();
    assert!((24..=26).contains(&sent), "{sent}");
}

#[test]
fn an_adaptive_one_follows_answers_within_bounds() {
    let adaptive = Plan {
        pace: Pace::Answers,
        interval: Duration::from_millis(50),
        ..plan(6)
    };
    // Answered after 20 ms, at once, never, after the interval, and after 20 ms again.
    let after = [20 * MS, MS / 10, u64::MAX, 70 * MS, 20 * MS, 20 * MS];
    let mut net = Virtual::new(|n| {
        Some(after[n as usize])
            .into_iter()
            .filter(|ns| *ns < u64::MAX)
            .collect()
    });
    net.run(&adaptive);
    let gaps_ms: Vec<u64> = net
        .sent
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / MS)
        .collect();
    assert_eq!(gaps_ms, [20, 1, 50, 50, 20]);
}

#[test]
fn what_is_sent_ahead_leaves_at_once() {
    let ahead = Plan {
        preload: 3,
        interval: Duration::from_millis(50),
        ..plan(5)
    };
    let mut net = Virtual::new(|_| vec![20 * MS]);
    let log = net.run(&ahead);
    let at_ms: Vec<u64> = net.sent.iter().map(|ns| (ns - START) / MS).collect();
    assert_eq!(at_ms, [0, 0, 0, 50, 100]);
    assert!(log.result(0.0, 10.0).lateness_s.unwrap().max < 0.001);
    // With answers: the fourth after the third's.
    let mut net = Virtual::new(|_| vec![20 * MS]);
    net.run(&Plan {
        pace: Pace::Answers,
        ..ahead
    });
    let at_ms: Vec<u64> = net.sent.iter().map(|ns| (ns - START) / MS).collect();
    assert_eq!(at_ms, [0, 0, 0, 20, 40]);
}
