//! What comes back from an agent, by either version: what is no answer is refused, and none asks more than once for the same.
#![no_main]

use std::time::Duration;

use plumb_wire::snmp::pdu::{Kind, Pdu};
use plumb_wire::snmp::session::{Credentials, Session};
use plumb_wire::snmp::usm::User;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let user = User {
        name: "reader".to_owned(),
        authentication: None,
        privacy: None,
    };
    for credentials in [Credentials::Community("public".to_owned()), Credentials::User(user)] {
        let mut session = Session::new(credentials, 1);
        // The second time an engine may be known, which the first one named.
        for _ in 0..2 {
            let _ = session.hear(bytes, 1, Duration::ZERO);
            let question = Pdu::question(Kind::Get, 1, []);
            assert!(session.ask(&question, Duration::ZERO).is_some());
        }
    }
});
