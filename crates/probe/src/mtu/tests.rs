#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use plumb_wire::icmp_report::Report;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

use super::search::arrives;
use super::*;
use crate::path::virtual_time::{Hops, VirtualNetwork};
use crate::path::{Answer, AnswerKind, Probe};

const MS: u64 = 1_000_000;

/// A path: the line to each hop, the far end's the last.
#[derive(Debug, Clone)]
struct FakePath {
    lines: Vec<Line>,
    /// What the far end's own reverse path carries.
    back_bytes: u16,
    far_silent: bool,
    /// One of so many probes or answers is lost, but never more than `lost_in_a_row` of one hop and
    /// size.
    lose_one_of: u64,
    lost_in_a_row: u32,
    /// Losses in a row by hop limit and size.
    lost: BTreeMap<(u8, u16), u32>,
    /// The router that forwards nothing, and the code of the ICMP error by which it says so.
    refuses: Option<(usize, u8)>,
}

/// A line, and the router before it.
#[derive(Debug, Clone, Copy)]
struct Line {
    takes: u16,
    /// The MTU that the router before it reports; `None` where it reports none.
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
            lines: lines.to_vec(),
            back_bytes: u16::MAX,
            far_silent: false,
            lose_one_of: 0,
            lost_in_a_row: 2,
            lost: BTreeMap::new(),
            refuses: None,
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

    /// Which hop answers, and what.
    fn reached(&self, probe: &Probe, number: u64) -> Option<(usize, AnswerKind)> {
        for (index, line) in self.lines.iter().enumerate() {
            // The router before the line is hop `index`; this host is hop 0.
            if probe.size_bytes > line.takes {
                let tells = line.tells.filter(|_| index > 0)?;
                return Some((index, AnswerKind::Icmp(Report::TooBig { mtu_bytes: tells })));
            }
            let hop = index + 1;
            if let Some((_, code)) = self.refuses.filter(|(at, _)| *at == hop) {
                // Routes are looked up before the time to live is, and a few errors are enough.
                return Some((hop, AnswerKind::Icmp(Report::Unreachable(code))))
                    .filter(|_| number.is_multiple_of(8));
            }
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

impl Hops for FakePath {
    fn answer(&mut self, probe: &Probe, number: u64, _: u64) -> Option<(Duration, Answer)> {
        // A loss that follows no period of the search.
        let unlucky = self.lose_one_of > 0
            && ((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33)
                .is_multiple_of(self.lose_one_of);
        let in_a_row = self.lost.entry((probe.hops, probe.size_bytes)).or_default();
        let lost = unlucky && *in_a_row < self.lost_in_a_row;
        *in_a_row = if lost { *in_a_row + 1 } else { 0 };
        let (hop, kind) = self.reached(probe, number).filter(|_| !lost)?;
        let answer = Answer::plain(Self::address(hop), kind, Some(64));
        Some((Duration::from_millis(4 * hop as u64), answer))
    }
}

fn found(path: FakePath) -> Found {
    let plan = path.plan();
    searched(path, &plan).unwrap()
}

fn searched(path: FakePath, plan: &MtuPlan) -> Result<Found, SearchError> {
    searched_in(&mut VirtualNetwork::of(path), plan)
}

fn searched_in(
    network: &mut VirtualNetwork<FakePath>,
    plan: &MtuPlan,
) -> Result<Found, SearchError> {
    let stop = Arc::clone(&network.stop);
    search(network, plan, &stop)
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
    let path = FakePath::of(&[line(1500), line(1492), line(1400), line(1500)]);
    let plan = MtuPlan {
        listen: false,
        ..path.plan()
    };
    let found = searched(path, &plan).unwrap();
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
    let part = searched(path.clone(), &plan).unwrap();
    assert_eq!(part.path_mtu_bytes, None);
    assert_eq!(
        sizes(&part),
        [Some(1500), Some(1500), Some(1500), Some(1400)]
    );
    path.lines.truncate(1);
    let plan = path.plan();
    let nobody = searched(path, &plan);
    assert!(matches!(nobody, Err(SearchError::Silence)));
}

#[test]
fn who_is_nowhere_has_no_path() {
    let mut path = FakePath::of(&[line(1500); 4]);
    for (code, mark) in [(0, "!N"), (1, "!H")] {
        path.refuses = Some((2, code));
        let plan = path.plan();
        let Err(SearchError::Nowhere(nowhere)) = searched(path.clone(), &plan) else {
            panic!("{mark}");
        };
        assert_eq!(
            (nowhere.from, nowhere.mark.as_str()),
            (FakePath::address(2), mark)
        );
    }
}

#[test]
fn no_size_is_told_below_that_of_a_probe() {
    let path = FakePath::of(&[line(1500), silent(40), line(1500)]);
    let plan = path.plan();
    assert!(matches!(searched(path, &plan), Err(SearchError::Broken)));
    let path = FakePath::of(&[line(1500), silent(68), line(1500)]);
    assert_eq!(found(path).path_mtu_bytes, Some(68));
}

#[test]
fn jumbo_packets_are_tried_where_the_interface_sends_them() {
    let path = FakePath::of(&[line(9000), silent(8996), line(9000)]);
    let plan = MtuPlan {
        largest_bytes: 9000,
        ..path.plan()
    };
    let mut network = VirtualNetwork::of(path);
    let found = searched_in(&mut network, &plan).unwrap();
    assert_eq!(found.path_mtu_bytes, Some(8996));
    let stop = Arc::clone(&network.stop);
    assert!(arrives(&mut network, &plan, 8996, &stop).unwrap());
    assert!(!arrives(&mut network, &plan, 8997, &stop).unwrap());
}

/// Loses the first probes of one size, whatever hop they go to.
struct Unlucky {
    path: FakePath,
    size: u16,
    losses: u32,
}

impl Hops for Unlucky {
    fn answer(&mut self, probe: &Probe, number: u64, at_ns: u64) -> Option<(Duration, Answer)> {
        if probe.size_bytes == self.size && self.losses > 0 {
            self.losses -= 1;
            return None;
        }
        self.path.answer(probe, number, at_ns)
    }
}

#[test]
fn a_size_whose_tries_are_all_lost_by_chance_is_asked_again() {
    // The largest of all, one that the search meets on its way, and the one that decides.
    for (size, holes) in [(1500, None), (1340, Some(1)), (1400, Some(1))] {
        let narrow = if holes.is_some() {
            silent(1400)
        } else {
            line(1500)
        };
        let path = FakePath::of(&[line(1500), narrow, line(1500)]);
        let plan = path.plan();
        // Each try goes to the next hop, and to the far end.
        for losses in [2 * plan.tries, 3 * plan.tries] {
            let mut network = VirtualNetwork::of(Unlucky {
                path: path.clone(),
                size,
                losses,
            });
            let stop = Arc::clone(&network.stop);
            let found = search(&mut network, &plan, &stop).unwrap();
            let whole = if holes.is_some() { 1400 } else { 1500 };
            assert_eq!(found.path_mtu_bytes, Some(whole), "{size} {losses}");
            assert_eq!(found.black_hole_after, holes, "{size} {losses}");
        }
    }
}

/// Answers one of so many probes, whatever their size.
struct Limited {
    path: FakePath,
    answers_one_of: u32,
    draws: Pcg64Mcg,
}

impl Hops for Limited {
    fn answer(&mut self, probe: &Probe, number: u64, at_ns: u64) -> Option<(Duration, Answer)> {
        let answered = self.draws.random_ratio(1, self.answers_one_of);
        self.path.answer(probe, number, at_ns).filter(|_| answered)
    }
}

#[test]
fn a_limit_on_answers_is_not_a_size() {
    for seed in 0..300 {
        let path = FakePath::of(&[line(1500), line(1500)]);
        let plan = path.plan();
        let mut network = VirtualNetwork::of(Limited {
            path,
            answers_one_of: 10,
            draws: Pcg64Mcg::seed_from_u64(seed),
        });
        let stop = Arc::clone(&network.stop);
        match search(&mut network, &plan, &stop) {
            Err(SearchError::Broken | SearchError::Silence) => {}
            Err(other) => panic!("{seed}: {other}"),
            Ok(found) => {
                let narrow = found.path_mtu_bytes.filter(|bytes| *bytes < 1500);
                assert_eq!(narrow, None, "{seed}: {found:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_known_when_it_is_stopped_is_true(
        takes in proptest::collection::vec(68u16..=1500, 1..9),
        stop_ms in 0u64..8_000,
    ) {
        let lines: Vec<Line> = takes.iter().map(|takes| silent(*takes)).collect();
        let path = FakePath::of(&lines);
        let plan = path.plan();
        let mut network = VirtualNetwork::of(path);
        network.stop_at_ns = stop_ms * MS;
        match searched_in(&mut network, &plan) {
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
        path.lose_one_of = if lossy { 3 } else { 0 };
        let plan = path.plan();
        let found = searched(path, &plan).unwrap();
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
        // The first line whose narrowness no router reports, if it narrows the path.
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
