//! How long a path over known places is against the way that light takes.

use plumb_model::results::path::{MapPlace, PathDistance, PathHop};

/// Mean radius of the Earth in metres (IUGG R1).
const EARTH_RADIUS_M: f64 = 6_371_008.8;
/// Speed of light in silica fibre in m/s: c over the group index of 1.468 (ITU-T G.652).
const FIBRE_M_PER_S: f64 = 299_792_458.0 / 1.468;
/// A path is a detour when it is so many times as long as the direct way …
const DETOUR_RATIO: f64 = 2.0;
/// … and longer by so many metres: cables go round mountains and along coasts.
const DETOUR_M: f64 = 1_000_000.0;

/// The length of the path over the hops whose place is known, from `here` where that is known;
/// `None` with fewer than two places.
pub fn distance(hops: &[PathHop], here: Option<MapPlace>) -> Option<PathDistance> {
    let mut known = hops.iter().filter_map(|hop| Some((hop, hop.place?)));
    let places: Vec<(u8, MapPlace)> = here
        .map(|here| (0, here))
        .into_iter()
        .chain(known.clone().map(|(hop, place)| (hop.ttl, place)))
        .collect();
    let ((_, first), (_, last)) = (*places.first()?, *places.last()?);
    if places.len() < 2 {
        return None;
    }
    let along_path_m = places
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
        .map(|(ttl, _)| *ttl);
    let least = known
        .next_back()
        .and_then(|(hop, _)| hop.rtt_s.map(|rtt| rtt.min));
    Some(PathDistance {
        along_path_m,
        direct_m,
        light_rtt_s: 2.0 * direct_m / FIBRE_M_PER_S,
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
    use super::*;

    fn place(latitude_deg: f64, longitude_deg: f64) -> MapPlace {
        MapPlace {
            latitude_deg,
            longitude_deg,
        }
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
