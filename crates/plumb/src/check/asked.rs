//! What a check is asked for: how thorough, for what use, and what is paid for.

use clap::Args;
use plumb_model::goal::{Asked, Cable, Complaint, Effort, LinePlan, Purpose};
use plumb_model::units::parse_duration;

use plumb_model::units::BitRate;

use crate::quantity::{rate, rate_above_zero};
use crate::words;

#[derive(Args)]
pub(crate) struct AskedOptions {
    /// At most 20 s: finds what shows at once, clears nothing
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// At most 5 minutes, with every measurement
    #[arg(long)]
    thorough: bool,
    /// What the path is used for: decides what comes first
    ///
    /// With web, a page is loaded before any load.
    #[arg(long = "for", value_name = "USE", value_parser = words::any::<Purpose>())]
    pub(crate) purpose: Option<Purpose>,
    /// What it has to reach: 9Gbit/s, or 30ms under load
    ///
    /// A rate holds for each direction. The option may be given twice, once for each.
    #[arg(long, value_name = "RATE|TIME", value_parser = goal)]
    goal: Vec<Goal>,
    /// What is paid for, such as 1000/50 (Mbit/s) or 1G/50M
    ///
    /// A line that carries as much is healthy.
    #[arg(long, value_name = "DOWN/UP", value_parser = line_plan)]
    plan: Option<LinePlan>,
    /// HOST is at the other end of a cable, with nothing between: expect what the slower of both ports carries
    ///
    /// Its speed is what the driver reports, unless it is given here.
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, requires = "host", conflicts_with_all = ["plan", "via"],
        value_parser = rate_above_zero)]
    #[expect(
        clippy::option_option,
        reason = "an option with a value that may be left out"
    )]
    back_to_back: Option<Option<BitRate>>,
    /// The symptom; puts the findings that match it first
    #[arg(long, value_name = "WHAT", value_parser = words::any::<Complaint>())]
    complaint: Option<Complaint>,
    /// Ask the gateway by UPnP for the rates and counters of its line, once a second; nothing of it is changed
    #[arg(long)]
    ask_gateway: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Rate(f64),
    RoundTrip(f64),
}

/// A rate, such as 9Gbit/s, or a time, such as 30ms.
fn goal(text: &str) -> Result<Goal, String> {
    let time = parse_duration(text).ok().filter(|time| !time.is_zero());
    if let Some(time) = time {
        return Ok(Goal::RoundTrip(time.as_secs_f64()));
    }
    match rate(text) {
        Ok(rate) if rate.bps() > 0 => Ok(Goal::Rate(rate.bps() as f64)),
        _ => Err("a rate such as 9Gbit/s, or a round trip such as 30ms, is needed".to_owned()),
    }
}

/// Two rates above zero, of which bare numbers are Mbit/s, as contracts have them.
fn line_plan(text: &str) -> Result<LinePlan, String> {
    let number = |text: &str| {
        let bps = match text.trim().parse::<f64>() {
            Ok(mbit) => mbit * 1e6,
            Err(_) => rate(text).ok()?.bps() as f64,
        };
        (bps > 0.0 && bps <= 1e12).then_some(bps)
    };
    let parts = text.split_once('/');
    let rates = parts.and_then(|(down, up)| Some((number(down)?, number(up)?)));
    rates
        .map(|(down_bps, up_bps)| LinePlan { down_bps, up_bps })
        .ok_or_else(|| "write two rates, such as 1000/50 (Mbit/s) or 1G/50M".to_owned())
}

impl AskedOptions {
    pub(super) fn is_back_to_back(&self) -> bool {
        self.back_to_back.is_some()
    }

    pub(crate) fn asked(&self) -> Asked {
        let mut asked = Asked {
            effort: match (self.quick, self.thorough) {
                (true, _) => Effort::Quick,
                (false, true) => Effort::Thorough,
                (false, false) => Effort::Usual,
            },
            purpose: self.purpose,
            plan: self.plan,
            complaint: self.complaint,
            gateway: self.ask_gateway,
            cable: self.back_to_back.map(|given| Cable {
                port_bps: given.map(|rate| rate.bps() as f64),
            }),
            ..Asked::default()
        };
        for goal in &self.goal {
            match goal {
                Goal::Rate(bps) => asked.rate_bps = Some(*bps),
                Goal::RoundTrip(seconds) => asked.rtt_s = Some(*seconds),
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_rates_and_times() {
        assert_eq!(goal("9Gbit/s"), Ok(Goal::Rate(9e9)));
        assert_eq!(goal("500mbit"), Ok(Goal::Rate(500e6)));
        assert_eq!(goal("30ms"), Ok(Goal::RoundTrip(0.03)));
        for wrong in ["", "0", "0ms", "fast", "-3ms", "NaN"] {
            assert!(goal(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plan_is_two_rates() {
        let plan = LinePlan {
            down_bps: 1e9,
            up_bps: 50e6,
        };
        assert_eq!(line_plan("1000/50"), Ok(plan));
        assert_eq!(line_plan("1G/50mbit"), Ok(plan));
        for wrong in [
            "1000", "1000/", "0/50", "a/b", "inf/1", "NaN/1", "1/2/3", "-1/5",
        ] {
            assert!(line_plan(wrong).is_err(), "{wrong}");
        }
    }
}
