use std::thread;

use plumb_wire::snmp::message::Message;

use super::*;
use crate::snmp::agent::{agent, answered, response};

const WITHIN: Duration = Duration::from_secs(20);

fn oid(text: &str) -> Oid {
    text.parse().unwrap()
}

fn client(to: SocketAddr) -> Client {
    let mut client = Client::new(to, Credentials::Community("public".to_owned())).unwrap();
    client.begin(WITHIN);
    client
}

/// What a walk of ifName comes to with an agent that answers so.
fn walked(answers: impl FnMut(&Pdu) -> Vec<Vec<u8>> + Send + 'static) -> Result<Column, AskError> {
    client(agent(answers)).walk(&oid("1.3.6.1.2.1.31.1.1.1.1"))
}

fn why(answers: impl FnMut(&Pdu) -> Vec<Vec<u8>> + Send + 'static) -> String {
    walked(answers).unwrap_err().to_string()
}

fn names(count: u32) -> Vec<(Oid, Value)> {
    let names = (1..=count).map(|index| {
        let name = Value::Bytes(format!("eth{index}").into_bytes());
        (oid("1.3.6.1.2.1.31.1.1.1.1").with(&[index]).unwrap(), name)
    });
    let beyond = (oid("1.3.6.1.2.1.31.1.1.1.2.1"), Value::Counter32(1));
    names.chain([beyond]).collect()
}

#[test]
fn a_column_is_walked_to_its_end() {
    let objects = names(45);
    let rows = walked(move |asked| vec![answered(&objects, asked).encoded()]).unwrap();
    assert_eq!(rows.len(), 45);
    assert_eq!(rows[44], (vec![45], Value::Bytes(b"eth45".to_vec())));
    // At the end of all that an agent has.
    let objects = names(3)[..3].to_vec();
    let rows = walked(move |asked| vec![answered(&objects, asked).encoded()]).unwrap();
    assert_eq!(rows.len(), 3);
}

#[test]
fn a_table_that_does_not_end_is_left() {
    let (mut next, column) = (0, oid("1.3.6.1.2.1.31.1.1.1.1"));
    let endless = why(move |asked| {
        let rows = (0..20).map(|_| {
            next += 1;
            (column.with(&[next]).unwrap(), Value::Integer(1))
        });
        vec![response(asked, rows.collect()).encoded()]
    });
    assert_eq!(endless, "it sends more than 20000 rows or 4000000 bytes");
    let circle = why(|asked| {
        let row = |index: u32| {
            (
                oid("1.3.6.1.2.1.31.1.1.1.1").with(&[index]).unwrap(),
                Value::Integer(1),
            )
        };
        vec![response(asked, vec![row(1), row(2), row(1)]).encoded()]
    });
    assert!(
        circle.starts_with("its table goes back from 1.3.6.1.2.1.31.1.1.1.1.2 to"),
        "{circle}"
    );
    let (mut next, column) = (0, oid("1.3.6.1.2.1.31.1.1.1.1"));
    let large = why(move |asked| {
        next += 1;
        vec![
            response(
                asked,
                vec![(column.with(&[next]).unwrap(), Value::Bytes(vec![0; 60_000]))],
            )
            .encoded(),
        ]
    });
    assert_eq!(large, endless);
}

#[test]
fn an_agent_that_fails_is_named() {
    assert_eq!(
        why(|asked| vec![response(asked, Vec::new()).encoded()]),
        "it answers for other objects than those asked for"
    );
    let failed = why(|asked| {
        let mut answer = response(asked, Vec::new());
        answer.pdu.kind = Kind::Response {
            error: ErrorStatus(5),
            index: 1,
        };
        vec![answer.encoded()]
    });
    assert_eq!(failed, "it answers genErr");
}

/// Why there is no answer where the agent answers another question, or with another community.
fn why_of_another(community: &'static [u8], by: i32) -> String {
    why(move |asked| {
        let mut answer = answered(&names(3), asked);
        answer.community = community.to_vec();
        answer.pdu.request_id += by;
        vec![answer.encoded()]
    })
}

/// Why there is no answer where one comes from another port.
fn why_of_another_port() -> String {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let asked = Message::read(&bytes[..length]).unwrap();
            let answer = answered(&names(3), &asked.pdu).encoded();
            other.send_to(&answer, from).unwrap();
        }
    });
    let column = oid("1.3.6.1.2.1.31.1.1.1.1");
    client(address).walk(&column).unwrap_err().to_string()
}

/// All at once, because each takes as long as a question is repeated.
#[test]
fn what_is_no_answer_is_named() {
    let version = || why(|_| vec![vec![0x30, 3, 2, 1, 0]]);
    let noise = || why(|_| vec![b"hello".to_vec()]);
    let flood = || why(|_| vec![vec![0x30, 3, 2, 1, 0]; 101]);
    type Case = fn() -> String;
    let cases: [(Case, &str); 6] = [
        (
            version,
            "what comes back is no answer: it is of SNMP version 1",
        ),
        (
            noise,
            "what comes back is no answer: it ends within an element",
        ),
        (flood, "it floods: more than 100 datagrams came"),
        (|| why_of_another(b"public", 1), "it does not answer"),
        (|| why_of_another(b"private", 0), "it does not answer"),
        (why_of_another_port, "it does not answer"),
    ];
    let cases = cases.map(|(case, words)| (thread::spawn(case), words));
    for (case, words) in cases {
        let why = case.join().unwrap();
        assert!(why.starts_with(words), "{words}: {why}");
    }
}

#[test]
fn a_slow_table_is_left_when_its_time_is_over() {
    let (mut next, column) = (0, oid("1.3.6.1.2.1.31.1.1.1.1"));
    let address = agent(move |asked| {
        thread::sleep(Duration::from_millis(300));
        next += 1;
        let row = (column.with(&[next]).unwrap(), Value::Integer(1));
        vec![response(asked, vec![row]).encoded()]
    });
    let mut client = client(address);
    client.begin(Duration::from_secs(2));
    let why = client.walk(&oid("1.3.6.1.2.1.31.1.1.1.1")).unwrap_err();
    assert_eq!(why.to_string(), "it did not answer all within 2 s");
}

#[test]
fn an_answer_among_noise_and_one_that_was_lost_are_found() {
    let mut asked_before = 0;
    let rows = walked(move |asked| {
        asked_before += 1;
        let mut old = answered(&names(1), asked);
        old.pdu.request_id -= 1;
        match asked_before {
            1 => Vec::new(),
            _ => vec![
                old.encoded(),
                vec![0x30],
                answered(&names(3), asked).encoded(),
            ],
        }
    });
    assert_eq!(rows.unwrap().len(), 3);
}

#[test]
fn what_does_not_fit_is_asked_for_in_parts() {
    let column = oid("1.3.6.1.2.1.31.1.1.1.1");
    let address = agent(move |asked| {
        let most = match asked.kind {
            Kind::GetBulk {
                max_repetitions, ..
            } => max_repetitions as usize,
            _ => asked.bindings.len(),
        };
        let mut answer: Message = answered(&names(9), asked);
        if most > 3 {
            answer.pdu.kind = Kind::Response {
                error: ErrorStatus::TOO_BIG,
                index: 0,
            };
            answer.pdu.bindings.clear();
        }
        vec![answer.encoded()]
    });
    let mut client = client(address);
    assert_eq!(client.walk(&column).unwrap().len(), 9);
    let objects: Vec<Oid> = (1..=7)
        .map(|index| column.with(&[index]).unwrap())
        .collect();
    let values = client.get(&objects).unwrap().values;
    assert_eq!(
        (values.len(), &values[6]),
        (7, &Value::Bytes(b"eth7".to_vec()))
    );
    let other = client.get(&[oid("1.3.6.1.2.1.1.5.0")]).unwrap().values;
    assert_eq!(other, [Value::NoSuchInstance]);
}

#[test]
fn a_port_where_nothing_listens_is_named() {
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let why = client(free).get(&[oid("1.3.6.1.2.1.1.5.0")]).unwrap_err();
    assert_eq!(why.to_string(), "nothing listens at its port");
}

#[test]
fn values_of_another_type_are_named() {
    let of = |value| (oid("1.3.6.1.2.1.1.3.0"), value);
    assert_eq!(ticks(&of(Value::TimeTicks(7))).unwrap(), Some(7));
    assert_eq!(ticks(&of(Value::NoSuchObject)).unwrap(), None);
    let why = ticks(&of(Value::Integer(7))).unwrap_err().to_string();
    assert_eq!(
        why,
        "its 1.3.6.1.2.1.1.3.0 has the type INTEGER, where TimeTicks should be"
    );
    let name = text(&of(Value::Bytes(b"  up\nlink\xff ".to_vec())))
        .unwrap()
        .unwrap();
    assert_eq!(name, "up link\u{fffd}");
    assert!(gauge(&of(Value::Integer(-1))).is_err());
}
