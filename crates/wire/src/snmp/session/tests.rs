#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::snmp::pdu::ErrorStatus;
use crate::snmp::usm::authentication::Authentication;
use crate::snmp::usm::privacy::Privacy;
use crate::snmp::value::Value;

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, 1, 2, 3];
const NOW: Duration = Duration::from_secs(1000);

fn user(authentication: &str, privacy: Option<&str>) -> User {
    User {
        name: "reader".to_owned(),
        authentication: Some((Authentication::Sha256, authentication.to_owned())),
        privacy: privacy.map(|password| (Privacy::Aes128, password.to_owned())),
    }
}

fn question() -> Pdu {
    Pdu::question(Kind::Get, 77, ["1.3.6.1.2.1.1.5.0".parse().unwrap()])
}

fn response() -> Pdu {
    Pdu {
        kind: Kind::Response {
            error: ErrorStatus::NONE,
            index: 0,
        },
        request_id: 77,
        bindings: vec![(
            "1.3.6.1.2.1.1.5.0".parse().unwrap(),
            Value::Bytes(b"sw1".to_vec()),
        )],
    }
}

/// What an engine reports, by the number of its counter.
fn report(counter: u32) -> Pdu {
    let oid = crate::snmp::oid::Oid::new(&[&STATISTICS[..9], &[counter, 0]].concat()).unwrap();
    Pdu {
        kind: Kind::Report,
        request_id: 0,
        bindings: vec![(oid, Value::Counter32(1))],
    }
}

/// A message of the agent whose engine has this clock, secured as its user is.
fn sent(by: Option<&User>, (boots, time_s): (u32, u32), pdu: &Pdu) -> Vec<u8> {
    let parameters = Parameters {
        engine_id: ENGINE.to_vec(),
        boots,
        time_s,
        user: by
            .map(|user| user.name.clone().into_bytes())
            .unwrap_or_default(),
        ..Parameters::default()
    };
    let keys = by.map(|user| user.keys(ENGINE));
    v3::encoded(77, parameters, keys.as_ref(), 5, pdu).unwrap()
}

/// A session that has found the engine out, whose clock was 3 boots and 500 s then.
fn known(user: &User) -> Session {
    let mut session = Session::new(Credentials::User(user.clone()), 9);
    let discovery = session.ask(&question(), NOW).unwrap();
    let asked = Incoming::read(&discovery).unwrap();
    assert!(asked.parameters.engine_id.is_empty() && !asked.says_authentic());
    let heard = session.hear(&sent(None, (3, 500), &report(4)), 77, NOW);
    assert_eq!(heard, Ok(Heard::AskAgain));
    session
}

#[test]
fn a_user_is_answered_once_the_engine_is_known() {
    for user in [
        user("maplesyrup", None),
        user("maplesyrup", Some("pancakes!")),
    ] {
        let mut session = known(&user);
        let asked = session
            .ask(&question(), NOW + Duration::from_secs(7))
            .unwrap();
        let incoming = Incoming::read(&asked).unwrap();
        assert_eq!(
            (incoming.parameters.boots, incoming.parameters.time_s),
            (3, 507)
        );
        assert!(incoming.is_authentic(&user.keys(ENGINE)));
        assert_eq!(incoming.is_encrypted(), user.privacy.is_some());
        assert_eq!(incoming.pdu(Some(&user.keys(ENGINE))), Some(Ok(question())));
        let heard = session.hear(&sent(Some(&user), (3, 507), &response()), 77, NOW);
        assert_eq!(heard, Ok(Heard::Answer(response())));
        // Of another question.
        let heard = session.hear(&sent(Some(&user), (3, 507), &response()), 78, NOW);
        assert_eq!(heard, Ok(Heard::Other));
    }
}

#[test]
fn a_clock_that_differs_is_followed_forwards_alone() {
    let user = user("maplesyrup", None);
    let mut session = known(&user);
    // It booted again, and says so authentically.
    let heard = session.hear(&sent(Some(&user), (4, 2), &report(2)), 77, NOW);
    assert_eq!(heard, Ok(Heard::AskAgain));
    let asked = session
        .ask(&question(), NOW + Duration::from_secs(1))
        .unwrap();
    let asked = Incoming::read(&asked).unwrap().parameters;
    assert_eq!((asked.boots, asked.time_s), (4, 3));
    let heard = session.hear(&sent(None, (9, 9), &report(2)), 77, NOW);
    assert_eq!(heard, Err(SessionError::NotAuthentic));
    for (clock, later_s) in [((3, 9000), 0), ((4, 2), 153)] {
        let now = NOW + Duration::from_secs(later_s);
        let heard = session.hear(&sent(Some(&user), clock, &response()), 77, now);
        assert_eq!(heard, Err(SessionError::Replayed), "{clock:?}");
    }
}

#[test]
fn what_is_less_secure_than_the_question_is_no_answer() {
    let user_of = |authentication, privacy| user(authentication, privacy);
    let private = user_of("maplesyrup", Some("pancakes!"));
    let clock = (3, 500);
    for (by, why) in [
        (
            Some(user_of("maplesyrup", None)),
            SessionError::NotEncrypted,
        ),
        (
            Some(user_of("another password", None)),
            SessionError::NotAuthentic,
        ),
        (
            Some(user_of("maplesyrup", Some("waffles!!"))),
            SessionError::NotDecrypted,
        ),
        (None, SessionError::NotAuthentic),
    ] {
        let mut session = known(&private);
        let heard = session.hear(&sent(by.as_ref(), clock, &response()), 77, NOW);
        assert_eq!(heard, Err(why));
    }
    let mut changed = sent(Some(&private), clock, &response());
    if let Some(last) = changed.last_mut() {
        *last ^= 1;
    }
    assert_eq!(
        known(&private).hear(&changed, 77, NOW),
        Err(SessionError::NotAuthentic)
    );
}

#[test]
fn reports_are_reasons() {
    let user = user("maplesyrup", None);
    for (counter, why) in [
        (1, SessionError::SecurityLevel),
        (3, SessionError::UnknownUser),
        (4, SessionError::Report),
        (5, SessionError::WrongDigest),
        (6, SessionError::Undecipherable),
        (99, SessionError::Report),
    ] {
        let heard = known(&user).hear(&sent(None, (3, 500), &report(counter)), 77, NOW);
        assert_eq!(heard, Err(why.clone()));
        assert!(why.is_refusal());
    }
}

#[test]
fn a_community_has_to_be_the_same() {
    let mut session = Session::new(Credentials::Community("public".to_owned()), 0);
    let asked = Message::read(&session.ask(&question(), NOW).unwrap()).unwrap();
    assert_eq!(asked.pdu, question());
    let answered = |community: &str| {
        let community = community.as_bytes().to_vec();
        Message {
            community,
            pdu: response(),
        }
        .encoded()
    };
    assert_eq!(
        session.hear(&answered("public"), 77, NOW),
        Ok(Heard::Answer(response()))
    );
    assert_eq!(
        session.hear(&answered("private"), 77, NOW),
        Ok(Heard::Other)
    );
    assert_eq!(session.hear(&answered("public"), 78, NOW), Ok(Heard::Other));
    let why = session.hear(&[0x30, 3, 2, 1, 0], 77, NOW).unwrap_err();
    assert_eq!(why, SessionError::Message(SnmpError::Version(0)));
}

#[test]
fn a_hash_that_is_too_short_for_a_cipher_asks_nothing() {
    let short = User {
        authentication: Some((Authentication::Sha1, "maplesyrup".to_owned())),
        privacy: Some((Privacy::Aes256, "maplesyrup".to_owned())),
        ..user("", None)
    };
    let mut session = known(&short);
    assert_eq!(session.ask(&question(), NOW), None);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index, byte: u8) {
        let user = user("maplesyrup", None);
        let mut session = Session::new(Credentials::User(user), 9);
        let _ = session.hear(&bytes, 77, NOW);
        let mut nearly = sent(None, (3, 500), &report(4));
        let place = at.index(nearly.len());
        if let Some(place) = nearly.get_mut(place) {
            *place = byte;
        }
        let _ = session.hear(&nearly, 77, NOW);
        let _ = Incoming::read(&nearly);
    }
}
