//! What traffic of known applications looks like, and what they need. Data: a profile is an entry
//! of [`CATALOGUE`], with the source of its numbers.

use plumb_model::direction::OneDirection;

/// Traffic that resembles an application's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Its name on the command line and in Runs.
    pub name: &'static str,
    /// The application that it represents.
    pub stands_for: &'static str,
    /// Where its numbers come from.
    pub source: &'static str,
    /// Its packets, each way that they go.
    pub streams: &'static [Stream],
    pub needs: Needs,
    /// Whether a telephone's listener rates it.
    pub rated_as_voice: bool,
}

/// Packets of a profile in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    pub direction: OneDirection,
    pub departures: Departures,
    /// DSCP that such an application uses (RFC 2474).
    pub dscp: u8,
}

/// When packets depart, and their UDP payload in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Departures {
    Constant {
        pps: f64,
        payload_bytes: u16,
    },
    /// At random, as people type.
    Poisson {
        /// Packets a second in the mean.
        pps: f64,
        payload_bytes: u16,
    },
    /// Frames of a picture, each in several packets at once.
    Frames {
        fps: f64,
        /// Packets of a frame.
        packets: u16,
        /// Packets of the first of every `key_every` frames, which shows the whole picture.
        key_packets: u16,
        /// How many frames have one such.
        key_every: u16,
        /// Payload of each packet.
        payload_bytes: u16,
    },
    /// No datagrams: segments of a film, each asked for when it is there, on one TCP connection.
    Segments {
        /// How long one lasts, in seconds.
        segment_s: f64,
        /// How large it is.
        bytes: u32,
    },
}

/// What an application needs; what is absent does not matter to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Share of its packets that may be lost.
    pub loss_ratio: Option<f64>,
    /// 95th percentile of the one-way delay.
    pub one_way_delay_p95_s: Option<f64>,
    /// 95th percentile of the delay variation.
    pub delay_variation_p95_s: Option<f64>,
    /// Transmission rating of its voice.
    pub voice_r: Option<f64>,
    /// Share of the time that its picture may stand still.
    pub stalled_ratio: Option<f64>,
}

const NOTHING: Needs = Needs {
    loss_ratio: None,
    one_way_delay_p95_s: None,
    delay_variation_p95_s: None,
    voice_r: None,
    stalled_ratio: None,
};

/// Expedited forwarding (RFC 3246), for telephony (RFC 4594, section 4.1).
const EF: u8 = 46;

/// Assured forwarding 41 (RFC 2597), for conferences with pictures (RFC 4594, section 4.3).
const AF41: u8 = 34;

/// Class selector 4, for what is interactive at once (RFC 4594, section 4.4).
const CS4: u8 = 32;

/// Assured forwarding 21, for traffic that a user waits for (RFC 4594, section 4.7).
const AF21: u8 = 18;

const DF: u8 = 0;

/// RTP's header (RFC 3550, section 5.1).
const RTP_BYTES: u16 = 12;

const fn both(departures: Departures, dscp: u8) -> [Stream; 2] {
    [
        stream(OneDirection::Up, departures, dscp),
        stream(OneDirection::Down, departures, dscp),
    ]
}

const fn stream(direction: OneDirection, departures: Departures, dscp: u8) -> Stream {
    Stream {
        direction,
        departures,
        dscp,
    }
}

pub const CATALOGUE: &[Profile] = &[
    Profile {
        name: "voice",
        stands_for: "a telephone call, G.711 in packets of 20 ms, both directions",
        source: "RFC 3551, section 4.5.14 and table 1 (PCMU, 20 ms, 64 kbit/s), RTP's 12 bytes; \
                 EF by RFC 4594; good is G.107's 'satisfied', a rating of 80",
        streams: &both(
            Departures::Constant {
                pps: 50.0,
                payload_bytes: 160 + RTP_BYTES,
            },
            EF,
        ),
        needs: Needs {
            voice_r: Some(80.0),
            ..NOTHING
        },
        rated_as_voice: true,
    },
    Profile {
        name: "call-200k",
        stands_for: "a call over the Internet: 200 kbit/s of 500-byte packets, both directions",
        source: "the home queueing experiments: 'iperf set to 200kbps and 500 byte packets ... \
                 somewhat similar to what ... a Skype call would produce'; limits of ITU-T G.1010, \
                 table I.1 (conversational voice: 150 ms, 3 % lost) less the codec's 50 ms",
        streams: &both(
            Departures::Constant {
                pps: 50.0,
                payload_bytes: 500,
            },
            DF,
        ),
        needs: Needs {
            loss_ratio: Some(0.03),
            one_way_delay_p95_s: Some(0.1),
            ..NOTHING
        },
        rated_as_voice: false,
    },
    Profile {
        name: "keystrokes",
        stands_for: "a user types in a remote terminal, which shows each letter",
        source: "60 words of 5 letters a minute, at random; a packet of SSH carries 36 bytes (RFC \
                 4253, section 6: length, padding, a block of 16, a MAC of 12); AF21 as OpenSSH \
                 marks it; an answer within 0.1 s seems immediate (Nielsen 1993), half each way",
        streams: &both(
            Departures::Poisson {
                pps: 5.0,
                payload_bytes: 36,
            },
            AF21,
        ),
        needs: Needs {
            one_way_delay_p95_s: Some(0.05),
            loss_ratio: Some(0.01),
            ..NOTHING
        },
        rated_as_voice: false,
    },
    Profile {
        name: "game",
        stands_for: "a shooter: small packets from the player, the state of the world back",
        source: "Feng et al. 2002, 'Provisioning On-line Games' (Counter-Strike): 40 bytes 24 times a second up, \
                 130 bytes 20 times a second down; CS4 by RFC 4594; 100 ms of round trip for a \
                 first-person view (Claypool 2006), half each way",
        streams: &[
            stream(
                OneDirection::Up,
                Departures::Constant {
                    pps: 24.0,
                    payload_bytes: 40,
                },
                CS4,
            ),
            stream(
                OneDirection::Down,
                Departures::Constant {
                    pps: 20.0,
                    payload_bytes: 130,
                },
                CS4,
            ),
        ],
        needs: Needs {
            loss_ratio: Some(0.01),
            one_way_delay_p95_s: Some(0.05),
            delay_variation_p95_s: Some(0.03),
            ..NOTHING
        },
        rated_as_voice: false,
    },
    Profile {
        name: "video-call",
        stands_for: "pictures of a conference: 30 frames a second of 4 packets, one in 30 of 12, \
                     about 1.2 Mbit/s, both ways",
        source: "packets of 1,200 bytes as WebRTC makes them (RFC 8831, section 6.6); AF41 by RFC \
                 8837; limits of ITU-T G.1010, table I.1 (video telephone: 150 ms, 1 % lost)",
        streams: &both(
            Departures::Frames {
                fps: 30.0,
                packets: 4,
                key_packets: 12,
                key_every: 30,
                payload_bytes: 1200,
            },
            AF41,
        ),
        needs: Needs {
            loss_ratio: Some(0.01),
            one_way_delay_p95_s: Some(0.15),
            ..NOTHING
        },
        rated_as_voice: false,
    },
    Profile {
        name: "dash",
        stands_for: "live video of 5 Mbit/s in segments of 2 s over TCP, as DASH and HLS have it, \
                     with a player that begins when it has three",
        source: "5 Mbit/s is 1080p in Apple's HLS authoring specification; three segments behind the \
                 live edge by RFC 8216, section 6.3.3; one percent of stalls makes people leave (Dobrian et \
                 al. 2011, 'Understanding the Impact of Video Quality on User Engagement')",
        streams: &[stream(
            OneDirection::Down,
            Departures::Segments {
                segment_s: 2.0,
                bytes: 1_250_000,
            },
            DF,
        )],
        needs: Needs {
            stalled_ratio: Some(0.01),
            ..NOTHING
        },
        rated_as_voice: false,
    },
];

/// The profile of that name.
///
/// # Errors
/// What there is, the nearest first.
pub fn find(name: &str) -> Result<&'static Profile, String> {
    CATALOGUE
        .iter()
        .find(|profile| profile.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = CATALOGUE.iter().map(|profile| profile.name).collect();
            let nearest = names
                .iter()
                .map(|known| (strsim::jaro_winkler(known, name), known))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .filter(|(likeness, _)| *likeness > ALIKE);
            let guess = nearest.map_or_else(String::new, |(_, known)| {
                format!("did you mean '{known}'? ")
            });
            format!("{guess}the profiles are {}", names.join(", "))
        })
}

/// Names less alike than this are not meant (Jaro–Winkler).
const ALIKE: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_near_ones_named() {
        assert!(find("voice").is_ok_and(|profile| profile.rated_as_voice));
        assert!(find("vioce").is_err_and(|why| why.contains("did you mean 'voice'?")));
        assert!(find("video").is_err_and(|why| why.contains("'video-call'?")));
        assert!(find("xyzzy").is_err_and(|why| why.starts_with("the profiles are voice, ")));
    }

    #[test]
    fn every_profile_goes_somewhere_needs_something_and_says_its_source() {
        for profile in CATALOGUE {
            assert!(!profile.streams.is_empty(), "{}", profile.name);
            assert_ne!(profile.needs, NOTHING, "{}", profile.name);
            assert!(!profile.source.is_empty() && !profile.stands_for.is_empty());
            assert_eq!(profile.rated_as_voice, profile.needs.voice_r.is_some());
        }
    }
}
