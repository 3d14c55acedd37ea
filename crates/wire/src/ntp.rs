//! A client's question to a time server and its answer (SNTP: RFC 4330; the packet: RFC 5905, section 7.3). Pure.

/// Bytes of a packet without extensions and authentication.
pub const PACKET_BYTES: usize = 48;

/// The port of time servers (IANA).
pub const PORT: u16 = 123;

/// No leap second, version 4, mode 3 (client).
const CLIENT: u8 = 0x23;

/// The mode of a server's answer, in the low three bits.
const SERVER: u8 = 4;

/// The leap indicator, in the high two bits, of a clock that is not synchronised.
const UNSYNCHRONISED: u8 = 3;

/// The highest stratum of a clock that is synchronised (RFC 5905, figure 11).
const MOST_STRATUM: u8 = 15;

/// Seconds between the beginnings of NTP's first era (1900) and of Unix time.
const EPOCHS_S: i64 = 2_208_988_800;

/// Seconds of an era.
const ERA_S: i64 = 1 << 32;

/// What a server answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// How far it is from a reference clock: 1 has one itself.
    pub stratum: u8,
    /// When the question arrived and when the answer left by the server's clock, in NTP's format: seconds and 2⁻³² of
    /// them.
    pub received: u64,
    pub sent: u64,
}

/// Why a packet is no answer with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It answers another question, or is no answer: it is passed over.
    #[error("it is no answer to this question")]
    Foreign,
    /// A kiss of death (RFC 5905, section 7.4), by its code.
    #[error("the server refuses: {}", .0.escape_ascii())]
    Refused([u8; 4]),
    #[error("its clock is not synchronised")]
    Unsynchronised,
}

/// A question. The number stands where the client's time would: it is all that an answer has to repeat, so that a random one
/// keeps others from answering, and says nothing of this host's clock.
pub fn question(number: u64) -> [u8; PACKET_BYTES] {
    let mut packet = [0; PACKET_BYTES];
    if let Some(first) = packet.first_mut() {
        *first = CLIENT;
    }
    if let Some(sent) = packet.last_chunk_mut() {
        *sent = number.to_be_bytes();
    }
    packet
}

/// Reads an answer to the question of that number.
///
/// # Errors
/// When it is none, or has no time.
pub fn answer(packet: &[u8], number: u64) -> Result<Answer, NoAnswer> {
    let field = |at: usize| {
        let bytes = packet.get(at..)?.first_chunk()?;
        Some(u64::from_be_bytes(*bytes))
    };
    let (Some(&[flags, stratum, ..]), Some(origin), Some(received), Some(sent)) = (
        packet.first_chunk::<PACKET_BYTES>(),
        field(24),
        field(32),
        field(40),
    ) else {
        return Err(NoAnswer::Foreign);
    };
    if origin != number || flags & 7 != SERVER {
        return Err(NoAnswer::Foreign);
    }
    if stratum == 0 {
        let code = packet.get(12..).and_then(|rest| rest.first_chunk());
        return Err(NoAnswer::Refused(code.copied().unwrap_or_default()));
    }
    if flags >> 6 == UNSYNCHRONISED || stratum > MOST_STRATUM || received == 0 || sent == 0 {
        return Err(NoAnswer::Unsynchronised);
    }
    Ok(Answer {
        stratum,
        received,
        sent,
    })
}

/// Seconds since 1970 of a time in NTP's format: of the era in which it is nearest to `near_s`.
pub fn unix_s(time: u64, near_s: f64) -> f64 {
    let (seconds, fraction) = ((time >> 32) as i64, time as u32);
    let in_first_era = seconds - EPOCHS_S;
    let eras = ((near_s - in_first_era as f64) / ERA_S as f64).round();
    in_first_era as f64 + eras * ERA_S as f64 + f64::from(fraction) / ERA_S as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-01-01 00:00 UTC.
    const NEW_YEAR_S: i64 = 1_767_225_600;

    fn answered(number: u64) -> [u8; PACKET_BYTES] {
        let mut packet = [0; PACKET_BYTES];
        (packet[0], packet[1]) = (0x24, 2);
        packet[24..32].copy_from_slice(&number.to_be_bytes());
        let time = ((NEW_YEAR_S + EPOCHS_S) as u64) << 32 | 1 << 31;
        packet[32..40].copy_from_slice(&time.to_be_bytes());
        packet[40..48].copy_from_slice(&(time + 1).to_be_bytes());
        packet
    }

    #[test]
    fn an_answer_has_the_times_of_the_server() {
        let read = answer(&answered(7), 7).unwrap();
        assert_eq!((read.stratum, read.sent - read.received), (2, 1));
        assert_eq!(unix_s(read.received, 0.0), NEW_YEAR_S as f64 + 0.5);
        assert_eq!(question(7)[0], 0x23);
        assert_eq!(question(7)[40..], 7_u64.to_be_bytes());
    }

    #[test]
    fn what_is_no_answer_is_passed_over_and_refusals_are_read() {
        assert_eq!(answer(&answered(7), 8), Err(NoAnswer::Foreign));
        assert_eq!(answer(&answered(7)[..47], 7), Err(NoAnswer::Foreign));
        assert_eq!(answer(&question(7), 0), Err(NoAnswer::Foreign));
        let mut refused = answered(7);
        refused[1] = 0;
        refused[12..16].copy_from_slice(b"RATE");
        assert_eq!(
            answer(&refused, 7).unwrap_err().to_string(),
            "the server refuses: RATE"
        );
        let mut lost = answered(7);
        lost[0] |= 0xc0;
        assert_eq!(answer(&lost, 7), Err(NoAnswer::Unsynchronised));
    }

    #[test]
    fn times_after_2036_are_of_the_next_era() {
        let near_s = 2_300_000_000.0;
        let time = ((2_300_000_000 + EPOCHS_S - ERA_S) as u64) << 32;
        assert_eq!(unix_s(time, near_s), near_s);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100), number: u64, near_s: f64) {
            if let Ok(answer) = answer(&bytes, number) {
                prop_assert!((1..=15).contains(&answer.stratum));
                let _ = unix_s(answer.sent, near_s);
            }
        }
    }
}
