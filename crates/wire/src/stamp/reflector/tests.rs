#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::super::{OPEN_BYTES, Reply};
use super::*;
use proptest::prelude::*;

const CLOCK: ClockState = ClockState {
    synchronised: true,
    error: Duration::from_millis(1),
};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn client(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn arrived(bytes: &[u8]) -> Arrived<'_> {
    Arrived {
        bytes,
        from: client(4000),
        ns: 5_000,
        dscp: Some(10),
        ecn: Some(1),
        hops: Some(61),
    }
}

fn request(sequence: u32) -> Request {
    Request {
        sequence,
        sent_ns: 1_000,
        error: ErrorEstimate::new(false, s(1)),
        session: 3,
    }
}

fn reflector(key: Option<&Key>, counting: Counting) -> Reflector {
    Reflector::new(8620, key.cloned(), counting, 1000)
}

/// The answer to `bytes`, sent at 9000 ns.
fn answer(reflector: &mut Reflector, bytes: &[u8]) -> Option<(Vec<u8>, Option<u8>)> {
    let mut reflected = reflector.reflect(s(1), CLOCK, &arrived(bytes))?;
    let answer = reflector.depart(&mut reflected, 9_000);
    reflector.departed(&reflected, 9_500);
    Some((answer, reflected.dscp))
}

#[test]
fn a_packet_comes_back_with_the_reflectors_times_and_numbers() {
    let key = Key::new(b"secret").unwrap();
    for key in [None, Some(&key)] {
        let mut reflector = reflector(key, Counting::Stateful);
        for (sent, counted) in [(0, 0), (4, 1), (9, 2)] {
            let packet = request(sent).write(key, &[], 150);
            let (bytes, dscp) = answer(&mut reflector, &packet).unwrap();
            assert_eq!((bytes.len(), dscp), (150, Some(10)));
            let reply = Reply::parse(&bytes, key).unwrap();
            assert_eq!((reply.sequence, reply.session), (counted, 3));
            assert_eq!((reply.received_ns, reply.sent_ns), (5_000, 9_000));
            assert_eq!((reply.request, reply.request_hops), (request(sent), 61));
            assert!(reply.error.synchronised);
        }
    }
}

#[test]
fn without_state_the_senders_number_comes_back() {
    let mut reflector = reflector(None, Counting::Stateless);
    for sequence in [7, 3, u32::MAX] {
        let (bytes, _) = answer(&mut reflector, &request(sequence).write(None, &[], 0)).unwrap();
        assert_eq!(Reply::parse(&bytes, None).unwrap().sequence, sequence);
    }
}

#[test]
fn what_would_make_the_answer_longer_is_not_answered() {
    let mut reflector = reflector(None, Counting::Stateful);
    let packet = request(0).write(None, &[], 0);
    // A TWAMP sender without padding sends 14 bytes (RFC 5357, section 4.1.2).
    assert!(answer(&mut reflector, &packet[..14]).is_none());
    assert!(answer(&mut reflector, &packet[..40]).is_none());
    assert_eq!(answer(&mut reflector, &packet[..41]).unwrap().0.len(), 41);
    assert_eq!(reflector.counters().refused, 2);
}

#[test]
fn a_packet_without_the_key_is_not_answered() {
    let key = Key::new(b"secret").unwrap();
    let mut reflector = reflector(Some(&key), Counting::Stateful);
    assert!(answer(&mut reflector, &request(0).write(None, &[], 200)).is_none());
    let other = Key::new(b"secrets").unwrap();
    assert!(answer(&mut reflector, &request(0).write(Some(&other), &[], 0)).is_none());
    assert_eq!(reflector.counters().refused, 2);
}

#[test]
fn optional_parts_are_filled_in() {
    let asked = [
        Tlv::ExtraPadding(3),
        Tlv::TimestampInformation {
            receive: (Source::Other(0), 0),
            send: (Source::Other(0), 0),
        },
        Tlv::ClassOfService {
            wanted_dscp: 46,
            received_dscp: 0,
            received_ecn: 0,
            refused: false,
        },
        Tlv::DirectMeasurement {
            sent: 8,
            received: 0,
            reflected: 0,
        },
        Tlv::FollowUp {
            sequence: 0,
            sent_ns: 0,
            method: 0,
        },
        Tlv::Other {
            kind: 200,
            value: vec![1, 2, 3],
        },
    ];
    let key = Key::new(b"secret").unwrap();
    for key in [None, Some(&key)] {
        let mut reflector = reflector(key, Counting::Stateful);
        answer(&mut reflector, &request(0).write(key, &[], 0)).unwrap();
        let packet = request(1).write(key, &asked, 0);
        let (bytes, dscp) = answer(&mut reflector, &packet).unwrap();
        assert_eq!((bytes.len(), dscp), (packet.len(), Some(46)));
        let reply = Reply::parse(&bytes, key).unwrap();
        let placed = reply.tlvs(&bytes, key);
        let known: Vec<_> = placed.iter().map(|part| !part.flags.unrecognised).collect();
        assert_eq!(known[..6], [true, true, true, true, true, false]);
        assert_eq!(placed.len(), if key.is_some() { 7 } else { 6 });
        let tlvs: Vec<_> = placed.into_iter().filter_map(|part| part.tlv).collect();
        assert_eq!((&tlvs[0], &tlvs[5]), (&asked[0], &asked[5]));
        let source = (Source::Ntp, tlv::SOFTWARE);
        assert_eq!(
            tlvs[1],
            Tlv::TimestampInformation {
                receive: source,
                send: source
            }
        );
        assert_eq!(
            tlvs[2],
            Tlv::ClassOfService {
                wanted_dscp: 46,
                received_dscp: 10,
                received_ecn: 1,
                refused: false
            }
        );
        assert_eq!(
            tlvs[3],
            Tlv::DirectMeasurement {
                sent: 8,
                received: 2,
                reflected: 2
            }
        );
        assert_eq!(
            tlvs[4],
            Tlv::FollowUp {
                sequence: 0,
                sent_ns: 9_500,
                method: tlv::SOFTWARE
            }
        );
    }
}

#[test]
fn parts_that_somebody_changed_come_back_marked() {
    let key = Key::new(b"secret").unwrap();
    let mut reflector = reflector(Some(&key), Counting::Stateful);
    let asked = Tlv::ClassOfService {
        wanted_dscp: 46,
        received_dscp: 0,
        received_ecn: 0,
        refused: false,
    };
    let mut packet = request(0).write(Some(&key), std::slice::from_ref(&asked), 0);
    packet[112 + 4] ^= 1;
    let (bytes, dscp) = answer(&mut reflector, &packet).unwrap();
    assert_eq!(dscp, Some(10), "the changed wish is not followed");
    let marked: Vec<_> = tlv::read(&bytes[112..], super::super::TimeFormat::Ntp)
        .map(|part| part.flags.unverified)
        .collect();
    assert_eq!(marked, [true, true]);
}

#[test]
fn two_reflectors_do_not_answer_each_other() {
    let mut reflector = reflector(None, Counting::Stateful);
    let packet = request(0).write(None, &[], 0);
    for port in [862, 8620] {
        let from = client(port);
        let arrived = Arrived {
            from,
            ..arrived(&packet)
        };
        assert_eq!(reflector.reflect(s(1), CLOCK, &arrived), None);
    }
}

#[test]
fn there_is_a_bound_on_answers() {
    let mut reflector = reflector(None, Counting::Stateful);
    let packet = request(0).write(None, &[], 0);
    let answered = |reflector: &mut Reflector, now| {
        (0..500)
            .filter(|_| reflector.reflect(now, CLOCK, &arrived(&packet)).is_some())
            .count()
    };
    assert_eq!(answered(&mut reflector, s(1)), 100, "what came together");
    assert_eq!(answered(&mut reflector, s(1)), 0);
    assert_eq!(
        answered(&mut reflector, s(1) + Duration::from_millis(50)),
        50
    );
    assert_eq!(reflector.counters().above_rate, 400 + 500 + 450);
}

proptest! {
    #[test]
    fn any_packet_is_survived_and_never_amplified(
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..20),
        sealed: bool,
    ) {
        let key = sealed.then(|| Key::new(b"secret").unwrap());
        let mut reflector = reflector(key.as_ref(), Counting::Stateful);
        for mut packet in packets {
            if let (Some(key), true) = (&key, packet.len() >= 112) {
                seal(&mut packet, key);
            }
            if let Some((bytes, _)) = answer(&mut reflector, &packet) {
                prop_assert_eq!(bytes.len(), packet.len());
                prop_assert!(Reply::parse(&bytes, key.as_ref()).is_some());
            } else {
                prop_assert!(packet.len() < OPEN_BYTES || sealed);
            }
        }
    }
}
