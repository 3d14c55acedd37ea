//! What fping prints (fping(8), version 5.1), for programs that read it.

use std::io;
use std::time::Duration;

use clap::ValueEnum;
use plumb_net::datagram::{Failure, Reporter, Unreachable};

/// Which of fping's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Whether each target is alive, as without options
    Alive,
    /// A line for each probe and a summary for each target on standard error, as with -c
    Count,
    /// A line for each probe and all times of each target on standard error, as with -C
    Times,
}

/// What is known of a target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    sent: u64,
    times: Vec<Option<Duration>>,
}

impl Seen {
    fn received(&self) -> impl Iterator<Item = Duration> {
        self.times.iter().flatten().copied()
    }

    fn lost_percent(&self) -> u64 {
        let answered = self.received().count() as u64;
        match self.sent {
            0 => 0,
            sent => (sent.saturating_sub(answered)) * 100 / sent,
        }
    }

    fn mean_ms(&self) -> Option<f64> {
        let answered = self.received().count();
        let sum: f64 = self.received().map(ms).sum();
        (answered > 0).then(|| sum / answered as f64)
    }

    /// A probe of that round is settled: answered in time, or not.
    pub(crate) fn settle(&mut self, round: u64, rtt: Option<Duration>) {
        let round = usize::try_from(round).unwrap_or(usize::MAX - 1);
        if self.times.len() <= round {
            self.times.resize(round + 1, None);
        }
        if let Some(time) = self.times.get_mut(round) {
            *time = rtt;
        }
        self.sent += 1;
    }

    /// The line of a probe that was just settled, after [`Seen::settle`].
    pub(crate) fn probe_line(
        &self,
        name: &str,
        width: usize,
        round: u64,
        rtt: Option<(Duration, usize)>,
    ) -> String {
        let mean = self.mean_ms().map_or_else(|| "NaN".to_owned(), time);
        let lost = self.lost_percent();
        let what = match rtt {
            // fping counts the header of ICMP, of 8 bytes.
            Some((rtt, bytes)) => format!("{} bytes, {} ms", bytes + 8, time(ms(rtt))),
            None => "timed out".to_owned(),
        };
        format!("{name:<width$} : [{round}], {what} ({mean} avg, {lost}% loss)\n")
    }

    /// The line of a target at the end.
    pub(crate) fn last_line(&self, format: Format, name: &str, width: usize) -> String {
        match format {
            Format::Alive if self.received().next().is_some() => format!("{name} is alive\n"),
            Format::Alive => format!("{name} is unreachable\n"),
            Format::Times => {
                let each = self.times.iter().map(|rtt| match rtt {
                    Some(rtt) => format!(" {}", time(ms(*rtt))),
                    None => " -".to_owned(),
                });
                format!("{name:<width$} :{}\n", each.collect::<String>())
            }
            Format::Count => {
                let answered = self.received().count();
                let lost = self.lost_percent();
                let head = format!(
                    "{name:<width$} : xmt/rcv/%loss = {}/{answered}/{lost}%",
                    self.sent
                );
                let bounds = (self.received().min(), self.mean_ms(), self.received().max());
                match bounds {
                    (Some(min), Some(mean), Some(max)) => format!(
                        "{head}, min/avg/max = {}/{}/{}\n",
                        time(ms(min)),
                        time(mean),
                        time(ms(max))
                    ),
                    _ => format!("{head}\n"),
                }
            }
        }
    }
}

/// The line of an ICMP error; `None` where its sender is unknown. The kernel reports several codes of "destination
/// unreachable" by one number (net/ipv4/icmp.c, icmp_err_convert): the codes of a filter become host unreachable.
pub(crate) fn error_line(failure: &Failure, name: &str) -> Option<String> {
    let by = match failure.by {
        Reporter::Host(by) | Reporter::ThisHost(by) => by,
        Reporter::Unknown => return None,
    };
    let what = match failure.why {
        Unreachable::Port => "ICMP Port Unreachable".to_owned(),
        Unreachable::HopLimit => "ICMP Time Exceeded".to_owned(),
        Unreachable::Other(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            match error.kind() {
                io::ErrorKind::NetworkUnreachable => "ICMP Network Unreachable".to_owned(),
                io::ErrorKind::HostUnreachable => "ICMP Host Unreachable".to_owned(),
                _ => format!("ICMP Unreachable ({})", failure.why),
            }
        }
    };
    Some(format!("{what} from {by} for ICMP Echo sent to {name}\n"))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A time in milliseconds as fping writes it (its sprint_tm).
fn time(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{ms:.3}"),
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times_us: &[Option<u64>]) -> Seen {
        let mut seen = Seen::default();
        for (round, us) in (0..).zip(times_us) {
            seen.settle(round, us.map(Duration::from_micros));
        }
        seen
    }

    /// The lines are those that fping 5.1 printed.
    #[test]
    fn the_lines_are_those_of_fping() {
        let both = seen(&[Some(24), Some(51)]);
        let answer = Some((Duration::from_micros(51), 56));
        assert_eq!(
            both.probe_line("127.0.0.1", 9, 1, answer),
            "127.0.0.1 : [1], 64 bytes, 0.051 ms (0.037 avg, 0% loss)\n"
        );
        assert_eq!(
            both.last_line(Format::Count, "127.0.0.1", 9),
            "127.0.0.1 : xmt/rcv/%loss = 2/2/0%, min/avg/max = 0.024/0.037/0.051\n"
        );
        assert_eq!(
            both.last_line(Format::Times, "127.0.0.1", 11),
            "127.0.0.1   : 0.024 0.051\n"
        );
        assert_eq!(both.last_line(Format::Alive, "a", 9), "a is alive\n");
        let none = seen(&[None, None]);
        assert_eq!(
            none.last_line(Format::Count, "a", 1),
            "a : xmt/rcv/%loss = 2/0/100%\n"
        );
        assert_eq!(none.last_line(Format::Times, "a", 1), "a : - -\n");
        assert_eq!(none.last_line(Format::Alive, "a", 1), "a is unreachable\n");
        assert_eq!(
            none.probe_line("a", 1, 1, None),
            "a : [1], timed out (NaN avg, 100% loss)\n"
        );
    }

    #[test]
    fn errors_are_told_as_fping_tells_them() {
        let router = std::net::IpAddr::from([10, 0, 0, 2]);
        let line = |errno, by| {
            let why = match errno {
                0 => Unreachable::HopLimit,
                errno => Unreachable::Other(errno),
            };
            error_line(&Failure { why, by }, "192.0.2.9")
        };
        let (enetunreach, ehostunreach) = (101, 113);
        for (errno, by, what) in [
            (enetunreach, Reporter::Host(router), "Network Unreachable"),
            (ehostunreach, Reporter::ThisHost(router), "Host Unreachable"),
            (0, Reporter::Host(router), "Time Exceeded"),
        ] {
            let wanted = format!("ICMP {what} from 10.0.0.2 for ICMP Echo sent to 192.0.2.9\n");
            assert_eq!(line(errno, by), Some(wanted));
        }
        assert_eq!(line(ehostunreach, Reporter::Unknown), None);
    }

    #[test]
    fn times_have_as_many_digits_as_there() {
        for (ms, text) in [
            (0.0244, "0.024"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
        ] {
            assert_eq!(time(ms), text);
        }
    }
}
