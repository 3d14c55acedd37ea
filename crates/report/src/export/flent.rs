//! A loaded phase as a data file of flent: gzipped JSON, version 4 of its format
//! (`flent/resultset.py`), under the name of the flent test that has the same series, so that flent's
//! plots find them. <https://flent.org>

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_model::dscp::{BACKGROUND, BEST_EFFORT};
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};
use plumb_model::series::Series;
use serde_json::{Map, Value, json};

use crate::context;
use crate::kinds::loaded_latency::loaded;
use crate::registry::{phase, shown};

/// Version of the format.
const VERSION: u32 = 4;

/// The flent whose reader this was written for.
const FLENT_VERSION: &str = "2.1.1";

/// Distance of the points that all series share, in seconds, flent's own default.
const STEP_S: f64 = 0.2;

/// What is longer is no phase of load but a damaged file, in seconds.
const LONGEST_S: f64 = 24.0 * 3600.0;

/// Why a Run cannot be written for flent.
#[derive(Debug, thiserror::Error)]
pub enum FlentError {
    /// It holds no phase of load.
    #[error("the Run has no latency under load: measure with `plumb load` or `plumb check`")]
    NoLoad,
    /// The phase that was asked for is not there.
    #[error("the Run has no phase '{asked}' of load: it has {known}")]
    NoPhase {
        /// What was asked for.
        asked: String,
        known: String,
    },
    /// Its start is no time.
    #[error("the Run's start is no time: {0}")]
    Started(jiff::Error),
    /// Something that should always work did not.
    #[error("cannot compress: {0}")]
    Compress(#[from] std::io::Error),
}

/// The file of one phase: the last one of the given direction, or of any direction without one.
///
/// # Errors
/// When the Run has no such phase.
pub fn export(run: &Run, direction: Option<Direction>) -> Result<Vec<u8>, FlentError> {
    let document = document(run, direction)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(document.to_string().as_bytes())?;
    Ok(gzip.finish()?)
}

/// The same as JSON.
fn document(run: &Run, direction: Option<Direction>) -> Result<Value, FlentError> {
    let loaded: Vec<_> = loaded(run).collect();
    if loaded.is_empty() {
        return Err(FlentError::NoLoad);
    }
    let of = |wanted: Direction| loaded.iter().rev().find(|(_, l)| l.direction == wanted);
    let found = match direction {
        Some(direction) => of(direction).ok_or_else(|| FlentError::NoPhase {
            asked: direction.name().to_owned(),
            known: loaded
                .iter()
                .map(|(_, l)| l.direction.name())
                .collect::<Vec<_>>()
                .join(", "),
        })?,
        None => loaded.last().ok_or(FlentError::NoLoad)?,
    };
    let (measurement, result) = *found;
    let started: jiff::Timestamp = run.started.parse().map_err(FlentError::Started)?;
    let t0_s = started.as_nanosecond() as f64 / 1e9 + measurement.at_s;
    let test = Test::of(
        measurement,
        result.direction,
        result.classes.contains_key("EF"),
    );
    let series = test.series(run, measurement);

    let steps = (measurement.duration_s.min(LONGEST_S) / STEP_S)
        .ceil()
        .max(1.0) as usize;
    let x_values: Vec<f64> = (0..steps).map(|n| n as f64 * STEP_S).collect();
    let mut results: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    let mut raw = Map::new();
    let mut meta = Map::new();
    for (name, (series, scale)) in &series {
        let points: Vec<_> = series.points().map(|(t, v)| (t, v * scale)).collect();
        results.insert(name.clone(), stepped(&points, steps));
        let values = points
            .iter()
            .map(|(t, v)| json!({ "t": t0_s + t, "val": v }));
        raw.insert(name.clone(), values.collect());
        let mean = points.iter().map(|(_, v)| v).sum::<f64>() / points.len().max(1) as f64;
        let units = if *scale == TO_MS { "ms" } else { "Mbits/s" };
        meta.insert(name.clone(), json!({ "MEAN_VALUE": mean, "UNITS": units }));
    }
    for (name, prefix, mean) in test.sums() {
        let sum = combined(&results, &prefix, mean);
        results.insert(name, sum);
    }
    let time = jiff::Timestamp::from_nanosecond((t0_s * 1e9) as i128).unwrap_or(started);
    // strptime's %f takes six digits.
    let time = format!("{time:.6}");
    let target = run.target.as_ref();
    let host = target.map_or("", |target| target.name.as_str());
    let v6 = target
        .and_then(|target| target.address.as_ref())
        .is_some_and(|address| address.contains(':'));
    Ok(json!({
        "version": VERSION,
        "x_values": x_values,
        "results": results,
        "raw_values": raw,
        "metadata": {
            "NAME": test.name,
            "TITLE": format!("plumb {}", run.id),
            "NOTE": format!("measured by plumb {}", run.plumb),
            "HOST": host,
            "HOSTS": [host],
            "LOCAL_HOST": "",
            "TIME": time,
            "T0": time,
            "LENGTH": measurement.duration_s,
            "TOTAL_LENGTH": measurement.duration_s,
            "STEP_SIZE": STEP_S,
            "TEST_PARAMETERS": test.parameters(),
            "FLENT_VERSION": FLENT_VERSION,
            "IP_VERSION": if v6 { 6 } else { 4 },
            "BATCH_NAME": null, "BATCH_TIME": null, "BATCH_TITLE": null, "BATCH_UUID": null,
            "DATA_FILENAME": format!("{}-{}.flent.gz", test.name, run.id),
            "HTTP_GETTER_URLLIST": null, "HTTP_GETTER_DNS": null, "HTTP_GETTER_WORKERS": null,
            "SERIES_META": meta,
        },
    }))
}

/// Seconds to flent's milliseconds, and bits a second to its megabits.
const TO_MS: f64 = 1e3;
const TO_MBIT: f64 = 1e-6;

/// Series by flent's name, each with the factor to its unit.
type Named<'a> = BTreeMap<String, (&'a Series, f64)>;

/// A test of flent.
struct Test {
    name: &'static str,
    direction: Direction,
    /// How many streams there are each way.
    streams: u64,
    /// Class of each stream, by its number; empty where all are best effort.
    classes: Vec<String>,
}

impl Test {
    /// The test that has the same series; `ef`: a class of its own for voice is among them.
    fn of(measurement: &Measurement, direction: Direction, ef: bool) -> Self {
        let classes = context::stream_classes(measurement);
        let torrent = classes.iter().any(|class| class == BACKGROUND.name) && !ef;
        let name = match direction {
            Direction::Up => "tcp_nup",
            Direction::Down => "tcp_ndown",
            Direction::Both if torrent => "rrul_torrent",
            Direction::Both if !classes.is_empty() => "rrul",
            Direction::Both => "rrul_be",
        };
        Self {
            name,
            direction,
            streams: context::streams(measurement).unwrap_or(1),
            classes,
        }
    }

    /// What flent calls a stream.
    fn stream(&self, way: &str, number: usize) -> String {
        let class = self
            .classes
            .get(number)
            .map_or(BEST_EFFORT.name, String::as_str);
        let before = self.classes.iter().take(number);
        let nth = match self.classes.is_empty() {
            true => number.saturating_add(1),
            false => before.filter(|name| *name == class).count() + 1,
        };
        match self.name {
            "tcp_nup" | "tcp_ndown" => format!("TCP {way}::{}", number.saturating_add(1)),
            "rrul_torrent" if class == BACKGROUND.name => format!("TCP {way} Torrent::{nth}"),
            _ if nth == 1 => format!("TCP {way} {class}"),
            _ => format!("TCP {way} {class}{nth}"),
        }
    }

    fn ways(&self) -> Vec<(&'static str, Direction)> {
        [("upload", Direction::Up), ("download", Direction::Down)]
            .into_iter()
            .filter(|(_, way)| [*way, Direction::Both].contains(&self.direction))
            .collect()
    }

    /// The series that were measured.
    fn series<'a>(&self, run: &'a Run, measurement: &'a Measurement) -> Named<'a> {
        let mut named = Named::new();
        let of = phase(measurement);
        for (way, direction) in self.ways() {
            // The same phase may have been run again: the rates are of the same instant.
            let rates = run.measurements.iter().find(|m| {
                let its = shown(m).rate().is_some_and(|(found, _)| found == direction);
                its && phase(m) == of && m.at_s == measurement.at_s
            });
            for (name, series) in rates.into_iter().flat_map(|m| &m.series) {
                let number = name.strip_prefix("bps_stream").and_then(|n| n.parse().ok());
                named.extend(number.map(|n| (self.stream(way, n), (series, TO_MBIT))));
            }
        }
        let one_way = self.direction != Direction::Both;
        let mut all = loaded(run);
        let this = all.find(|(other, _)| other.id == measurement.id);
        let protocol = this.map(|(_, loaded)| loaded.protocol);
        let is_beside = measurement.series.contains_key("rtt_icmp");
        let is_icmp = protocol == Some(Protocol::Icmp) && !is_beside;
        for (name, series) in &measurement.series {
            let name = match (name.as_str(), self.name) {
                ("rtt", _) if is_icmp => "ICMP".to_owned(),
                ("rtt", "rrul_be") => "UDP BE1".to_owned(),
                ("rtt", _) => "UDP BE".to_owned(),
                ("rtt_icmp", _) => "ICMP".to_owned(),
                ("rtt_gateway" | "rtt_first_hop_beyond", _) => continue,
                (class, _) => match class.strip_prefix("rtt_") {
                    Some(class) => format!("UDP {}", class.to_uppercase()),
                    None => continue,
                },
            };
            // Tests of one direction plot ICMP, and nothing in its place.
            if !one_way || name == "ICMP" || !measurement.series.contains_key("rtt_icmp") {
                named.insert(format!("Ping (ms) {name}"), (series, TO_MS));
            }
        }
        named
    }

    /// The sums and means that flent's tests have: the name, with what the names of its parts
    /// begin, and whether it is a mean.
    fn sums(&self) -> Vec<(String, String, bool)> {
        let mut sums = Vec::new();
        let torrent = if self.name == "rrul_torrent" {
            " Torrent"
        } else {
            ""
        };
        for (way, _) in self.ways() {
            let prefix = format!("TCP {way}{torrent}");
            sums.push((format!("{prefix} avg"), prefix.clone(), true));
            sums.push((format!("{prefix} sum"), prefix, false));
        }
        if self.direction == Direction::Both {
            sums.push(("TCP totals".to_owned(), "TCP ".to_owned(), false));
            sums.push(("Ping (ms) avg".to_owned(), "Ping (ms) ".to_owned(), true));
        }
        sums
    }

    fn parameters(&self) -> Value {
        match self.name {
            "tcp_nup" => json!({ "upload_streams": self.streams.to_string() }),
            "tcp_ndown" => json!({ "download_streams": self.streams.to_string() }),
            _ => json!({}),
        }
    }
}

/// Means of the points in each step; nothing where there are none.
fn stepped(points: &[(f64, f64)], steps: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u32); steps];
    for (t, value) in points {
        if let Some((sum, count)) = sums.get_mut((t / STEP_S).max(0.0) as usize) {
            *sum += value;
            *count += 1;
        }
    }
    let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
    sums.into_iter().map(mean).collect()
}

/// The sum or mean, step by step, of the single series whose names begin with `prefix`.
fn combined(
    results: &BTreeMap<String, Vec<Option<f64>>>,
    prefix: &str,
    mean: bool,
) -> Vec<Option<f64>> {
    let is_part = |name: &str| {
        name.starts_with(prefix)
            && ![" sum", " avg", " totals"]
                .iter()
                .any(|s| name.ends_with(s))
    };
    let parts: Vec<_> = results.iter().filter(|(name, _)| is_part(name)).collect();
    let steps = results.values().map(Vec::len).max().unwrap_or(0);
    (0..steps)
        .map(|step| {
            let at = parts.iter().filter_map(|(_, values)| *values.get(step)?);
            let values: Vec<f64> = at.collect();
            let sum: f64 = values.iter().sum();
            match (values.len(), mean) {
                (0, _) => None,
                (count, true) => Some(sum / count as f64),
                (_, false) => Some(sum),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_the_names_of_flents_tests() {
        let test = |name, classes: &[&str]| Test {
            name,
            direction: Direction::Both,
            streams: 4,
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        };
        let rrul = test("rrul", &["BK", "BE", "CS5", "EF"]);
        assert_eq!(rrul.stream("upload", 2), "TCP upload CS5");
        let even = test("rrul_be", &[]);
        assert_eq!(even.stream("download", 0), "TCP download BE");
        assert_eq!(even.stream("download", 3), "TCP download BE4");
        let torrent = test("rrul_torrent", &["BK", "BK", "BE"]);
        assert_eq!(torrent.stream("upload", 1), "TCP upload Torrent::2");
        assert_eq!(torrent.stream("upload", 2), "TCP upload BE");
    }

    #[test]
    fn steps_are_means_of_what_was_measured_in_them() {
        let points = [(0.0, 1.0), (0.1, 3.0), (0.5, 7.0), (9.0, 1.0)];
        assert_eq!(stepped(&points, 3), [Some(2.0), None, Some(7.0)]);
    }

    #[test]
    fn sums_leave_out_what_was_lost() {
        let series = [
            ("a 1".to_owned(), vec![Some(1.0), None, None]),
            ("a 2".to_owned(), vec![Some(3.0), Some(5.0), None]),
            ("b".to_owned(), vec![Some(100.0); 3]),
        ];
        let of = |mean| combined(&series.clone().into(), "a", mean);
        assert_eq!(of(false), [Some(4.0), Some(5.0), None]);
        assert_eq!(of(true), [Some(2.0), Some(5.0), None]);
    }
}
