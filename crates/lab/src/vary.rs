//! Free parameters: a scenario's `[vary]` gives ranges, and a seed draws from them, so that a
//! measurement is tried on many networks and each can be had again.

use plumb_model::units::{BitRate, ByteCount, parse_duration};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::problem::Problem;
use crate::scenario::{LinkEnd, Range, Scenario};

/// The scenario that `seed` makes of this one: its cells draw from that seed, and each setting
/// of `[vary]` is drawn from its range. The same seed gives the same scenario.
///
/// # Errors
/// When a range names no setting, or has no values in between; it says which.
pub fn vary(scenario: &Scenario, seed: u64) -> Result<Scenario, Problem> {
    let mut varied = scenario.clone();
    varied.seed = seed;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for (setting, range) in &scenario.vary {
        let wrong = |problem: String| {
            let problem = Problem::from(problem).of(format_args!("vary.\"{setting}\""));
            problem.at(setting).at("vary")
        };
        let share: f64 = random.random();
        let value = range.at(share).ok_or_else(|| {
            wrong(format!(
                "there is nothing between '{}' and '{}': write two rates, times, amounts, ratios or numbers, the smaller first",
                range.from, range.to
            ))
        })?;
        set(&mut varied, setting, &value).map_err(wrong)?;
        varied.drawn.insert(setting.clone(), value);
    }
    Ok(varied)
}

fn set(scenario: &mut Scenario, setting: &str, value: &str) -> Result<(), String> {
    let mut parts = setting.splitn(4, '.');
    let (Some(link), Some(way), Some(cell), Some(key)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("write LINK.up.CELL.KEY or LINK.down.CELL.KEY".to_owned());
    };
    let end = LinkEnd::try_from(format!("{link}.{way}"))?;
    let spec = scenario
        .links
        .iter_mut()
        .find(|spec| spec.name == end.link)
        .ok_or_else(|| format!("there is no link '{link}'"))?;
    let named = spec
        .chain_mut(end.way)
        .0
        .iter_mut()
        .find(|named| named.name == cell)
        .ok_or_else(|| format!("there is no cell '{cell}' in {link}.{way}"))?;
    named.cell = named
        .cell
        .with(&[(key, value)])
        .map_err(|e| e.to_string())?;
    Ok(())
}

impl Range {
    /// The value at this share of the way from the first to the second, in a unit that loses
    /// nothing; `None` when the two are not of one kind, or the second is smaller.
    fn at(&self, share: f64) -> Option<String> {
        let between = |from: f64, to: f64| (from <= to).then_some(from + (to - from) * share);
        let both = |read: fn(&str) -> Option<f64>| Some((read(&self.from)?, read(&self.to)?));
        if let Some((from, to)) = both(|text| text.parse().ok()) {
            let value = between(from, to)?;
            let whole = [&self.from, &self.to]
                .iter()
                .all(|t| t.parse::<i64>().is_ok());
            return Some(if whole {
                value.round().to_string()
            } else {
                value.to_string()
            });
        }
        if let Some((from, to)) = both(|t| t.strip_suffix('%')?.trim().parse().ok()) {
            return Some(format!("{}%", between(from, to)?));
        }
        if let Some((from, to)) = both(|t| Some(parse_duration(t).ok()?.as_nanos() as f64)) {
            return Some(written(
                between(from, to)?,
                &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
            ));
        }
        // Before rates, which take the B of 20kB for bits; `20mbit` is no amount.
        if let Some((from, to)) = both(|t| Some(t.parse::<ByteCount>().ok()?.bytes() as f64)) {
            return Some(written(
                between(from, to)?,
                &[(1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            ));
        }
        let (from, to) = both(|t| Some(t.parse::<BitRate>().ok()?.bps() as f64))?;
        Some(written(
            between(from, to)?,
            &[(1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit"), (1.0, "bit")],
        ))
    }
}

/// A whole number in the largest of these units that it reaches, with every digit, so that the text
/// gives the same again.
fn written(value: f64, units: &[(f64, &str)]) -> String {
    let value = value.round();
    let reached = units.iter().find(|(size, _)| value >= *size);
    match reached.or(units.last()) {
        Some((size, unit)) => format!("{}{unit}", value / size),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = r#"
        name = "x"
        summary = "x"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "l"
        between = ["a", "b"]
        up = [{ type = "shaper", rate = "20mbit" }, { type = "delay", delay = "9ms" }]
        [vary]
    "#;

    fn scenario(vary: &str) -> Scenario {
        Scenario::parse(&format!("{TEXT}{vary}"), "x.toml").unwrap()
    }

    #[test]
    fn the_seed_decides_and_the_range_holds() {
        let scenario = scenario(
            "\"l.up.shaper.rate\" = [\"10mbit\", \"50mbit\"]\n\"l.up.shaper.limit\" = [\"10ms\", \"700ms\"]",
        );
        let varied = vary(&scenario, 7).unwrap();
        assert_eq!(vary(&scenario, 7).unwrap().drawn, varied.drawn);
        assert_ne!(vary(&scenario, 8).unwrap().drawn, varied.drawn);
        assert_eq!(varied.seed, 7);
        for seed in 0..50 {
            let drawn = vary(&scenario, seed).unwrap().drawn;
            let rate: BitRate = drawn["l.up.shaper.rate"].parse().unwrap();
            assert!((10_000_000..=50_000_000).contains(&rate.bps()), "{drawn:?}");
        }
        assert_ne!(varied.links[0].up, scenario.links[0].up);
        assert_eq!(varied.links[0].up.0[1], scenario.links[0].up.0[1]);
    }

    #[test]
    fn every_unit_is_drawn_in_its_own() {
        for (from, to, value) in [
            ("20kB", "30kB", "25kB"),
            ("1KiB", "3KiB", "2.048kB"),
            ("20mbit", "30mbit", "25mbit"),
            ("20Mbit/s", "30Mbit/s", "25mbit"),
            ("1ms", "2s", "1.0005s"),
            ("1%", "2%", "1.5%"),
            ("20p", "40p", ""),
            ("1", "4", "3"),
        ] {
            let [from, to] = [from, to].map(str::to_owned);
            let drawn = Range { from, to }.at(0.5).unwrap_or_default();
            assert_eq!(drawn, value);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (range, says) in [
            (
                "\"m.up.shaper.rate\" = [\"1mbit\", \"2mbit\"]",
                "no link 'm'",
            ),
            ("\"l.up.shaper.rat\" = [\"1mbit\", \"2mbit\"]", "rat"),
            ("\"l.up.loss.ratio\" = [0, 1]", "no cell 'loss'"),
            (
                "\"l.up.shaper.rate\" = [\"2mbit\", \"1mbit\"]",
                "smaller first",
            ),
            (
                "\"l.up.shaper.rate\" = [\"2mbit\", \"1s\"]",
                "nothing between",
            ),
            ("\"l.up\" = [0, 1]", "LINK.up.CELL.KEY"),
        ] {
            let error = Scenario::parse(&format!("{TEXT}{range}"), "x.toml").unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_a_value_or_refused(from in "\\PC{0,9}", to in "\\PC{0,9}", share in 0.0..1.0f64) {
            let _ = Range { from, to }.at(share);
        }
    }
}
