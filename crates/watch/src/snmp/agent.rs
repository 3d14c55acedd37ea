//! An agent for tests, which answers whatever a test has it answer.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use plumb_wire::snmp::message::Message;
use plumb_wire::snmp::oid::Oid;
use plumb_wire::snmp::pdu::{ErrorStatus, Kind, Pdu};
use plumb_wire::snmp::value::Value;

/// Answers each question by version 2c with these datagrams, until it is asked nothing for a while.
pub(crate) fn agent(mut answers: impl FnMut(&Pdu) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let asked = Message::read(&bytes[..length]).unwrap();
            for datagram in answers(&asked.pdu) {
                socket.send_to(&datagram, from).unwrap();
            }
        }
    });
    address
}

/// An answer with these objects.
pub(crate) fn response(asked: &Pdu, bindings: Vec<(Oid, Value)>) -> Message {
    Message {
        community: b"public".to_vec(),
        pdu: Pdu {
            kind: Kind::Response {
                error: ErrorStatus::NONE,
                index: 0,
            },
            request_id: asked.request_id,
            bindings,
        },
    }
}

/// What an agent with these objects answers, which have to be in their order.
pub(crate) fn answered(objects: &[(Oid, Value)], asked: &Pdu) -> Message {
    let bindings = match asked.kind {
        Kind::GetBulk {
            max_repetitions, ..
        } => {
            let most = usize::try_from(max_repetitions).unwrap();
            let (oid, _) = &asked.bindings[0];
            let after = objects.iter().filter(|(own, _)| own > oid);
            let mut found: Vec<_> = after.take(most).cloned().collect();
            if found.len() < most {
                found.push((oid.clone(), Value::EndOfMibView));
            }
            found
        }
        _ => asked
            .bindings
            .iter()
            .map(|(oid, _)| {
                let value = objects.iter().find(|(own, _)| own == oid);
                (
                    oid.clone(),
                    value.map_or(Value::NoSuchInstance, |(_, value)| value.clone()),
                )
            })
            .collect(),
    };
    response(asked, bindings)
}
