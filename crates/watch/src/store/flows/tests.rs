use super::*;
use crate::flows::minute::Tops;
use crate::store::Store;

const DAY_S: i64 = 86_400;
const START_S: i64 = 20_000 * DAY_S;
const EVER: (i64, i64) = (0, i64::MAX);

fn sums(bytes: f64) -> Sums {
    Sums {
        bytes,
        packets: bytes / 100.0,
        bytes_variance: bytes * 10.0,
        packets_variance: 1.0,
        flows: 1,
    }
}

fn top(rows: &[(&str, f64)], others: f64) -> Top {
    let rows = rows.iter().map(|(key, bytes)| Row {
        key: (*key).to_owned(),
        sums: sums(*bytes),
        missed_bytes: 0.0,
    });
    Top {
        rows: rows.collect(),
        others: sums(others),
        most_of_other: others / 2.0,
    }
}

/// A minute in which a has 5,000 bytes, and each third one b or another has more.
fn heard(start_s: i64) -> Heard {
    let number = start_s / 60;
    let guest = match number % 3 {
        0 => "b".to_owned(),
        _ => format!("guest {}", number % 7),
    };
    let total = Top {
        rows: top(&[("all", 20_000.0)], 0.0).rows,
        ..Top::default()
    };
    let tops: Tops = vec![
        (Dimension::Total, total),
        (
            Dimension::Source,
            top(&[(&guest, 9000.0), ("a", 5000.0)], 6000.0),
        ),
    ];
    Heard {
        source: "core".to_owned(),
        start_s,
        tops,
        state: State {
            since_s: START_S,
            ..State::default()
        },
    }
}

fn all_bytes(top: &Top) -> f64 {
    let rows = top.rows.iter().map(|row| row.sums.bytes);
    rows.sum::<f64>() + top.others.bytes
}

#[test]
fn windows_are_summed_up_once_keep_their_totals_and_go_when_they_are_old() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    for minute in 0..3 * 1440 {
        let start_s = START_S + minute * 60;
        store.append_flows(&[heard(start_s)]).unwrap();
        if minute % 15 == 14 {
            store.sum_up(start_s + 60 + SUM_AFTER_S).unwrap();
            // What was summed up is not summed up again.
            store.sum_up(start_s + 60 + SUM_AFTER_S).unwrap();
        }
    }
    store.sum_up(START_S + 3 * DAY_S + 1800).unwrap();
    let read = |store: &Store, by, width| store.flows("core", by, width, EVER).unwrap();
    let days = read(&store, Dimension::Source, Width::Day);
    let starts: Vec<i64> = days.iter().map(|(at_s, _)| *at_s).collect();
    assert_eq!(starts, [START_S, START_S + DAY_S, START_S + 2 * DAY_S]);
    for (_, day) in &days {
        assert_eq!(all_bytes(day), 1440.0 * 20_000.0);
        let a = day.rows.iter().find(|row| row.key == "a").unwrap();
        assert_eq!((a.sums.bytes, a.missed_bytes), (1440.0 * 5000.0, 0.0));
        assert_eq!(a.sums.bytes_variance, 1440.0 * 50_000.0);
    }
    assert_eq!(
        read(&store, Dimension::Source, Width::QuarterHour).len(),
        3 * 96
    );
    let total = read(&store, Dimension::Total, Width::Day);
    assert_eq!(total[0].1.rows[0].sums.bytes, 1440.0 * 20_000.0);
    assert_eq!(total[0].1.others, Sums::default());
    // Of minutes two days are left.
    let minutes = read(&store, Dimension::Source, Width::Minute).len();
    assert!((2850..=2880).contains(&minutes), "{minutes}");
    for _ in 0..100 {
        store.sum_up(START_S + 60 * DAY_S).unwrap();
    }
    assert_eq!(read(&store, Dimension::Source, Width::Minute).len(), 0);
    assert_eq!(read(&store, Dimension::Source, Width::QuarterHour).len(), 0);
    assert_eq!(read(&store, Dimension::Source, Width::Day).len(), 3);
    let (name, at_s, state) = store.flow_sources().unwrap().swap_remove(0);
    assert_eq!(
        (name.as_str(), at_s),
        ("core", START_S + (3 * 1440 - 1) * 60)
    );
    assert_eq!(state.since_s, START_S);
}

#[test]
fn a_minute_that_comes_twice_has_both() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    store
        .append_flows(&[heard(START_S), heard(START_S)])
        .unwrap();
    let found = store
        .flows("core", Dimension::Source, Width::Minute, EVER)
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(all_bytes(&found[0].1), 40_000.0);
    assert_eq!(found[0].1.rows[0].sums.flows, 2);
    assert_eq!(
        store
            .flows("other", Dimension::Source, Width::Minute, EVER)
            .unwrap(),
        []
    );
}
