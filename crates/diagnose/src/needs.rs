//! Which causes were looked for: those for which everything that they need was measured.

use std::collections::BTreeMap;

use plumb_model::context::Experiment;
use plumb_model::finding::{Cause, Finding};
use plumb_model::need::{LookedFor, Need, NotLookedFor};
use plumb_model::results::{Direction, Outcome};

use crate::evidence::{ENOUGH_OF_PLACE, shows_marks};
use crate::{Case, causes, lengths};

/// Shorter than this, a trace shows a route at one moment, in seconds: Starlink and mobile networks move a terminal
/// every 15 s.
const ROUTE_OVER_TIME_S: f64 = 15.0;

/// Whether so much was measured that a cause which needs it would have been found.
pub(crate) fn is_measured(case: &Case<'_>, need: Need) -> bool {
    let here = [
        Need::Machine,
        Need::Radio,
        Need::CounterRates,
        Need::Resolver,
    ]
    .contains(&need);
    if !here && case.asked.is_some_and(|asked| asked.local) {
        // The path to a gateway is not the path to anywhere else.
        return false;
    }
    let of_kind = |word: &str| {
        let mut measurements = case.measurements.iter();
        measurements.any(|m| m.outcome.kind().name() == word)
    };
    let any = |is_it: fn(&Outcome) -> bool| case.measurements.iter().any(|m| is_it(&m.outcome));
    let each_way = |is_measured: &dyn Fn(Direction) -> bool| {
        [Direction::Up, Direction::Down]
            .into_iter()
            .all(is_measured)
    };
    match need {
        Need::Idle => case.idle().is_some_and(|idle| idle.result.rtt_s.is_some()),
        Need::Silence => case
            .after_silence()
            .is_some_and(|probes| probes.result.received > 1),
        Need::ProviderHop => case
            .provider_hop()
            .is_some_and(|(_, _, hop)| hop.idle_rtt_s.count >= ENOUGH_OF_PLACE),
        Need::Marks => case.routes().any(shows_marks),
        Need::Upload => shows_rate(case, Direction::Up),
        Need::Download => shows_rate(case, Direction::Down),
        Need::BothLoads => shows_rate(case, Direction::Both),
        Need::UploadQueue => shows_queue(case, Direction::Up),
        Need::DownloadQueue => shows_queue(case, Direction::Down),
        Need::Datagrams => each_way(&|direction| {
            let streams = [Experiment::Paced, Experiment::Overload];
            let mut streams = streams.iter().flat_map(|of| case.streamed(*of, direction));
            streams.next().is_some()
        }),
        Need::SmallPackets => each_way(&|direction| {
            let mut small = case.streamed(Experiment::SmallPackets, direction);
            small.next().is_some()
        }),
        Need::SingleStreams => each_way(&|direction| case.single_stream(direction).is_some()),
        Need::BothHosts => case.far.is_some(),
        Need::Route => case.routes().next().is_some(),
        Need::QuotedHeaders => case
            .routes()
            .any(|route| route.result.quoting_hops > Some(0) || shows_marks(route)),
        Need::RouteOverTime => {
            let mut routes = case.routes();
            routes.any(|route| route.measurement.duration_s >= ROUTE_OVER_TIME_S)
        }
        Need::Places => case.routes().any(|route| route.result.distance.is_some()),
        Need::PacketSizes => {
            let mut sizes = case.sizes();
            sizes.any(|sizes| sizes.result.path_mtu_bytes.is_some() && !sizes.result.partial)
        }
        Need::SegmentSize => case.sizes().any(|sizes| sizes.result.mss.is_some()),
        Need::OneWayDelays => any(
            |outcome| matches!(outcome, Outcome::Owd(owd) if owd.up.delay.is_some() && owd.down.delay.is_some()),
        ),
        Need::Lines => case.lines().any(|lines| lines.result.reached),
        Need::Machine => case.hosts().next().is_some(),
        Need::Radio => {
            let interfaces = case.hosts().flat_map(|(_, host)| &host.interfaces);
            let in_use = interfaces.filter(|interface| interface.is_in_use());
            let mut radios = in_use.filter_map(|interface| interface.wifi.as_ref());
            let counted = is_measured(case, Need::CounterRates);
            radios.all(|wifi| counted && wifi.retries.is_some() && wifi.airtime.is_some())
        }
        // Beside a path only what a machine counted meanwhile bears on it.
        Need::CounterRates => {
            of_kind("host_rates") || case.hosts().next().is_some() && !case.has_path()
        }
        Need::Files => of_kind("host_disk"),
        Need::Ciphers => of_kind("host_cipher"),
        Need::SmallObjects => case.small_objects().is_some(),
        Need::Connections => of_kind("port"),
        Need::Capture => case.captured().next().is_some(),
        Need::Page => of_kind("page_load"),
        Need::Resolver => case.name_servers().any(|names| !names.is_nobodys()),
        Need::BothVersions => case.port_by_both().is_some(),
        Need::SilentConnections => case.ports().any(|port| port.result.idle.is_some()),
    }
}

/// Whether a load lasted until its rate was steady.
fn shows_rate(case: &Case<'_>, direction: Direction) -> bool {
    let carried = case.carried_alone(direction);
    carried.is_some_and(|carried| carried.shows_rate())
}

/// Whether probes beside a load saw its queue as full as it gets.
fn shows_queue(case: &Case<'_>, direction: Direction) -> bool {
    let loaded = case.loaded(direction);
    loaded.is_some_and(|loaded| {
        loaded.measurement.duration_s >= lengths::QUEUE_S.max(loaded.needs_s())
    })
}

/// Which causes were looked for and are absent, and which were not looked for.
pub(crate) fn looked_for(case: &Case<'_>, findings: &[Finding]) -> LookedFor {
    let mut absent = Vec::new();
    let mut not: BTreeMap<Need, Vec<Cause>> = BTreeMap::new();
    let others = causes::all().filter(|(cause, _)| {
        *cause != Cause::Unexplained && !findings.iter().any(|finding| finding.cause == *cause)
    });
    for (cause, entry) in others {
        let mut needs = entry.needs.iter();
        match needs.find(|need| !is_measured(case, **need)) {
            None => absent.push(cause),
            Some(need) => not.entry(*need).or_default().push(cause),
        }
    }
    let not = not.into_iter();
    LookedFor {
        absent,
        not: not
            .map(|(need, causes)| NotLookedFor { need, causes })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_model::run::HostFacts;

    #[test]
    fn without_measurements_no_cause_was_looked_for() {
        let case = Case {
            measurements: &[],
            local: &HostFacts::default(),
            far: None,
            asked: None,
            log: None,
        };
        let looked = looked_for(&case, &[]);
        assert_eq!(looked.absent, []);
        let not: usize = looked.not.iter().map(|one| one.causes.len()).sum();
        assert_eq!(not + 1, causes::all().count());
    }
}
