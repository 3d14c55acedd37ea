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
    let mut answered = |port, now| {
        let arrived = Arrived {
            from: client(port),
            ..arrived(&packet)
        };
        let answers = (0..500).filter(|_| reflector.reflect(now, CLOCK, &arrived).is_some());
        answers.count()
    };
    assert_eq!(answered(4000, s(1)), 50, "half of what may come together");
    assert_eq!(answered(4000, s(1)), 0);
    assert_eq!(answered(4001, s(1)), 50, "the other half");
    assert_eq!(answered(4002, s(1)), 0, "nothing is left in all");
    let later = s(1) + Duration::from_millis(50);
    assert_eq!(answered(4000, later), 25);
    assert_eq!(answered(4002, later), 25);
    assert_eq!(reflector.counters().above_rate, 6 * 500 - 150);
}

/// Whatever answers what it is given at a time.
type Answering<'a> = &'a mut dyn FnMut(Duration, &[u8]) -> Option<Vec<u8>>;

/// How many packets pass between `a` and `other`, which answers what `a` sends, after a forged first one; `most` at
/// most.
fn goes_round(a: &mut Reflector, first: &[u8], most: usize, other: Answering<'_>) -> usize {
    let mut packet = first.to_vec();
    for passed in 0..most {
        // Over 40 ms, with a running clock.
        let now = s(1) + Duration::from_millis(40) * passed as u32;
        let ns = now.as_nanos() as i64;
        let arrived = Arrived {
            ns,
            ..arrived(&packet)
        };
        let Some(mut reflected) = a.reflect(now, CLOCK, &arrived) else {
            return passed;
        };
        let answer = a.depart(&mut reflected, ns + 1);
        let Some(back) = other(now, &answer) else {
            return passed;
        };
        packet = back;
    }
    most
}

#[test]
fn loops_end_where_our_own_answer_comes_back() {
    let key = Key::new(b"secret").unwrap();
    for key in [None, Some(&key)] {
        for counting in [Counting::Stateful, Counting::Stateless] {
            let forged = request(0).write(key, &[], 120);
            let (mut a, mut b) = (reflector(key, counting), reflector(key, counting));
            let mut other = |now: Duration, packet: &[u8]| {
                let ns = now.as_nanos() as i64 + 20;
                let arrived = Arrived {
                    ns,
                    from: client(5000),
                    ..arrived(packet)
                };
                let mut reflected = b.reflect(now, CLOCK, &arrived)?;
                Some(b.depart(&mut reflected, ns + 1))
            };
            assert_eq!(goes_round(&mut a, &forged, 100, &mut other), 1);
            assert_eq!(a.counters().looped, 1);
            // What returns all that it gets, as port 7 does.
            let mut a = reflector(key, counting);
            let mut echo = |_, packet: &[u8]| Some(packet.to_vec());
            assert_eq!(goes_round(&mut a, &forged, 100, &mut echo), 1);
        }
    }
}

#[test]
fn a_loop_that_cannot_be_recognised_is_bounded_and_ends() {
    // As many packets go round as fit, in 1 ms, through what answers each with one of its own.
    let mut reflector = Reflector::new(8620, None, Counting::Stateful, 5000);
    let (mut going, mut passed, mut number) = (100_usize, 0_usize, 0_u32);
    let mut now = s(1);
    while going > 0 && now < s(3600) {
        let answered = (0..going).filter(|_| {
            number = number.wrapping_add(1);
            let packet = request(number).write(None, &[], 0);
            let Some(mut reflected) = reflector.reflect(now, CLOCK, &arrived(&packet)) else {
                return false;
            };
            reflector.depart(&mut reflected, now.as_nanos() as i64);
            true
        });
        going = answered.count();
        passed += going;
        now += Duration::from_millis(1);
    }
    assert_eq!(going, 0, "it ends");
    assert!((300_000..310_000).contains(&passed), "{passed} packets");
    assert!(now < s(300), "after {now:?}");
    // A sender that asks no faster than any such loop is answered again, and a slow one for ever.
    let asks = |reflector: &mut Reflector, at| {
        let packet = request(7).write(None, &[], 0);
        reflector.reflect(at, CLOCK, &arrived(&packet)).is_some()
    };
    assert!(asks(&mut reflector, now + s(6)));
    let mut slow = Reflector::new(8620, None, Counting::Stateful, 5000);
    for tick in 0..310_000_u32 {
        assert!(asks(&mut slow, s(1) + Duration::from_millis(50) * tick));
    }
}

proptest! {
    /// A TWAMP sender may fill its packets with anything (RFC 5357, section 4.1.2), also with what it
    /// got before, of which it writes over the first 14 bytes.
    #[test]
    fn a_sender_may_pad_with_what_it_likes(padding in proptest::collection::vec(any::<u8>(), 30..300), again: bool) {
        let mut reflector = reflector(None, Counting::Stateful);
        let mut buffer = [request(0).write(None, &[], 0)[..14].to_vec(), padding].concat();
        for sequence in 0..20_u32 {
            let sent = Request { sent_ns: 1_000_000 * i64::from(sequence), ..request(sequence) };
            buffer[..14].copy_from_slice(&sent.write(None, &[], 0)[..14]);
            let now = s(1) + Duration::from_millis(1) * sequence;
            let arrived = Arrived { ns: now.as_nanos() as i64, ..arrived(&buffer) };
            let mut reflected = reflector.reflect(now, CLOCK, &arrived).unwrap();
            let reply = reflector.depart(&mut reflected, now.as_nanos() as i64 + 7);
            prop_assert_eq!(reply.len(), buffer.len());
            if again {
                buffer = reply;
            }
        }
    }

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
