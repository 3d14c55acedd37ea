//! The round trips of the hops of a path over time.

use plumb_model::order::sort_few;
use plumb_model::results::path::PathHop;
use plumb_model::run::Measurement;
use plumb_model::series::Series;

use crate::svg::canvas::Drawing;
use crate::svg::series::{self, Line, Scale, Subject, Written};

/// A colour for each line: more colours could not be distinguished.
const COLOURS: [&str; 5] = ["idle", "up", "down", "both", "after"];

/// A hop that answered, and its round trips.
struct Hop<'a> {
    name: String,
    typical_s: f64,
    series: &'a Series,
}

/// The chart of a path whose hops were probed more than once.
pub(super) fn render(measurement: &Measurement, path: &[PathHop]) -> Option<Drawing> {
    let all = hops(measurement, path);
    let chosen = choose(&all);
    let of = match all.len() {
        shown if shown <= chosen.len() => String::new(),
        all => format!("; of {all} hops the first, the last, and where it grows most"),
    };
    let subject = Subject {
        title: &format!("seconds; round-trip time in ms, hop by hop{of}"),
        description: "Round trips over time, one line for each hop; unanswered probes break the lines",
        scale: Scale::Logarithmic,
        written: Written::TIMES,
    };
    let lines: Vec<Line<'_>> = chosen
        .into_iter()
        .zip(COLOURS)
        .map(|(hop, colour)| Line {
            name: &hop.name,
            colour,
            values: hop.series,
        })
        .collect();
    series::render(&subject, &lines)
}

fn hops<'a>(measurement: &'a Measurement, path: &[PathHop]) -> Vec<Hop<'a>> {
    let answered = path.iter().filter_map(|hop| {
        let series = measurement.series.get(&format!("rtt_hop_{}", hop.ttl))?;
        (series.values.len() > 1).then_some(Hop {
            name: format!("hop {}", hop.ttl),
            typical_s: hop.rtt_s?.p50,
            series,
        })
    });
    answered.collect()
}

/// As many as there are colours: the first, the last, and those where the round trip grows most over the
/// hop before.
fn choose<'a>(all: &'a [Hop<'a>]) -> Vec<&'a Hop<'a>> {
    let last = all.len().saturating_sub(1);
    let mut growth: Vec<(usize, f64)> = all
        .iter()
        .enumerate()
        .zip(std::iter::once(0.0).chain(all.iter().map(|hop| hop.typical_s)))
        .map(|((place, hop), before)| {
            let is_end = place == 0 || place == last;
            let more_s = hop.typical_s - before;
            (place, if is_end { f64::INFINITY } else { more_s })
        })
        .collect();
    sort_few(&mut growth, |a, b| b.1.total_cmp(&a.1));
    growth.truncate(COLOURS.len());
    let chosen = |place: &usize| growth.iter().any(|(kept, _)| kept == place);
    all.iter()
        .enumerate()
        .filter(|(place, _)| chosen(place))
        .map(|(_, hop)| hop)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_model::series::Unit;

    #[test]
    fn the_ends_are_drawn_and_where_the_round_trip_grows() {
        let series = Series::new(Unit::Seconds);
        let of = |typical: &[f64]| -> Vec<String> {
            let all: Vec<Hop<'_>> = (1..)
                .zip(typical)
                .map(|(ttl, typical_s)| Hop {
                    name: format!("hop {ttl}"),
                    typical_s: *typical_s,
                    series: &series,
                })
                .collect();
            choose(&all)
                .into_iter()
                .map(|hop| hop.name.clone())
                .collect()
        };
        let long = [0.001, 0.002, 0.012, 0.013, 0.040, 0.041, 0.060, 0.061];
        assert_eq!(of(&long), ["hop 1", "hop 3", "hop 5", "hop 7", "hop 8"]);
        assert_eq!(of(&[0.001, 0.002]), ["hop 1", "hop 2"]);
        assert!(of(&[]).is_empty());
    }
}
