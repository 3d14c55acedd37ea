//! Tins: which packets share one by their DSCP, and the rates below which a tin has priority
//! (tc-cake(8), "Priority queue parameters"; the codepoints and shares of sch_cake.c).

use serde::{Deserialize, Serialize};

/// How packets are sorted into tins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tins {
    Besteffort,
    /// Eight, by the three bits of the precedence of RFC 791.
    Precedence,
    /// Best effort, bulk, voice.
    #[default]
    Diffserv3,
    /// Best effort, bulk, video, voice.
    Diffserv4,
    /// Eight, by the traffic classes of RFC 4594 and RFC 8622.
    Diffserv8,
}

/// Codepoints of RFC 2474, RFC 2597, RFC 3246, RFC 5865 and RFC 8622, and the ToS bits of
/// RFC 1349 that are still seen.
const LE: u8 = 1;
const TOS_MAX_THROUGHPUT: u8 = 2;
const TOS_MIN_DELAY: u8 = 4;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const VA: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;

/// The class of assured forwarding that a codepoint is of, 1…4 (RFC 2597).
fn assured_forwarding(dscp: u8) -> Option<u8> {
    let (class, drop_precedence) = (dscp >> 3, dscp & 7);
    ((1..=4).contains(&class) && matches!(drop_precedence, 2 | 4 | 6)).then_some(class)
}

impl Tins {
    /// The number of the tin for this codepoint, below the number of [`Self::rates`]. Where two
    /// tins keep below their rates, the one of the higher number goes first.
    pub(super) fn tin(self, dscp: u8) -> usize {
        match self {
            Self::Besteffort => 0,
            Self::Precedence => usize::from(dscp >> 3 & 7),
            Self::Diffserv3 => match dscp {
                LE | CS1 => 1,
                TOS_MIN_DELAY | VA | EF | CS6 | CS7 => 2,
                _ => 0,
            },
            Self::Diffserv4 => match (dscp, assured_forwarding(dscp)) {
                (LE | CS1, _) => 1,
                (TOS_MIN_DELAY | CS2 | CS3, _) | (_, Some(2..=4)) => 2,
                (CS4 | CS5 | VA | EF | CS6 | CS7, _) => 3,
                _ => 0,
            },
            Self::Diffserv8 => match (dscp, assured_forwarding(dscp)) {
                (LE, _) => 0,
                (TOS_MAX_THROUGHPUT | CS1, _) | (_, Some(1)) => 1,
                (CS3, _) | (_, Some(3 | 4)) => 3,
                (TOS_MIN_DELAY, _) | (_, Some(2)) => 4,
                (CS2, _) => 5,
                (CS4 | CS5 | VA | EF, _) => 6,
                (CS6 | CS7, _) => 7,
                _ => 2,
            },
        }
    }

    /// The rate up to which each tin has priority, of a line of `rate`, in the unit of `rate`.
    pub(super) fn rates(self, rate: u64) -> Vec<u64> {
        match self {
            Self::Besteffort => vec![rate],
            Self::Diffserv3 => vec![rate, rate >> 4, rate >> 2],
            Self::Diffserv4 => vec![rate, rate >> 4, rate >> 1, rate >> 2],
            Self::Precedence | Self::Diffserv8 => {
                let eighths = |rate: &u64| Some(rate.saturating_mul(7) >> 3);
                std::iter::successors(Some(rate), eighths).take(8).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tin of each of the 64 codepoints, eight to a group.
    fn tins(tins: Tins) -> String {
        (0..64u8)
            .map(|dscp| {
                let gap = if dscp > 0 && dscp % 8 == 0 { " " } else { "" };
                format!("{gap}{}", tins.tin(dscp))
            })
            .collect()
    }

    #[test]
    fn every_codepoint_has_its_tin() {
        assert_eq!(
            tins(Tins::Besteffort),
            "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
        );
        assert_eq!(
            tins(Tins::Precedence),
            "00000000 11111111 22222222 33333333 44444444 55555555 66666666 77777777"
        );
        // LE; CS1; VA and EF; CS6; CS7, and TOS4 in the first group.
        assert_eq!(
            tins(Tins::Diffserv3),
            "01002000 10000000 00000000 00000000 00000000 00002020 20000000 20000000"
        );
        assert_eq!(
            tins(Tins::Diffserv4),
            "01002000 10000000 20202020 20202020 30202020 30003030 30000000 30000000"
        );
        assert_eq!(
            tins(Tins::Diffserv8),
            "20124222 12121212 52424242 32323232 62323232 62226262 72222222 72222222"
        );
    }

    #[test]
    fn thresholds_are_shares_of_the_line() {
        assert_eq!(Tins::Besteffort.rates(1600), [1600]);
        assert_eq!(Tins::Diffserv3.rates(1600), [1600, 100, 400]);
        assert_eq!(Tins::Diffserv4.rates(1600), [1600, 100, 800, 400]);
        let eight = [4096, 3584, 3136, 2744, 2401, 2100, 1837, 1607];
        assert_eq!(Tins::Diffserv8.rates(4096), eight);
        assert_eq!(Tins::Precedence.rates(4096), eight);
    }
}
