//! Many targets that are probed alike, by one thread for each interval in place of one for each probe: what ten thousand
//! probes a second take is the packets, not the threads.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_net::clock::realtime_ns;
use plumb_probe::ProbeError;
use plumb_probe::sweep::{ManyPlan, ManyProbing, ManySeen};

use crate::config::Target;
use crate::sample::Sample;
use crate::target::kind::TIMEOUT;

/// Fewer targets of one interval than this are probed one by one, which costs less than a thread that waits for them.
const MANY: usize = 50;

/// What became of a probe: the target's place in the file, the sample where it has one, and why there is no answer.
pub(crate) type Swept = (usize, Option<Sample>, Option<String>);

/// The thread that probes the targets of one interval.
#[derive(Debug)]
struct Sweep {
    probing: ManyProbing,
    seen: mpsc::Receiver<ManySeen>,
    stop: Arc<AtomicBool>,
}

/// Ends the thread, within the timeout of its probes.
impl Drop for Sweep {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The targets of one interval.
#[derive(Debug)]
struct Group {
    protocol: Protocol,
    every: Duration,
    /// The places of its targets in the file.
    places: Vec<usize>,
    /// `None` where it could not begin.
    sweep: Option<Sweep>,
}

/// The targets that are probed so.
#[derive(Debug, Default)]
pub(crate) struct Sweeps(Vec<Group>);

/// The places of targets that are probed together, by their protocol and interval.
pub(crate) fn groups(targets: &[Target]) -> BTreeMap<(Protocol, Duration), Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, target) in targets.iter().enumerate() {
        // Names are looked up again and again, which one plan for all cannot follow.
        if let (Some(protocol), Ok(_)) = (target.kind.sweeps(), target.host.parse::<IpAddr>()) {
            let group = groups.entry((protocol, target.every)).or_default();
            group.push(place);
        }
    }
    groups.retain(|_, places| places.len() >= MANY);
    groups
}

impl Sweeps {
    /// Of these groups, none of which is probed yet.
    pub(crate) fn new(groups: BTreeMap<(Protocol, Duration), Vec<usize>>) -> Self {
        let group = |((protocol, every), places)| Group {
            protocol,
            every,
            places,
            sweep: None,
        };
        Self(groups.into_iter().map(group).collect())
    }

    /// Begins to probe each group that is not probed, because it is new, could not begin, or ended by itself, for
    /// instance where the kernel keeps refusing to receive. Returns whether there was one.
    ///
    /// # Errors
    /// When sockets are refused to one of them; the others are probed then.
    pub(crate) fn resume(&mut self, targets: &[Target]) -> Result<bool, ProbeError> {
        let (mut any, mut done) = (false, Ok(()));
        for group in self.0.iter_mut().filter(|group| !group.is_probed()) {
            any = true;
            match group.begin(targets) {
                Ok(sweep) => group.sweep = Some(sweep),
                Err(error) => done = Err(error),
            }
        }
        done.map(|()| any)
    }

    /// What was seen since the last time.
    pub(crate) fn seen(&self) -> impl Iterator<Item = Swept> + '_ {
        self.0.iter().flat_map(|group| {
            let swept = |seen| {
                let (target, sample, why) = swept(seen)?;
                let place = group.places.get(target as usize)?;
                Some((*place, sample, why))
            };
            let sweep = group.sweep.iter();
            sweep.flat_map(move |sweep| sweep.seen.try_iter().filter_map(swept))
        })
    }
}

impl Group {
    fn is_probed(&self) -> bool {
        let sweep = self.sweep.as_ref();
        sweep.is_some_and(|sweep| !sweep.probing.is_finished())
    }

    fn begin(&self, targets: &[Target]) -> Result<Sweep, ProbeError> {
        let addresses = self.places.iter().filter_map(|place| {
            let address = targets.get(*place)?.host.parse().ok()?;
            Some(SocketAddr::new(address, 0))
        });
        let addresses: Vec<_> = addresses.collect();
        let (tell, seen) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let plan = ManyPlan {
            rounds: None,
            period: self.every,
            pps: addresses.len() as f64 / self.every.as_secs_f64(),
            timeout: TIMEOUT,
            ..ManyPlan::new(self.protocol, addresses)
        };
        let probing = ManyProbing::start(plan, Arc::clone(&stop), Some(tell))?;
        Ok(Sweep {
            probing,
            seen,
            stop,
        })
    }
}

/// What it means for a target of that number.
fn swept(seen: ManySeen) -> Option<(u32, Option<Sample>, Option<String>)> {
    let us = |ns: u64| i64::try_from(ns / 1000).unwrap_or(i64::MAX);
    Some(match seen {
        ManySeen::Answered {
            target, rtt, at_ns, ..
        } => {
            let rtt_ns = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
            let sent_us = us(at_ns.saturating_sub(rtt_ns));
            (target, Some(Sample::timed(sent_us, Some(rtt))), None)
        }
        ManySeen::Lost {
            target, sent_ns, ..
        } => (target, Some(Sample::timed(us(sent_ns), None)), None),
        // This machine refused to send it: no path leads there.
        ManySeen::Failed {
            target,
            why,
            failure: None,
        } => {
            let lost = Sample::timed(us(realtime_ns()), None);
            (target, Some(lost), Some(why))
        }
        // The probe is lost too, once its time is over.
        ManySeen::Failed { target, why, .. } => (target, None, Some(why)),
        ManySeen::Again { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::config::Config;

    fn config(count: usize, more: &str) -> Config {
        let mut text = "[store]\npath = \"w.db\"\n".to_owned();
        for number in 0..count {
            text += &format!(
                "[[target]]\nname = \"t{number}\"\nhost = \"127.0.1.{number}\"\nprobe = \"icmp\"\nevery = \"1s\"\n"
            );
        }
        Config::parse(&(text + more)).unwrap()
    }

    #[test]
    fn many_of_one_interval_and_protocol_are_probed_together() {
        let others = "[[target]]\nname = \"x\"\nhost = \"localhost\"\nprobe = \"icmp\"\nevery = \"1s\"\nmore_often_than_10s = true\n\
                      [[target]]\nname = \"y\"\nhost = \"127.0.2.1\"\nprobe = \"icmp\"\nevery = \"2s\"\n\
                      [[target]]\nname = \"z\"\nhost = \"127.0.2.1\"\nprobe = \"http\"\nevery = \"1s\"\n";
        let found = groups(&config(MANY, others).targets);
        let all: Vec<usize> = (0..MANY).collect();
        let expected = ((Protocol::Icmp, Duration::from_secs(1)), all);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [expected]);
        assert!(groups(&config(MANY - 1, others).targets).is_empty());
    }

    /// Needs the right to open ICMP sockets, as all tests that probe do.
    #[test]
    fn each_target_is_seen_once_a_second() {
        let targets = config(MANY, "").targets;
        let mut sweeps = Sweeps::new(groups(&targets));
        assert!(sweeps.resume(&targets).unwrap());
        let mut counts = vec![0_u64; MANY];
        let begun = Instant::now();
        while counts.contains(&0) || counts.contains(&1) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{counts:?}");
            for (place, sample, why) in sweeps.seen() {
                assert!(why.is_none() && sample.unwrap().value.is_some(), "{why:?}");
                *counts.get_mut(place).unwrap() += 1;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // A busy machine is late, and never early.
        let seconds = begun.elapsed().as_secs() + 2;
        let most = counts.iter().copied().max().unwrap();
        assert!(most <= seconds, "{counts:?} in {seconds} s");
        assert!(!sweeps.resume(&targets).unwrap());
        let sweep = sweeps.0[0].sweep.as_ref().unwrap();
        sweep.stop.store(true, Ordering::Relaxed);
        // It ends within the timeout of its probes, and begins again.
        let deadline = Instant::now() + 10 * TIMEOUT;
        while !sweeps.resume(&targets).unwrap() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(20));
        }
        while sweeps.seen().next().is_none() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// More probes a second than any plan has, in place of a kernel that refuses a socket.
    #[test]
    fn a_group_that_cannot_begin_leaves_the_others_probed_and_is_tried_again() {
        let targets = config(2 * MANY, "").targets;
        let key = |every| (Protocol::Icmp, every);
        let groups = BTreeMap::from([
            (key(Duration::from_nanos(1)), (0..MANY).collect()),
            (key(Duration::from_secs(1)), (MANY..2 * MANY).collect()),
        ]);
        let mut sweeps = Sweeps::new(groups);
        for _ in 0..2 {
            assert!(sweeps.resume(&targets).is_err());
            let probed: Vec<bool> = sweeps.0.iter().map(Group::is_probed).collect();
            assert_eq!(probed.iter().filter(|probed| **probed).count(), 1);
        }
    }
}
