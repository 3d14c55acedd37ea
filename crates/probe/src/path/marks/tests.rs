#![allow(clippy::unwrap_used)]

use plumb_wire::stamp::{Arrived, ClockState, Counting, Reflector};
use proptest::prelude::*;

use super::*;

/// What a reflector answers that received a packet with these marks.
fn reflected(packet: &[u8], dscp: u8, ecn: u8) -> Vec<u8> {
    let mut reflector = Reflector::new(PORT, None, Counting::Stateful, 1000);
    let clock = ClockState {
        synchronised: false,
        error: Duration::ZERO,
    };
    let arrived = Arrived {
        bytes: packet,
        from: ([127, 0, 0, 1], 40_000).into(),
        ns: 1,
        dscp: Some(dscp),
        ecn: Some(ecn),
        hops: None,
    };
    let mut answer = reflector.reflect(Duration::ZERO, clock, &arrived).unwrap();
    assert_eq!(
        answer.dscp,
        Some(DSCP),
        "the reply bears what was asked for"
    );
    reflector.depart(&mut answer, 2)
}

#[test]
fn packets_are_counted_by_the_marks_of_both_directions() {
    let mut tally = Tally::new(7);
    assert_eq!(tally.result(), None);
    for ecn in [EcnField::Ect0, EcnField::Ect0, EcnField::Ect1] {
        let packet = tally.packet(ecn, 0);
        let reply = reflected(&packet, 2, 0);
        tally.hear(&reply, Some((0, 0)));
        // Once more is the network's doing.
        tally.hear(&reply, Some((34, 0)));
    }
    let lost = tally.packet(EcnField::Ect1, 0);
    // Of another session, from a reflector that knows no such part, and cut off.
    tally.hear(
        &reflected(&Tally::new(8).packet(EcnField::Ect1, 0), 34, 1),
        None,
    );
    let mut unknown = reflected(&lost, 34, 1);
    *unknown.get_mut(44).unwrap() |= 0x80;
    tally.hear(&unknown, None);
    tally.hear(unknown.get(..44).unwrap(), None);
    let arrived = |sent_ecn, dscp, packets| ArrivedMarks {
        sent_ecn,
        dscp,
        ecn: EcnField::NotEct,
        packets,
    };
    let wanted = MarksBetweenEnds {
        dscp: 34,
        sent: 4,
        up: vec![
            arrived(Some(EcnField::Ect1), 2, 1),
            arrived(Some(EcnField::Ect0), 2, 2),
        ],
        down: vec![arrived(None, 0, 3)],
    };
    assert_eq!(tally.result(), Some(wanted));
    assert_eq!(tally.missing(EcnField::Ect0), PACKETS - 2);
    assert!(!tally.is_complete());
}

#[test]
fn a_reply_that_does_not_bear_what_was_asked_shows_one_direction() {
    let mut tally = Tally::new(7);
    let packet = tally.packet(EcnField::Ect0, 0);
    let mut reply = reflected(&packet, 34, 2);
    // The last two of the second byte of the class of service: the reflector refused.
    let field = reply.get_mut(44 + 4 + 1).unwrap();
    *field |= 1;
    tally.hear(&reply, Some((0, 0)));
    let marks = tally.result().unwrap();
    assert_eq!((marks.up.len(), marks.down.len()), (1, 0));
}

proptest! {
    #[test]
    fn any_datagram_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120), at in 0usize..52, byte: u8) {
        let mut tally = Tally::new(7);
        let packet = tally.packet(EcnField::Ect0, 0);
        tally.hear(&bytes, Some((0, 0)));
        let mut reply = reflected(&packet, 34, 2);
        if let Some(place) = reply.get_mut(at) {
            *place = byte;
        }
        tally.hear(&reply, None);
    }
}
