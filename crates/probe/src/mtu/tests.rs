#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::results::TimestampSource;
use plumb_wire::icmp_report::Report;
use proptest::prelude::*;

use super::search::arrives;
use super::*;
use crate::path::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};

const MS: u64 = 1_000_000;
/// Nobody stops it.
static GO_ON: AtomicBool = AtomicBool::new(false);

/// A path in virtual time: the line to each hop, the far end's the last.
#[derive(Debug, Clone)]
struct FakePath {
    now_ns: u64,
    lines: Vec<Line>,
    /// What the far end's own way back carries.
    back_bytes: u16,
    far_silent: bool,
    /// One of so many probes or answers is lost.
    lose_one_of: u64,
    queue: BTreeMap<(u64, ProbeId), Answered>,
    next: u64,
    /// After so many probes somebody stops it.
    stopped_after: Option<(u64, Arc<AtomicBool>)>,
}

/// A line, and the router before it.
#[derive(Debug, Clone, Copy)]
struct Line {
    takes: u16,
    /// Whether the router before it tells, and what.
    tells: Option<u32>,
    /// Whether the router behind it answers when hop limits end there.
    answers: bool,
}

fn line(takes: u16) -> Line {
    Line {
        takes,
        tells: Some(takes.into()),
        answers: true,
    }
}

fn silent(takes: u16) -> Line {
    Line {
        tells: None,
        ..line(takes)
    }
}

impl FakePath {
    fn of(lines: &[Line]) -> Self {
        Self {
            now_ns: 0,
            lines: lines.to_vec(),
            back_bytes: u16::MAX,
            far_silent: false,
            lose_one_of: 0,
            queue: BTreeMap::new(),
            next: 0,
            stopped_after: None,
        }
    }

    fn address(hop: usize) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, hop as u8).into()
    }

    fn plan(&self) -> MtuPlan {
        MtuPlan {
            target: Self::address(self.lines.len()),
            largest_bytes: 1500,
            listen: true,
            max_hops: 30,
            tries: 3,
            timeout: Duration::from_secs(1),
        }
    }

    fn answer(&self, probe: &Probe) -> Option<(usize, AnswerKind)> {
        for (index, line) in self.lines.iter().enumerate() {
            // The router before the line is hop `index`; this host is hop 0.
            if probe.size_bytes > line.takes {
                let tells = line.tells.filter(|_| index > 0)?;
                return Some((index, AnswerKind::Icmp(Report::TooBig { mtu_bytes: tells })));
            }
            let hop = index + 1;
            if hop == self.lines.len() {
                let back = probe.size_bytes <= self.back_bytes && !self.far_silent;
                return back.then_some((hop, AnswerKind::EchoReply));
            }
            if usize::from(probe.hops) == hop {
                return line
                    .answers
                    .then_some((hop, AnswerKind::Icmp(Report::TimeExceeded(0))));
            }
        }
        None
    }
}

impl HopNetwork for FakePath {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        let id = ProbeId(self.next);
        self.next += 1;
        if let Some((probes, stop)) = &self.stopped_after
            && self.next >= *probes
        {
            stop.store(true, Ordering::Relaxed);
        }
        // A loss that follows no period of the search.
        let lost = self.lose_one_of > 0
            && (self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33)
                .is_multiple_of(self.lose_one_of);
        if let Some((hop, kind)) = self.answer(probe).filter(|_| !lost) {
            let rtt_ns = 4 * MS * hop as u64;
            let answered = Answered {
                id,
                probe: *probe,
                rtt: Duration::from_nanos(rtt_ns),
                timestamps: TimestampSource::Kernel,
                answer: Answer::plain(Self::address(hop), kind, Some(64)),
            };
            self.queue.insert((self.now_ns + rtt_ns, id), answered);
        }
        Ok(id)
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        match self.queue.first_key_value() {
            Some(((at, _), _)) if *at <= until_ns => {
                let ((at, _), answered) = self.queue.pop_first().unwrap();
                self.now_ns = self.now_ns.max(at);
                Ok(Some(answered))
            }
            _ => {
                self.now_ns = self.now_ns.max(until_ns);
                Ok(None)
            }
        }
    }
}

fn found(mut path: FakePath) -> Found {
    let plan = path.plan();
    search(&mut path, &plan, &GO_ON).unwrap()
}

fn sizes(found: &Found) -> Vec<Option<u16>> {
    found.hops.iter().map(|hop| hop.mtu_bytes).collect()
}

#[test]
fn a_path_without_a_narrow_place() {
    let found = found(FakePath::of(&[line(1500); 4]));
    assert_eq!(found.path_mtu_bytes, Some(1500));
    assert_eq!(sizes(&found), [Some(1500); 3]);
    assert_eq!(
        (found.told, found.silent, found.black_hole_after),
        (0, 0, None)
    );
}

#[test]
fn routers_tell_of_narrow_lines_one_after_the_other() {
    let found = found(FakePath::of(&[
        line(1500),
        line(1492),
        line(1492),
        line(1400),
        line(1500),
    ]));
    assert_eq!(found.path_mtu_bytes, Some(1400));
    assert_eq!(
        sizes(&found),
        [Some(1500), Some(1492), Some(1492), Some(1400)]
    );
    assert_eq!((found.told, found.silent), (2, 0));
    let told: Vec<_> = found.hops.iter().map(|hop| hop.told_mtu_bytes).collect();
    assert_eq!(told, [Some(1492), None, Some(1400), None]);
}

#[test]
fn a_black_hole_is_found_with_the_hop_before_it() {
    let found = found(FakePath::of(&[
        line(1500),
        line(1500),
        silent(1383),
        line(1500),
    ]));
    assert_eq!(found.path_mtu_bytes, Some(1383));
    assert_eq!((found.black_hole_after, found.silent), (Some(2), 1));
    assert_eq!(sizes(&found), [Some(1500), Some(1500), Some(1383)]);
}

#[test]
fn a_second_narrow_place_behind_a_black_hole_is_found() {
    let found = found(FakePath::of(&[
        silent(1450),
        line(1500),
        line(1280),
        silent(700),
        line(1500),
    ]));
    assert_eq!(found.path_mtu_bytes, Some(700));
    assert_eq!(
        (found.black_hole_after, found.told, found.silent),
        (Some(0), 1, 2)
    );
    assert_eq!(
        sizes(&found),
        [Some(1450), Some(1450), Some(1280), Some(700)]
    );
}

#[test]
fn not_listening_gives_the_same_sizes() {
    let mut path = FakePath::of(&[line(1500), line(1492), line(1400), line(1500)]);
    let plan = MtuPlan {
        listen: false,
        ..path.plan()
    };
    let found = search(&mut path, &plan, &GO_ON).unwrap();
    assert_eq!(found.path_mtu_bytes, Some(1400));
    assert_eq!((found.told, found.silent), (0, 2));
    assert_eq!(
        found.black_hole_after, None,
        "they told, though nobody listened"
    );
}

#[test]
fn a_router_that_lies_is_found_out() {
    let mut lines = [line(1500), line(1500), line(1400), line(1500)];
    for lie in [600, 0, 1499] {
        lines[2].tells = Some(lie);
        let found = found(FakePath::of(&lines));
        assert_eq!(found.path_mtu_bytes, Some(1400), "{lie}");
        assert_eq!(found.black_hole_after, None, "{lie}");
    }
}

#[test]
fn silent_hops_and_a_silent_end_leave_the_rest_known() {
    let mut lines = [line(1500), line(1500), line(1500), line(1400), line(1500)];
    lines[1].answers = false;
    let mut path = FakePath::of(&lines);
    let all = found(path.clone());
    assert_eq!(all.path_mtu_bytes, Some(1400));
    assert_eq!(all.hops[1].address, None);
    assert_eq!(
        sizes(&all),
        [Some(1500), Some(1500), Some(1500), Some(1400)]
    );
    path.far_silent = true;
    let plan = MtuPlan {
        max_hops: 9,
        ..path.plan()
    };
    let part = search(&mut path, &plan, &GO_ON).unwrap();
    assert_eq!(part.path_mtu_bytes, None);
    assert_eq!(
        sizes(&part),
        [Some(1500), Some(1500), Some(1500), Some(1400)]
    );
    path.lines.truncate(1);
    let plan = path.plan();
    let nobody = search(&mut path, &plan, &GO_ON);
    assert!(matches!(nobody, Err(SearchError::Silence)));
}

#[test]
fn jumbo_packets_are_tried_where_the_interface_sends_them() {
    let mut path = FakePath::of(&[line(9000), silent(8996), line(9000)]);
    let plan = MtuPlan {
        largest_bytes: 9000,
        ..path.plan()
    };
    assert_eq!(
        search(&mut path, &plan, &GO_ON).unwrap().path_mtu_bytes,
        Some(8996)
    );
    assert!(arrives(&mut path, &plan, 8996, &GO_ON).unwrap());
    assert!(!arrives(&mut path, &plan, 8997, &GO_ON).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_known_when_it_is_stopped_is_true(
        takes in proptest::collection::vec(68u16..=1500, 1..9),
        probes in 1u64..120,
    ) {
        let lines: Vec<Line> = takes.iter().map(|takes| silent(*takes)).collect();
        let mut path = FakePath::of(&lines);
        let stop = Arc::new(AtomicBool::new(false));
        path.stopped_after = Some((probes, Arc::clone(&stop)));
        let plan = path.plan();
        match search(&mut path, &plan, &stop) {
            Err(SearchError::Stopped) => {}
            Err(other) => panic!("{other}"),
            Ok(found) => {
                let narrowest = |hops: usize| takes.iter().take(hops).fold(1500, |a, b| a.min(*b));
                for (hop, found) in (1..).zip(&found.hops) {
                    // Nothing that was not seen to pass.
                    prop_assert!(found.mtu_bytes.is_none_or(|mtu| mtu <= narrowest(hop)));
                }
                let whole = found.path_mtu_bytes.is_some();
                prop_assert!(whole || found.stopped);
                prop_assert!(!whole || found.path_mtu_bytes == Some(narrowest(takes.len())));
            }
        }
    }

    #[test]
    fn every_path_is_found_as_it_is(
        kinds in proptest::collection::vec((68u16..=1500, any::<bool>(), any::<bool>()), 1..9),
        lossy: bool,
    ) {
        let lines: Vec<Line> = kinds
            .iter()
            .map(|(takes, tells, wide)| {
                let takes = if *wide { 1500 } else { *takes };
                if *tells { line(takes) } else { silent(takes) }
            })
            .collect();
        let mut path = FakePath::of(&lines);
        // A probe and its two repetitions all lost: one in 64,000.
        path.lose_one_of = if lossy { 40 } else { 0 };
        let plan = path.plan();
        let found = search(&mut path, &plan, &GO_ON).unwrap();
        let mut least = 1500;
        let narrowest: Vec<u16> = lines
            .iter()
            .map(|line| {
                least = least.min(line.takes);
                least
            })
            .collect();
        prop_assert_eq!(found.path_mtu_bytes, narrowest.last().copied());
        let routers = &narrowest[..narrowest.len() - 1];
        prop_assert_eq!(sizes(&found), routers.iter().copied().map(Some).collect::<Vec<_>>());
        // The first line whose narrowness nobody tells, if it narrows the path.
        let mut before = 1500;
        let mut holes = BTreeSet::new();
        for (index, line) in lines.iter().enumerate() {
            if line.takes < before && (line.tells.is_none() || index == 0) {
                holes.insert(index as u8);
            }
            before = before.min(line.takes);
        }
        prop_assert_eq!(found.black_hole_after, holes.first().copied());
    }
}
