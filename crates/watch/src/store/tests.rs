use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::summed::GRACE_S;
use super::*;
use crate::outage::Outage;

const DAY_S: i64 = 86_400;
/// All windows.
const EVER: (i64, i64) = (0, i64::MAX);

fn sample(sent_s: i64, ms: Option<u64>) -> (String, Sample) {
    let sample = Sample::timed(sent_s * 1_000_000, ms.map(Duration::from_millis));
    ("a".into(), sample)
}

#[test]
fn windows_are_summed_up_when_they_are_over_and_kept_as_long_as_they_should() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    // Two days, a probe a minute; the first of an hour is lost.
    let start_s = 1_000 * 86_400;
    for hour in 0..48 {
        let samples: Vec<_> = (0..60)
            .map(|minute| {
                let at = start_s + hour * 3600 + minute * 60;
                sample(at, (minute > 0).then_some(minute.unsigned_abs()))
            })
            .collect();
        store.append(&samples).unwrap();
        store.sum_up(start_s + (hour + 1) * 3600 + GRACE_S).unwrap();
    }
    let day = store.summed("a", Width::Day, EVER).unwrap();
    assert_eq!(day.len(), 2, "{day:?}");
    let (at, first) = day[0];
    assert_eq!((at, first.count, first.lost), (start_s, 1440, 24));
    assert_eq!(
        first.times.map(|t| (t.min_s, t.p50_s, t.max_s)),
        Some((0.001, 0.03, 0.059))
    );
    assert_eq!(
        store.summed("a", Width::QuarterHour, EVER).unwrap().len(),
        192
    );
    assert_eq!(store.summed("a", Width::Minute, EVER).unwrap().len(), 2880);
    let kept = store.samples("a", 0).unwrap();
    assert!((1500..=1501).contains(&kept.len()), "{}", kept.len());
    // A clock that is wrong once takes an hour of what is old, and no more.
    store.sum_up(start_s + 400 * DAY_S).unwrap();
    let left = store.summed("a", Width::Minute, EVER).unwrap().len();
    assert_eq!(left, 2820);
    // After a year minutes and samples are gone, and days are not.
    for _ in 0..48 {
        store.sum_up(start_s + 400 * DAY_S).unwrap();
    }
    let left = Width::ALL.map(|width| store.summed("a", width, EVER).unwrap().len());
    assert_eq!(left, [0, 0, 2]);
    assert_eq!(store.samples("a", 0).unwrap(), []);
}

#[test]
fn a_window_that_gets_more_samples_is_summed_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    store.append(&[sample(60_000, Some(1))]).unwrap();
    store.sum_up(60_100).unwrap();
    store.append(&[sample(60_001, None)]).unwrap();
    store.sum_up(60_100).unwrap();
    let minutes = store.summed("a", Width::Minute, EVER).unwrap();
    assert_eq!(
        minutes
            .iter()
            .map(|(_, d)| (d.count, d.lost))
            .collect::<Vec<_>>(),
        [(2, 1)]
    );
}

#[test]
fn what_is_not_its_own_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let refused = |path: &Path| Store::open(path).unwrap_err().to_string();
    let unread = |path: &Path| Store::open_to_read(path).unwrap_err().to_string();
    assert!(
        unread(&path).contains("there is no history"),
        "{}",
        unread(&path)
    );
    let open = Store::open(&path).unwrap();
    assert!(refused(&path).contains("another plumb watch"));
    drop(open);
    let change = |sql: &str| {
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    };
    change("PRAGMA user_version = 5");
    assert!(refused(&path).contains("newer plumb"), "{}", refused(&path));
    assert!(unread(&path).contains("newer plumb"), "{}", unread(&path));
    change("PRAGMA user_version = 2; PRAGMA application_id = 5");
    assert!(refused(&path).contains("something else"));
    assert!(unread(&path).contains("something else"));
    let text = folder.path().join("text");
    std::fs::write(&text, "no database ".repeat(1000)).unwrap();
    assert!(refused(&text).contains("is damaged"), "{}", refused(&text));
    assert!(unread(&text).contains("is damaged"), "{}", unread(&text));
    // A database whose pages were written over.
    let torn = folder.path().join("torn.db");
    let mut store = Store::open(&torn).unwrap();
    let samples: Vec<_> = (0..3000).map(|s| sample(s * 60, Some(1))).collect();
    store.append(&samples).unwrap();
    drop(store);
    let mut bytes = std::fs::read(&torn).unwrap();
    assert!(bytes.len() > 65_536, "{}", bytes.len());
    let half = bytes.len() / 2;
    bytes[8192..half].fill(0x5a);
    std::fs::write(&torn, bytes).unwrap();
    assert!(refused(&torn).contains("is damaged"), "{}", refused(&torn));
}

#[test]
fn what_cannot_be_sent_waits_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut store = Store::open(&path).unwrap();
    for (at, message) in [(100, "first"), (160, "second")] {
        store
            .write_alarms(&[], (message, at), ["a", "b"].into_iter())
            .unwrap();
    }
    let first = store.due("a", 160).unwrap().unwrap();
    assert_eq!((first.message.as_str(), first.tries), ("first", 0));
    store.settle(first.id, Some(190)).unwrap();
    drop(store);
    // The second does not overtake the first, also after a restart.
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.due("a", 189).unwrap(), None);
    let first = store.due("a", 190).unwrap().unwrap();
    assert_eq!(
        (first.message.as_str(), first.tries, first.queued_s),
        ("first", 1, 100)
    );
    store.settle(first.id, None).unwrap();
    assert_eq!(store.due("a", 190).unwrap().unwrap().message, "second");
    assert_eq!(store.due("b", 190).unwrap().unwrap().message, "first");
    // Of those that are never taken the latest stay.
    for number in 0..1005 {
        let message = number.to_string();
        store
            .write_alarms(&[], (&message, 200), ["c"].into_iter())
            .unwrap();
    }
    assert_eq!(store.due("c", 200).unwrap().unwrap().message, "5");
}

#[test]
fn a_database_of_version_1_gets_the_tables_of_today() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut store = Store::open(&path).unwrap();
    store.append(&[sample(60_000, Some(1))]).unwrap();
    // It had no other place for samples.
    store.sum_up(60_100).unwrap();
    drop(store);
    let old = "DROP TABLE alarm; DROP TABLE queue; DROP TABLE state; DROP TABLE fresh; DROP TABLE flow; \
               DROP TABLE flow_source; PRAGMA user_version = 1";
    Connection::open(&path).unwrap().execute_batch(old).unwrap();
    let refused = Store::open_to_read(&path).unwrap_err().to_string();
    assert!(refused.contains("an older plumb"), "{refused}");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.standing().unwrap(), []);
    assert_eq!(store.samples("a", 0).unwrap().len(), 1);
}

#[test]
fn a_state_is_kept_with_when_it_was_seen_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    assert_eq!(store.state("a").unwrap(), None);
    store.note_state("a", 5, "10.0.0.1").unwrap();
    store.note_state("a", 9, "10.0.0.2").unwrap();
    store.note_state("b", 7, "10.0.0.3").unwrap();
    assert_eq!(store.state("a").unwrap().as_deref(), Some("10.0.0.2"));
    let states = [(9, "10.0.0.2".to_owned()), (5, "10.0.0.1".to_owned())];
    assert_eq!(store.states("a", 9).unwrap(), states);
    assert_eq!(store.states("a", 1).unwrap(), states[..1]);
}

/// Where the child of the test below is to write.
const CHILD: &str = "PLUMB_WATCH_TEST_STORE";

/// Writes until it is killed, and prints each sample that was acknowledged.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let mut store = Store::open(Path::new(&path)).unwrap();
    for s in 0.. {
        store.append(&[sample(s, Some(1))]).unwrap();
        use std::io::Write as _;
        writeln!(std::io::stdout(), "\nwrote {s}").unwrap();
    }
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    use std::io::{BufRead as _, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut known = 0;
    for kill_after in [1, 40, 333] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "store::tests::child_that_writes"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let mut acknowledged = 0;
        while acknowledged < kill_after {
            let line = lines.next().unwrap();
            acknowledged += usize::from(line.starts_with("wrote "));
        }
        // SIGKILL, while it is writing.
        child.kill().unwrap();
        acknowledged += lines.filter(|line| line.starts_with("wrote ")).count();
        child.wait().unwrap();
        known += acknowledged;
        let found = Store::open(&path).unwrap().samples("a", 0).unwrap().len();
        assert!(found >= known, "{found} of {known}");
        // What was written and not acknowledged when it was killed, is one at most.
        assert!(found <= known + 1, "{found} of {known}");
        known = found;
    }
}

/// Twelve days of a probe a minute: an outage of 5 minutes at each noon, and one over three days.
#[test]
fn outages_outlive_their_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    let every = Duration::from_secs(60);
    store.note_intervals([("a", every)].into_iter()).unwrap();
    let start_s = 1_000 * DAY_S;
    let is_down = |at: i64| {
        let (day, second) = (at / DAY_S, at % DAY_S);
        let noon = (43_200..43_500).contains(&second);
        noon || (day == 4 && second >= 600) || day == 5 || (day == 6 && second < 1200)
    };
    let days = 12;
    for quarter in 0..days * 96 {
        let from = quarter * 900;
        let samples: Vec<_> = (from..from + 900)
            .step_by(60)
            .map(|at| sample(start_s + at, (!is_down(at)).then_some(7)))
            .collect();
        store.append(&samples).unwrap();
        // From the first sample to the last, before a window is over and after.
        let watched = Duration::from_secs((from + 840).unsigned_abs());
        assert_eq!(store.outages("a", 0).unwrap().watched, watched);
        store.sum_up(start_s + from + 900 + GRACE_S).unwrap();
        assert_eq!(store.outages("a", 0).unwrap().watched, watched);
    }
    let found = store.outages("a", 0).unwrap();
    let noon = |day: i64| {
        (
            start_s + day * DAY_S + 43_200,
            start_s + day * DAY_S + 43_500,
        )
    };
    let mut expected: Vec<_> = (0..days)
        .filter(|day| ![4, 5].contains(day))
        .map(noon)
        .collect();
    expected.push((start_s + 4 * DAY_S + 600, start_s + 6 * DAY_S + 1200));
    expected.sort_unstable();
    let seconds = |outage: &Outage| (outage.begin_us / 1_000_000, outage.end_us / 1_000_000);
    assert_eq!(
        found.outages.iter().map(seconds).collect::<Vec<_>>(),
        expected
    );
    assert!(found.outages.iter().all(|outage| !outage.lasts));
    let down_s = (10 * 300 + 2 * DAY_S + 600) as f64;
    let available = 1.0 - down_s / found.watched.as_secs_f64();
    assert!((found.availability().unwrap() - available).abs() < 1e-9);
    // Of the last three days alone.
    let recent = store.outages("a", start_s + 9 * DAY_S).unwrap();
    assert_eq!(recent.outages.len(), 3);
    assert_eq!(recent.mttr(), Some(Duration::from_secs(300)));
    assert_eq!(store.outages("nobody", 0).unwrap().availability(), None);
}

/// Four months of a probe in ten minutes, each with three days without a watch, and outages known beforehand.
#[test]
fn months_outlive_their_quarter_hours() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("w.db")).unwrap();
    let every = Duration::from_secs(600);
    store.note_intervals([("a", every)].into_iter()).unwrap();
    let first: Month = "2025-11".parse().unwrap();
    let last: Month = "2026-02".parse().unwrap();
    let (start_s, end_s) = (first.from_s(), last.to_s());
    // The 20th to the 22nd of each month are not watched; on the 10th it is down for two hours, and around each month's
    // end for one hour on both sides.
    let is_watched = |at: i64| {
        let days = (at - Month::of(at).unwrap().from_s()) / DAY_S;
        !(19..22).contains(&days)
    };
    let is_down = |at: i64| {
        let month = Month::of(at).unwrap();
        let tenth = month.from_s() + 9 * DAY_S;
        (tenth..tenth + 7200).contains(&at)
            || at >= month.to_s() - 3600
            || (month != first && at < month.from_s() + 3600)
    };
    for hour_s in (start_s..end_s).step_by(3600) {
        let samples: Vec<_> = (hour_s..hour_s + 3600)
            .step_by(600)
            .filter(|at| is_watched(*at))
            .map(|at| sample(at, (!is_down(at)).then_some(7)))
            .collect();
        store.append(&samples).unwrap();
        store.sum_up(hour_s + 3600 + GRACE_S).unwrap();
        // Whatever is summed up already, what was watched is the same.
        if (hour_s - start_s) / 3600 % 31 == 0 {
            let months = store.months("a", None, hour_s + 3600).unwrap();
            let sum: Duration = months.iter().map(|month| month.watched).sum();
            assert_eq!(sum, store.outages("a", 0).unwrap().watched, "{hour_s}");
        }
    }
    // The month that begins at the end has nothing yet.
    let months_until_end = |store: &Store| {
        let mut found = store.months("a", None, end_s).unwrap();
        assert_eq!(found.pop().unwrap().ratio(), None);
        found
    };
    let found = months_until_end(&store);
    let months: Vec<Month> = found.iter().map(|month| month.month).collect();
    assert_eq!(months, last.since(first).collect::<Vec<_>>());
    for month in &found {
        let of = |yes: bool, s: u64| Duration::from_secs(u64::from(yes) * s);
        let (is_first, is_last) = (month.month == first, month.month == last);
        let unknown = of(true, 3 * 86_400 + 600) + of(is_first, 600);
        assert_eq!(month.unknown(), unknown, "{}", month.month);
        let down = of(true, 14_400) - of(is_first, 3600) - of(is_last, 600);
        assert_eq!(month.down, down, "{}", month.month);
        assert_eq!(month.outages, 2);
        assert_eq!(
            store.months("a", Some(month.month), end_s).unwrap(),
            std::slice::from_ref(month)
        );
    }
    assert_eq!(found[1].mttr(), Some(Duration::from_secs(7200)));
    assert_eq!(store.months("nobody", None, end_s).unwrap(), []);
    // After a year the quarter-hours of the first months are gone.
    let sql = format!(
        "DELETE FROM summed WHERE width_s = 900 AND start_s < {}",
        found[2].month.from_s()
    );
    assert!(store.connection.execute(&sql, []).unwrap() > 5000);
    assert_eq!(months_until_end(&store), found);
}

/// How many bytes a year of a target takes, for docs/watch-a-line.md: a minute is kept for 30 days, a quarter-hour for a year.
#[test]
fn a_year_of_a_target_takes_less_than_8_mb() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.db");
    let mut store = Store::open(&path).unwrap();
    let start_s = 1_000 * DAY_S;
    let samples: Vec<_> = (0..8640)
        .map(|at: i64| {
            let us = 20_000 + (at * 7919 % 10_007).unsigned_abs();
            let sample = Sample::timed(
                (start_s + at * 10) * 1_000_000,
                (at % 100 > 0).then_some(Duration::from_micros(us)),
            );
            ("a".to_owned(), sample)
        })
        .collect();
    store.append(&samples).unwrap();
    store.sum_up(start_s + DAY_S + GRACE_S).unwrap();
    let bytes_of = |table: &str, rows: u64| -> u64 {
        // dbstat is not compiled in: the table by itself, in a file of its own.
        let copy = folder.path().join(table);
        let sql = format!(
            "ATTACH '{}' AS c; CREATE TABLE c.t AS SELECT * FROM {table}; DETACH c;",
            copy.display()
        );
        store.connection.execute_batch(&sql).unwrap();
        std::fs::metadata(&copy).unwrap().len() / rows
    };
    let row_bytes = bytes_of("summed", 1440 + 96 + 1);
    let raw_bytes = bytes_of("raw", 1);
    let year_bytes = row_bytes * (30 * 1440 + 366 * 96 + 366) + raw_bytes;
    assert!(
        year_bytes < 8_000_000,
        "{row_bytes} a row, {raw_bytes} raw, {year_bytes} in all"
    );
}

proptest! {
    // Each makes a database.
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// A block grows by any bytes, those that would end a text among them.
    #[test]
    fn samples_of_a_minute_come_back_as_they_were(
        mut sent_us in proptest::collection::vec(60_000_000i64..120_000_000, 1..20),
        units in proptest::collection::vec(proptest::option::of(0u64..4_000_000_000), 20),
    ) {
        sent_us.sort_unstable();
        sent_us.dedup();
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("w.db")).unwrap();
        let samples: Vec<_> = sent_us.iter().zip(units).map(|(sent_us, units)| Sample::timed(*sent_us, units.map(|units| Duration::from_nanos(units * 100)))).collect();
        for sample in &samples {
            store.append(&[("a".into(), *sample)]).unwrap();
        }
        prop_assert_eq!(store.samples("a", 0).unwrap(), samples);
    }
}
