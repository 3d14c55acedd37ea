//! Streams of several kinds side by side.

use clap::Args;
use plumb_measure::phase::Group;
use plumb_wire::native::control::flow::{Flow, LOWER_EFFORT, TcpFlow};
use plumb_wire::native::spec::MOST_STREAMS;

/// Which streams share the path with each other.
#[derive(Args, Default)]
#[command(next_help_heading = "Sharing")]
pub(crate) struct Mix {
    /// Streams of several congestion controls side by side, such as cubic=2,bbr=1; "background" yields
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = part,
        conflicts_with_all = ["streams", "cc"])]
    flows: Vec<Part>,
    /// Take only what other traffic leaves free: LEDBAT++ above the kernel's TCP, marked LE (RFC 8622)
    #[arg(long, conflicts_with = "flows")]
    background: bool,
}

/// A part of a mix.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    name: String,
    streams: u32,
}

/// The name of a stream that yields, beside the names of congestion controls.
const BACKGROUND: &str = "background";

impl Mix {
    /// The groups of streams, each with the options of `flow`; `streams` of them where no mix was
    /// asked for.
    pub(crate) fn groups(&self, streams: u32, flow: &Flow) -> Result<Vec<Group>, String> {
        if self.flows.is_empty() && !self.background {
            let flow = flow.clone();
            return Ok(vec![Group { streams, flow }]);
        }
        let Flow::Tcp(tcp) = flow else {
            return Err(
                "--flows and --background are of TCP: leave them out with --udp".to_owned(),
            );
        };
        let yields = self.background || self.flows.iter().any(|part| part.name == BACKGROUND);
        if yields && tcp.mptcp {
            return Err(
                "what yields is paced, and the kernel does not pace Multipath TCP: leave --mptcp out"
                    .to_owned(),
            );
        }
        if self.background {
            let flow = Flow::Tcp(background(tcp.clone()));
            return Ok(vec![Group { streams, flow }]);
        }
        let all: u32 = self.flows.iter().map(|part| part.streams).sum();
        if all > MOST_STREAMS {
            return Err(format!(
                "--flows: {all} streams in each direction, where {MOST_STREAMS} are possible"
            ));
        }
        let group = |part: &Part| Group {
            streams: part.streams,
            flow: Flow::Tcp(if part.name == BACKGROUND {
                background(tcp.clone())
            } else {
                TcpFlow {
                    cc: Some(part.name.clone()),
                    ..tcp.clone()
                }
            }),
        };
        Ok(self.flows.iter().map(group).collect())
    }
}

/// The same, yielding to all others, and marked so that the network may help.
fn background(tcp: TcpFlow) -> TcpFlow {
    TcpFlow {
        background: true,
        dscp: tcp.dscp.or(Some(LOWER_EFFORT)),
        ..tcp
    }
}

fn part(text: &str) -> Result<Part, String> {
    let (name, number) = text.split_once('=').unwrap_or((text, "1"));
    let streams = number
        .parse()
        .ok()
        .filter(|streams| (1..=MOST_STREAMS).contains(streams));
    match streams {
        Some(streams) if !name.is_empty() => Ok(Part {
            name: name.to_owned(),
            streams,
        }),
        _ => Err(format!(
            "write each part as NAME=N, N from 1 to {MOST_STREAMS}, such as cubic=2,bbr=1"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};

    fn mix(flows: &[&str], background: bool) -> Mix {
        Mix {
            flows: flows.iter().map(|text| part(text).unwrap()).collect(),
            background,
        }
    }

    /// The options of the streams of a mix.
    fn options(mix: &Mix, tcp: TcpFlow) -> Vec<(u32, TcpFlow)> {
        let groups = mix.groups(4, &Flow::Tcp(tcp)).unwrap();
        let tcp = |group: Group| (group.streams, group.flow.tcp().unwrap().clone());
        groups.into_iter().map(tcp).collect()
    }

    #[test]
    fn parts_are_groups_with_the_options_of_all() {
        let base = TcpFlow {
            no_delay: true,
            ..TcpFlow::default()
        };
        let groups = options(
            &mix(&["cubic=2", "bbr", "background=1"], false),
            base.clone(),
        );
        let seen: Vec<_> = groups
            .iter()
            .map(|(streams, tcp)| (*streams, tcp.congestion_control(), tcp.dscp))
            .collect();
        assert_eq!(
            seen,
            [(2, "cubic", None), (1, "bbr", None), (1, "reno", Some(1))]
        );
        assert!(groups.iter().all(|(_, tcp)| tcp.no_delay));
        assert!(groups[2].1.background && !groups[0].1.background);
        let many = mix(&["cubic=100", "bbr=92"], false);
        assert!(many.groups(1, &Flow::Tcp(base)).is_err());
    }

    #[test]
    fn without_a_mix_all_are_alike() {
        let marked = TcpFlow {
            dscp: Some(8),
            ..TcpFlow::default()
        };
        assert_eq!(
            options(&mix(&[], false), marked.clone()),
            [(4, marked.clone())]
        );
        // A DSCP that was asked for stays.
        let yielding = options(&mix(&[], true), marked);
        assert_eq!(
            (yielding[0].1.dscp, yielding[0].1.background),
            (Some(8), true)
        );
    }

    #[test]
    fn several_subflows_do_not_yield() {
        let mptcp = Flow::Tcp(TcpFlow {
            mptcp: true,
            ..TcpFlow::default()
        });
        assert!(mix(&["cubic=2"], false).groups(1, &mptcp).is_ok());
        for asked in [mix(&[], true), mix(&["cubic", "background"], false)] {
            let refused = asked.groups(1, &mptcp);
            assert!(refused.is_err_and(|why| why.contains("--mptcp")));
        }
    }

    #[test]
    fn datagrams_do_not_yield() {
        let udp = Flow::Udp(UdpFlow::new(1400, Pattern::Max));
        assert!(mix(&[], false).groups(1, &udp).is_ok());
        for asked in [mix(&[], true), mix(&["cubic"], false)] {
            assert!(
                asked
                    .groups(1, &udp)
                    .is_err_and(|why| why.contains("--udp"))
            );
        }
    }

    #[test]
    fn parts_that_make_no_sense_are_refused() {
        for text in [
            "",
            "=2",
            "cubic=",
            "cubic=0",
            "cubic=192",
            "cubic=-1",
            "cubic=two",
        ] {
            assert!(
                part(text).is_err_and(|why| why.contains("NAME=N")),
                "{text}"
            );
        }
    }
}
