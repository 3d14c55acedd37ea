//! Speeds of the link modes (`enum ethtool_link_mode_bit_indices`, `linux/ethtool.h`).

/// First and last number of modes that follow each other, and their speed in Mbit/s. What is not a
/// speed (autonegotiation, ports, pause, error correction) is not among them.
const SPEEDS: [(u8, u8, u32); 31] = [
    (0, 1, 10),
    (2, 3, 100),
    (4, 5, 1000),
    (12, 12, 10_000),
    (15, 15, 2500),
    (17, 17, 1000),
    (18, 20, 10_000),
    (21, 22, 20_000),
    (23, 26, 40_000),
    (27, 30, 56_000),
    (31, 33, 25_000),
    (34, 35, 50_000),
    (36, 39, 100_000),
    (40, 40, 50_000),
    (41, 41, 1000),
    (42, 46, 10_000),
    (47, 47, 2500),
    (48, 48, 5000),
    (52, 56, 50_000),
    (57, 61, 100_000),
    (62, 66, 200_000),
    (67, 67, 100),
    (68, 68, 1000),
    (69, 73, 400_000),
    (75, 79, 100_000),
    (80, 84, 200_000),
    (85, 89, 400_000),
    (90, 91, 100),
    (92, 92, 10),
    (93, 97, 800_000),
    (98, 101, 10),
];

/// The highest speed among the modes of a mask (32-bit words in the machine's order), in Mbit/s.
pub(super) fn best(mask: &[u8]) -> Option<u32> {
    let set = |mode: u8| {
        let word = mask.get(usize::from(mode / 32) * 4..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*word) & (1 << (mode % 32)) != 0)
    };
    SPEEDS
        .iter()
        .filter(|(first, last, _)| (*first..=*last).any(|mode| set(mode) == Some(true)))
        .map(|(_, _, speed)| *speed)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_mode_counts() {
        let mask = |modes: &[u32]| {
            let mut words = [0_u32; 4];
            for mode in modes {
                if let Some(word) = words.get_mut((mode / 32) as usize) {
                    *word |= 1 << (mode % 32);
                }
            }
            words
                .iter()
                .flat_map(|w| w.to_ne_bytes())
                .collect::<Vec<_>>()
        };
        // A usual card: 10 to 1000BASE-T, autonegotiation, twisted pair, pause.
        assert_eq!(best(&mask(&[0, 1, 2, 3, 5, 6, 7, 13])), Some(1000));
        assert_eq!(best(&mask(&[5, 47, 48, 12])), Some(10_000));
        assert_eq!(best(&mask(&[90])), Some(100));
        assert_eq!(best(&mask(&[6, 7, 13])), None, "no speed among them");
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn no_mode_has_two_speeds() {
        for pair in SPEEDS.windows(2) {
            if let [(_, last, _), (first, _, _)] = pair {
                assert!(last < first);
            }
        }
    }
}
