//! The places on the way that are probed beside the far end: the gateway and the first hop beyond it.
//! Where the round trip to the gateway grows under load, it is Wi-Fi or the local network that
//! delays; where it does not, it is the line.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use plumb_model::distribution::Distribution;
use plumb_model::results::{PathPlace, PathQueueing, PlaceLatency, PlaceMethod};
use plumb_net::route::next_hop;
use plumb_probe::hop::answerer;

/// A place on the way, and what makes it answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub place: PathPlace,
    pub address: IpAddr,
    /// What it is made to answer.
    pub method: PlaceMethod,
}

/// The gateway and the first hop beyond it, as far as they are there and answer. Silence costs
/// some seconds; none is looked for after so much time.
pub fn find(target: IpAddr, within: Duration) -> (Vec<Place>, Vec<String>) {
    let until = Instant::now() + within;
    let mut notes = Vec::new();
    let gateway = match next_hop(target) {
        Ok(hop) => hop.and_then(|hop| hop.gateway),
        Err(error) => {
            notes.push(format!("The gateway was not probed: {error}."));
            None
        }
    };
    let Some(gateway) = gateway.filter(|gateway| *gateway != target) else {
        // The far end is a neighbour, or this host: the local segment is all that there is.
        return (Vec::new(), notes);
    };
    let mut places = Vec::new();
    match probed(PathPlace::Gateway, Some(gateway), target) {
        Some(place) => places.push(place),
        None => notes.push(format!(
            "The gateway {gateway} answers neither echo requests nor packets whose hop limit ends at it: queues of the local network cannot be distinguished from the line's."
        )),
    }
    // Also behind a silent gateway: it ends where the line does.
    if Instant::now() >= until {
        return (places, notes);
    }
    match answerer(target, PathPlace::FirstHopBeyond.hops()) {
        Ok(Some(by)) if by == target => {}
        Ok(by) => match probed(PathPlace::FirstHopBeyond, by, target) {
            Some(place) => places.push(place),
            None => notes.push(
                "The first hop beyond the gateway says nothing, and was not probed.".to_owned(),
            ),
        },
        // Without a socket for ICMP the probes have said so already.
        Err(_) => {}
    }
    (places, notes)
}

/// A place with what makes it answer: echo, or else a hop limit that ends at it.
fn probed(place: PathPlace, address: Option<IpAddr>, target: IpAddr) -> Option<Place> {
    let address = address?;
    let as_said = |method| Place {
        place,
        address,
        method,
    };
    if answerer(address, u8::MAX).ok()? == Some(address) {
        return Some(as_said(PlaceMethod::Echo));
    }
    let by = answerer(target, place.hops()).ok()??;
    // A router may answer from another of its addresses.
    (by != target).then_some(Place {
        address: by,
        ..as_said(PlaceMethod::HopLimit)
    })
}

/// Round trips to the gateway count for a round trip to the far end when they left no more than
/// this before and after it, in seconds: several times the interval of either.
const NEAR_S: f64 = 0.3;

/// Below this mean increase of the far end's round trips, in seconds, there is nothing to divide.
const LEAST_INCREASE_S: f64 = 0.005;

/// Round trips over time: when the probe left, and how long it took, in seconds.
pub type RoundTrips = [(f64, f64)];

/// Which part of the path delayed packets, from the round trips to both under load and the medians
/// of both before it; `None` when too few were probed at the same time. `places` begins with the
/// gateway.
pub fn queueing(
    places: Vec<PlaceLatency>,
    far: &RoundTrips,
    far_idle_s: f64,
    gateway: &RoundTrips,
) -> Option<PathQueueing> {
    let near = places
        .first()
        .filter(|nearest| nearest.place == PathPlace::Gateway)?;
    let gateway_idle_s = near.idle_rtt_s.p50;
    let pairs: Vec<(f64, f64)> = far
        .iter()
        .filter_map(|(t, rtt)| {
            let local = between(gateway, *t)? - gateway_idle_s;
            Some((rtt - far_idle_s, local))
        })
        .collect();
    let beyond = Distribution::of(pairs.iter().map(|(all, local)| (all - local).max(0.0)))?;
    let mean = |get: fn(&(f64, f64)) -> f64| {
        pairs.iter().map(|pair| get(pair).max(0.0)).sum::<f64>() / pairs.len() as f64
    };
    let (all, local) = (mean(|pair| pair.0), mean(|pair| pair.1));
    Some(PathQueueing {
        local_increase_s: near.increase_s,
        beyond_increase_s: beyond,
        local_ratio: (all >= LEAST_INCREASE_S).then(|| (local / all).clamp(0.0, 1.0)),
        places,
    })
}

/// The round trip at an instant, linear between the probes before and after it.
fn between(trips: &RoundTrips, t_s: f64) -> Option<f64> {
    let after = trips.partition_point(|(t, _)| *t <= t_s);
    let (t0, rtt0) = *trips.get(after.checked_sub(1)?)?;
    let (t1, rtt1) = *trips.get(after)?;
    (t_s - t0 <= NEAR_S && t1 - t_s <= NEAR_S)
        .then(|| rtt0 + (rtt1 - rtt0) * (t_s - t0) / (t1 - t0).max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Round trips of `base_s` and a queue that fills to `queue_s` and empties, every `step_s`.
    fn trips(base_s: f64, queue_s: f64, step_s: f64) -> Vec<(f64, f64)> {
        (0..)
            .map(|n| f64::from(n) * step_s)
            .take_while(|t| *t < 10.0)
            .map(|t| (t, base_s + queue_s * (t % 2.0 - 1.0).abs()))
            .collect()
    }

    fn gateway(trips: &RoundTrips, idle_s: f64) -> PlaceLatency {
        let rtt = Distribution::of(trips.iter().map(|(_, rtt)| *rtt)).unwrap();
        PlaceLatency {
            place: PathPlace::Gateway,
            address: "192.0.2.1".to_owned(),
            method: PlaceMethod::Echo,
            idle_rtt_s: Distribution::of([idle_s]).unwrap(),
            rtt_s: rtt,
            increase_s: rtt.above(idle_s),
            loss_ratio: 0.0,
        }
    }

    fn told(far: &RoundTrips, near: &RoundTrips) -> PathQueueing {
        queueing(vec![gateway(near, 0.002)], far, 0.02, near).unwrap()
    }

    #[test]
    fn a_queue_before_the_gateway_is_local() {
        // The same queue in both round trips, probed at different instants.
        let path = told(&trips(0.02, 0.4, 0.02), &trips(0.002, 0.4, 0.05));
        assert!(path.local_ratio.unwrap() > 0.98, "{path:?}");
        assert!(path.beyond_increase_s.p95 < 0.02, "{path:?}");
        assert!((path.local_increase_s.p95 - 0.38).abs() < 0.01, "{path:?}");
    }

    #[test]
    fn a_queue_beyond_the_gateway_is_not() {
        let path = told(&trips(0.02, 0.4, 0.02), &trips(0.002, 0.0, 0.05));
        assert_eq!(path.local_ratio, Some(0.0));
        assert!((path.beyond_increase_s.p50 - 0.2).abs() < 0.01, "{path:?}");
    }

    #[test]
    fn where_nothing_waits_there_is_nothing_to_divide() {
        let path = told(&trips(0.02, 0.0, 0.02), &trips(0.002, 0.0, 0.05));
        assert_eq!((path.local_ratio, path.beyond_increase_s.max), (None, 0.0));
    }

    #[test]
    fn round_trips_that_were_not_probed_at_the_same_time_are_not_compared() {
        let far = trips(0.02, 0.4, 0.02);
        let early = [(0.0, 0.002), (9.9, 0.002)];
        assert_eq!(
            queueing(vec![gateway(&early, 0.002)], &far, 0.02, &early),
            None
        );
        let path = queueing(Vec::new(), &far, 0.02, &early);
        assert_eq!(path, None, "no gateway");
    }
}
