//! What a check says before it begins, for those who pay for it: how long it takes, how much it may transfer, and
//! whether that may be too little.

use std::net::IpAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_diagnose::lengths::{QUEUE_S, steady_s};
use plumb_model::results::Direction;
use plumb_model::units::{BitRate, human_seconds, si};
use plumb_net::ethtool::Ethtool;
use plumb_net::netlink::interface_name;
use plumb_net::route;
use plumb_wire::native::control::flow::Flow;

use crate::cut_short;
use crate::experiments::BUDGET_PARTS;
use crate::phase::Group;
use crate::traffic_classes::Shape;
use crate::with_far_end::Plan;

/// The interface by which packets to an address leave this host.
pub fn interface(to: IpAddr) -> Option<String> {
    let hop = route::next_hop(to).ok()??;
    interface_name(hop.interface).ok()
}

/// How long the interface is watched for the traffic of others.
const WATCHED: Duration = Duration::from_millis(300);

/// From this rate on the line is in use: more than an idle machine sends and receives, in bit/s.
const IN_USE_BPS: f64 = 1e6;

/// What the interface towards an address carries at the moment, where that is more than an idle one does.
pub fn in_use(to: IpAddr) -> Option<String> {
    let statistics = Path::new("/sys/class/net")
        .join(interface(to)?)
        .join("statistics");
    let read = || -> Option<u64> {
        let count = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(statistics.join(name)).ok()?;
            text.trim().parse().ok()
        };
        Some(count("rx_bytes")?.saturating_add(count("tx_bytes")?))
    };
    let (before, began) = (read()?, Instant::now());
    sleep(WATCHED);
    let bits = read()?.saturating_sub(before) as f64 * 8.0;
    let bps = bits / began.elapsed().as_secs_f64();
    (bps >= IN_USE_BPS).then(|| si(bps, "bit/s"))
}

/// How fast the link is by which packets to an address leave this host, in bit/s; `None` where it is not known, as of
/// virtual interfaces, whose drivers make numbers up.
pub fn link_bps(to: IpAddr) -> Option<f64> {
    let name = interface(to)?;
    let is_hardware = Path::new("/sys/class/net")
        .join(&name)
        .join("device")
        .exists();
    let mut ethtool = Ethtool::open().ok().filter(|_| is_hardware)?;
    ethtool.link(&name).ok()?.speed_bps
}

/// A line as many homes have it, in bit/s.
const USUAL_BPS: f64 = 100e6;

impl Plan {
    /// How long it takes and how much it may transfer. The rate of the line is what the check is to
    /// find out; so it names the one from which on the budget is spent before the time is, and what that keeps from
    /// being measured where the line is as fast as this host's link.
    pub fn announcement(&self, link_bps: Option<f64>) -> String {
        let around = if self.latency {
            self.times.idle + self.times.after
        } else {
            Duration::ZERO
        };
        let phases = self.phases().into_iter();
        let phases: Duration = phases.map(|d| self.times.of_phase(d)).sum();
        let seconds = (phases + around).as_secs_f64();
        if self.directions.is_empty() {
            let name = &self.name;
            return format!(
                "about {seconds:.0} s against {name}, at the rates of the applications"
            );
        }
        let weights = self.directions.iter().map(|d| self.times.weight(*d));
        let load_s = Duration::from_millis(weights.sum()).as_secs_f64();
        let budget_bits = self.for_loads().bytes() as f64 * 8.0;
        let spent_above = BitRate::from_bps((budget_bits / load_s) as u64);
        let stops_when_known = matches!(self.shape, Shape::Responsiveness { .. });
        let may_end_sooner =
            self.bytes.is_some() || self.until_steady || self.from.is_some() || stops_when_known;
        let about = match may_end_sooner || self.times.total.is_some() {
            true => "at most",
            false => "about",
        };
        let seconds = self
            .times
            .total
            .map_or(seconds, |total| total.as_secs_f64());
        let asked = self.asked_bps();
        let asked = asked.filter(|bps| bps * load_s <= budget_bits);
        if let Some(bps) = asked.filter(|_| !may_end_sooner && !self.judge) {
            let each = match self.directions.as_slice() {
                [Direction::Up | Direction::Down] => "",
                _ => " in each direction",
            };
            return format!(
                "about {seconds:.0} s against {}, at {}{each}: {} in all",
                self.name,
                si(bps, "bit/s"),
                si(bps * load_s / 8.0, "B")
            );
        }
        let more = match self.judge && self.times.total.is_none() {
            true => format!(
                "; up to {:.0} s more to distinguish causes",
                self.times.experiments.as_secs_f64()
            ),
            false => String::new(),
        };
        // Datagrams, and what is paced, keep to rates of their own.
        let fills_lines =
            |group: &Group| matches!(&group.flow, Flow::Tcp(tcp) if tcp.pacing_bps.is_none());
        let as_fast_as_it_can = !may_end_sooner && self.groups.iter().all(fills_lines);
        let too_small = link_bps.filter(|_| as_fast_as_it_can);
        let too_small = too_small.and_then(|bps| self.too_small(bps, load_s));
        // The budget alone would alarm those who have a slow line.
        let usual_bytes = USUAL_BPS * load_s / 8.0;
        let usual = match usual_bytes < budget_bits / 8.0 {
            true => format!(
                "{} on a line of {}, and ",
                si(usual_bytes, "B"),
                BitRate::from_bps(USUAL_BPS as u64)
            ),
            false => String::new(),
        };
        format!(
            "{about} {seconds:.0} s against {}, and less where a line is faster than {spent_above}: it transfers {usual}at most {} (--budget changes that){}{more}",
            self.name,
            si(self.budget.bytes() as f64, "B"),
            too_small.unwrap_or_default()
        )
    }

    /// The rate of payload in each direction where every stream keeps to one of its own, in bit/s.
    fn asked_bps(&self) -> Option<f64> {
        let of = |group: &Group| {
            let one = match &group.flow {
                Flow::Tcp(tcp) => tcp.pacing_bps? as f64,
                Flow::Udp(udp) => udp.mean_bps()?,
                _ => return None,
            };
            Some(one * f64::from(group.streams))
        };
        self.groups.iter().map(of).sum()
    }

    /// What the budget would not let be measured on a line of so many bit/s, and the one that would, for loads of
    /// so many seconds of one direction.
    fn too_small(&self, line_bps: f64, load_s: f64) -> Option<String> {
        let phase_s = self.times.phase.as_secs_f64();
        let whole = line_bps / 8.0 * load_s;
        let lasts_s = phase_s * self.for_loads().bytes() as f64 / whole;
        let lacks = match lasts_s {
            s if s < steady_s(0.0).min(phase_s) && self.latency => "rates and latency under load",
            s if s < steady_s(0.0).min(phase_s) => "rates",
            s if s < QUEUE_S.min(phase_s) && self.latency => "latency under load",
            _ => return None,
        };
        let kept = match self.judge {
            true => 1.0 / BUDGET_PARTS as f64,
            false => 0.0,
        };
        Some(format!(
            ", which is too small where the line is as fast as this host's link of {}: a phase would last {} of {}, too short for {lacks}; --budget {} would do",
            si(line_bps, "bit/s"),
            human_seconds(lasts_s),
            human_seconds(phase_s),
            cut_short::size(whole / (1.0 - kept))
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::budget::{self, Budget};
    use crate::times::Times;
    use crate::with_far_end::{CHECK_DIRECTIONS, PHASE, STREAMS};
    use plumb_model::goal::Effort;
    use plumb_model::units::ByteCount;
    use plumb_wire::native::control::flow::TcpFlow;

    fn plan(budget: ByteCount) -> Plan {
        Plan {
            bytes: None,
            until_steady: false,
            from: None,
            to: None,
            name: "server".to_owned(),
            command: Vec::new(),
            directions: CHECK_DIRECTIONS.to_vec(),
            times: Times::of_phases(PHASE),
            until: None,
            asked: None,
            applications: Vec::new(),
            groups: vec![Group {
                streams: STREAMS,
                flow: Flow::Tcp(TcpFlow::default()),
            }],
            shape: crate::traffic_classes::Shape::BestEffort,
            budget,
            latency: true,
            judge: true,
        }
    }

    #[test]
    fn a_budget_too_small_for_this_hosts_link_is_said_with_the_one_that_would_do() {
        let said = |bps| plan(budget::DEFAULT).announcement(Some(bps));
        let fast = said(10e9);
        assert!(
            fast.contains("and at most 2.00 GB (--budget changes that), which is too small where the line is as fast as this host's link of 10.0 Gbit/s: a phase would last 360 ms of 15.00 s, too short for rates and latency under load; --budget 84.0GB would do; up to"),
            "{fast}"
        );
        assert!(said(500e6).contains("too short for latency under load; --budget 4.20GB"));
        assert_eq!(said(240e6), plan(budget::DEFAULT).announcement(None));
        // And it would.
        let enough = plan("84GB".parse().unwrap()).announcement(Some(10e9));
        assert!(!enough.contains("too small"), "{enough}");
        let rate = Plan {
            latency: false,
            judge: false,
            ..plan(budget::DEFAULT)
        };
        let said = rate.announcement(Some(1e9));
        // 2 GB at 1 Gbit/s are 4 s for each of four.
        assert!(!said.contains("too small"), "{said}");
        let mut paced = rate.clone();
        for group in &mut paced.groups {
            group.flow = Flow::Tcp(TcpFlow {
                pacing_bps: Some(10_000_000),
                ..TcpFlow::default()
            });
        }
        assert!(!paced.announcement(Some(2e9)).contains("too small"));
        // Up, down and both for 15 s each.
        assert_eq!(
            paced.announcement(None),
            "about 45 s against server, at 40.0 Mbit/s in each direction: 300 MB in all"
        );
        let said = rate.announcement(Some(2e9));
        assert!(
            said.contains("too short for rates; --budget 15.0GB"),
            "{said}"
        );
    }

    #[test]
    fn a_check_says_how_long_it_takes_in_all() {
        let check = Plan {
            times: Times::of(Effort::Usual),
            ..plan(budget::DEFAULT)
        };
        assert_eq!(
            check.announcement(None),
            "at most 60 s against server, and less where a line is faster than 356 Mbit/s: it transfers 505 MB on a line of 100 Mbit/s, and at most 2.00 GB (--budget changes that)"
        );
    }

    #[test]
    fn the_speed_of_a_link_that_is_no_hardware_is_not_known() {
        assert_eq!(link_bps(std::net::Ipv4Addr::LOCALHOST.into()), None);
    }

    #[test]
    fn a_budget_ends_phases_sooner_on_a_fast_line() {
        // Up, down and both: four times 15 s of one direction, and a tenth of 2 GB is kept: 30 MB/s.
        assert_eq!(
            plan(budget::DEFAULT).announcement(None),
            "about 52 s against server, and less where a line is faster than 240 Mbit/s: it transfers 750 MB on a line of 100 Mbit/s, and at most 2.00 GB (--budget changes that); up to 20 s more to distinguish causes"
        );
        let small = ByteCount::from_bytes(20_000_000);
        let said = plan(small).announcement(None);
        assert!(said.contains("faster than 2.40 Mbit/s"), "{said}");
        // That is where the first phase, and every other, is cut short.
        let times = plan(small).times;
        let weights: Vec<u64> = CHECK_DIRECTIONS.iter().map(|d| times.weight(*d)).collect();
        let mut left = Budget::new(plan(small).for_loads());
        for (number, weight) in weights.iter().enumerate() {
            let later = weights.iter().skip(number + 1).sum();
            let share = left.share(*weight, later);
            assert_eq!(share, weight * 2_400_000 / 8 / 1000);
            left.spend(share);
        }
    }
}
