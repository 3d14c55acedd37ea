//! How long a path over known places is against the way that light takes.

use plumb_model::results::path::{MapPlace, PathDistance, PathHop};
use plumb_model::units::human_seconds;

/// Mean radius of the Earth in metres (IUGG R1).
const EARTH_RADIUS_M: f64 = 6_371_008.8;
/// Speed of light in silica fibre in m/s: c over the group index of 1.468 (ITU-T G.652).
const FIBRE_M_PER_S: f64 = 299_792_458.0 / 1.468;
/// A path is a detour when it is so many times as long as the direct way …
const DETOUR_RATIO: f64 = 2.0;
/// … and longer by so many metres: cables go round mountains and along coasts.
const DETOUR_M: f64 = 1_000_000.0;

/// Takes away the places at which hops cannot be: light would not go there and back within their least round trip, or
/// within the least round trip of a hop beyond. Each such hop is marked. Without `here` no hop can be judged.
pub fn reject_impossible(hops: &mut [PathHop], here: Option<MapPlace>) {
    let Some(here) = here else { return };
    let mut beyond_s = f64::INFINITY;
    for hop in hops.iter_mut().rev() {
        let Some(rtt_s) = hop.rtt_s.map(|rtt| rtt.min) else {
            continue;
        };
        // What goes several ways need not have come by here to be beyond.
        beyond_s = match hop.addresses.len() {
            1 => rtt_s.min(beyond_s),
            _ => rtt_s,
        };
        let Some(place) = hop.place else { continue };
        let off_m = great_circle_m(here, place);
        if light_rtt_s(off_m) > beyond_s {
            hop.place = None;
            hop.notes.push(format!(
                "is not at {place}, {:.0} km from here, as the database has it: light in fibre does not go there and back in {}",
                off_m / 1000.0,
                human_seconds(beyond_s)
            ));
        }
    }
}

/// The least round trip over so many metres of fibre.
fn light_rtt_s(metres: f64) -> f64 {
    2.0 * metres / FIBRE_M_PER_S
}

/// The length of the path over the hops whose place is known, from `here` where that is known;
/// `None` with fewer than two places.
pub fn distance(hops: &[PathHop], here: Option<MapPlace>) -> Option<PathDistance> {
    let mut known = hops.iter().filter_map(|hop| Some((hop, hop.place?)));
    let places: Vec<(u8, MapPlace)> = here
        .map(|here| (0, here))
        .into_iter()
        .chain(known.clone().map(|(hop, place)| (hop.ttl, place)))
        .collect();
    let ((first_ttl, first), (_, last)) = (*places.first()?, *places.last()?);
    if places.len() < 2 {
        return None;
    }
    let along_path_m: f64 = places
        .iter()
        .zip(places.iter().skip(1))
        .map(|((_, a), (_, b))| great_circle_m(*a, *b))
        .sum();
    let direct_m = great_circle_m(first, last);
    let is_detour = along_path_m > direct_m * DETOUR_RATIO && along_path_m > direct_m + DETOUR_M;
    let off_way = |place: MapPlace| great_circle_m(first, place) + great_circle_m(place, last);
    let furthest = places
        .iter()
        .max_by(|a, b| off_way(a.1).total_cmp(&off_way(b.1)))
        .filter(|(ttl, at)| {
            // How far the first place is off this host is bounded by its own round trip.
            let known = |wanted: u8| hops.iter().find(|hop| hop.ttl == wanted)?.rtt_s;
            let rtt_s = |ttl: u8| known(ttl).map_or(0.0, |rtt| rtt.min);
            *ttl == 0 || light_rtt_s(great_circle_m(first, *at)) <= rtt_s(first_ttl) + rtt_s(*ttl)
        })
        .map(|(ttl, _)| *ttl);
    let least = known
        .next_back()
        .and_then(|(hop, _)| hop.rtt_s.map(|rtt| rtt.min));
    Some(PathDistance {
        along_path_m,
        direct_m,
        light_rtt_s: light_rtt_s(direct_m),
        along_light_rtt_s: light_rtt_s(along_path_m),
        rtt_s: least,
        detour_ttl: furthest.filter(|_| is_detour),
    })
}

/// The shortest way over the surface of a sphere (haversine formula).
fn great_circle_m(a: MapPlace, b: MapPlace) -> f64 {
    let half = |degrees: f64| (degrees.to_radians() / 2.0).sin().powi(2);
    let (a_north, b_north) = (a.latitude_deg.to_radians(), b.latitude_deg.to_radians());
    let h = half(b.latitude_deg - a.latitude_deg)
        + a_north.cos() * b_north.cos() * half(b.longitude_deg - a.longitude_deg);
    2.0 * EARTH_RADIUS_M * h.clamp(0.0, 1.0).sqrt().asin()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_model::distribution::Distribution;
    use plumb_model::results::path::HopAnswers;

    fn place(latitude_deg: f64, longitude_deg: f64) -> MapPlace {
        MapPlace {
            latitude_deg,
            longitude_deg,
        }
    }

    fn hop(ttl: u8, rtt_s: f64, at: MapPlace) -> PathHop {
        PathHop {
            ttl,
            address: None,
            addresses: vec![format!("192.0.2.{ttl}")],
            name: None,
            asn: None,
            as_name: None,
            place: Some(at),
            sent: 3,
            received: 3,
            unanswered_ratio: 0.0,
            answers: HopAnswers::Well,
            rtt_s: Distribution::of([rtt_s]),
            last_rtt_s: None,
            annotation: None,
            this_host: false,
            mpls: Vec::new(),
            return_hops: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_round_trip_proves_a_place_wrong() {
        let (berlin, poznan, sydney) = (place(52.5, 13.4), place(52.4, 16.9), place(-33.9, 151.2));
        let path = [
            hop(1, 0.0065, poznan),
            hop(2, 0.0065, sydney),
            // Answers late itself; what lies beyond it does not.
            hop(3, 0.9, sydney),
            hop(4, 0.007, berlin),
        ];
        let mut seen = path.to_vec();
        reject_impossible(&mut seen, Some(berlin));
        let places: Vec<_> = seen.iter().map(|hop| hop.place).collect();
        assert_eq!(places, [Some(poznan), None, None, Some(berlin)]);
        let says: Vec<_> = seen.iter().map(|hop| hop.notes.join("")).collect();
        assert!(
            says.iter()
                .all(|said| said.is_empty() || said.contains("not at 33.9° S 151.2° E")),
            "{says:?}"
        );
        assert_eq!(
            distance(&seen, Some(berlin)).and_then(|d| d.detour_ttl),
            None
        );
        // The place of this host is not given, so the first place may be the wrong one; it is no detour.
        // count.
        let mut seen = path.to_vec();
        reject_impossible(&mut seen, None);
        assert_eq!(seen, path);
        assert_eq!(
            distance(&seen, None).and_then(|d| d.detour_ttl),
            Some(3),
            "late enough for light"
        );
        let near = [path[0].clone(), path[1].clone(), path[3].clone()];
        let told = distance(&near, None).unwrap();
        assert!(told.along_path_m > 3e7 && told.detour_ttl.is_none());
    }

    #[test]
    fn distances_are_those_of_the_globe() {
        // Amsterdam to New York: 5,860 km.
        let (amsterdam, new_york) = (place(52.37, 4.90), place(40.71, -74.01));
        let metres = great_circle_m(amsterdam, new_york);
        assert!((metres / 1000.0 - 5_860.0).abs() < 20.0, "{metres}");
        assert_eq!(great_circle_m(amsterdam, amsterdam), 0.0);
        assert!(
            (great_circle_m(place(0.0, 0.0), place(0.0, 180.0)) / 1000.0 - 20_015.0).abs() < 1.0
        );
    }
}
