#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;
use proptest::prelude::*;

fn request(target: &str) -> Request {
    Request {
        url: format!("https://example.net{target}").parse().unwrap(),
        gzip: false,
    }
}

/// What a server sends.
#[derive(Default)]
struct Server(Vec<u8>);

impl Server {
    fn greeting() -> Self {
        Self::default().frame(
            kind::SETTINGS,
            0,
            0,
            &frame::settings(&[(setting::MAX_CONCURRENT_STREAMS, 10)]),
        )
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        frame::write(&mut self.0, kind, flags, stream, payload);
        self
    }

    fn head(self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> Self {
        let block = hpack::encode(fields.iter().copied());
        self.frame(kind::HEADERS, flag::END_HEADERS | flags, stream, &block)
    }

    fn data(self, stream: u32, flags: u8, bytes: &[u8]) -> Self {
        self.frame(kind::DATA, flags, stream, bytes)
    }
}

/// A client that has asked so many times, and what has left it.
fn client(requests: usize) -> (Client, Vec<u8>) {
    let mut client = Client::default();
    for number in 0..requests {
        client.request(&request(&format!("/{number}"))).unwrap();
    }
    let out = client.take_output();
    (client, out)
}

fn received(client: &mut Client, server: &Server) -> Result<Vec<Event>, HttpError> {
    let mut events = Vec::new();
    client.receive(&server.0, &mut events).map(|()| events)
}

/// The frames of a client, behind the preface.
fn frames(out: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut rest = out.strip_prefix(PREFACE.as_slice()).unwrap_or(out);
    let mut frames = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = Header::parse(header);
        let (payload, after) = after.split_at(header.length);
        frames.push((header, payload.to_vec()));
        rest = after;
    }
    frames
}

#[test]
fn a_client_greets_and_asks() {
    let (_, out) = client(2);
    assert!(out.starts_with(PREFACE));
    let frames = frames(&out);
    let kinds: Vec<_> = frames
        .iter()
        .map(|(h, _)| (h.kind, h.flags, h.stream))
        .collect();
    assert_eq!(
        kinds,
        [
            (kind::SETTINGS, 0, 0),
            (kind::WINDOW_UPDATE, 0, 0),
            (kind::HEADERS, 5, 1),
            (kind::HEADERS, 5, 3)
        ]
    );
    let fields = Decoder::new(TABLE_BYTES, MAX_LIST_BYTES)
        .decode(&frames[3].1)
        .unwrap();
    let fields: Vec<_> = fields
        .iter()
        .map(|(n, v)| {
            (
                std::str::from_utf8(n).unwrap(),
                std::str::from_utf8(v).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        fields[..4],
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "example.net"),
            (":path", "/1")
        ]
    );
    assert_eq!(fields.last(), Some(&("accept-encoding", "identity")));
}

#[test]
fn answers_may_be_mixed_and_padded_and_in_pieces() {
    let block = hpack::encode([(":status", "200"), ("content-length", "5")]);
    let (first, second) = block.split_at(1);
    let server = Server::greeting()
        .frame(kind::SETTINGS, flag::ACK, 0, &[])
        .head(1, 0, &[(":status", "103"), ("link", "x")])
        .frame(kind::HEADERS, 0, 3, first)
        .frame(kind::CONTINUATION, flag::END_HEADERS, 3, second)
        .head(1, 0, &[(":status", "404")])
        .data(3, flag::PADDED, b"\x02hel\0\0")
        .data(1, flag::END_STREAM, b"no")
        .data(3, 0, b"lo")
        .head(3, flag::END_STREAM, &[("trailer", "x")]);
    for piece in [1, 5, 1000] {
        let (mut client, _) = client(2);
        let mut events = Vec::new();
        for piece in server.0.chunks(piece) {
            client.receive(piece, &mut events).unwrap();
        }
        let head = |status, fields: &[(&str, &str)]| Head {
            status,
            fields: fields
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
        };
        let data = |stream, bytes: &[u8]| Event::Data {
            stream,
            bytes: bytes.to_vec(),
        };
        assert_eq!(
            events,
            [
                Event::Began { stream: 1 },
                Event::Began { stream: 3 },
                Event::Head {
                    stream: 3,
                    head: head(200, &[("content-length", "5")])
                },
                Event::Head {
                    stream: 1,
                    head: head(404, &[])
                },
                data(3, b"hel"),
                data(1, b"no"),
                Event::End { stream: 1 },
                data(3, b"lo"),
                Event::End { stream: 3 },
            ]
        );
        let acknowledged = frames(&client.take_output());
        assert_eq!(acknowledged.len(), 1);
        assert!(acknowledged[0].0.has(flag::ACK) && client.can_request());
    }
}

#[test]
fn windows_are_opened_again_before_they_are_full() {
    let (mut client, _) = client(1);
    let chunk = vec![0; MAX_PAYLOAD_BYTES];
    received(
        &mut client,
        &Server::greeting().head(1, 0, &[(":status", "200")]),
    )
    .unwrap();
    client.take_output();
    let mut updates = Vec::new();
    for _ in 0..600 {
        received(&mut client, &Server::default().data(1, 0, &chunk)).unwrap();
        updates.extend(
            frames(&client.take_output())
                .into_iter()
                .map(|(h, payload)| (h.stream, number(&payload).unwrap())),
        );
    }
    let of = |stream: u32| updates.iter().filter(move |(s, _)| *s == stream).count();
    assert_eq!((of(1), of(0)), (3, 1), "{updates:?}");
    assert!(updates.iter().all(|(_, more)| *more >= STREAM_WINDOW / 2));
}

#[test]
fn no_more_requests_than_the_server_takes() {
    let (mut client, _) = client(2);
    let limit = frame::settings(&[(setting::MAX_CONCURRENT_STREAMS, 2)]);
    received(
        &mut client,
        &Server::default().frame(kind::SETTINGS, 0, 0, &limit),
    )
    .unwrap();
    assert_eq!(client.request(&request("/")), None);
    received(
        &mut client,
        &Server::default().head(1, flag::END_STREAM, &[(":status", "200")]),
    )
    .unwrap();
    assert_eq!(client.request(&request("/")), Some(5));
}

#[test]
fn what_was_not_looked_at_may_be_asked_again() {
    let (mut going, _) = client(3);
    let server = Server::greeting().head(3, 0, &[(":status", "200")]).frame(
        kind::GOAWAY,
        0,
        0,
        &[0, 0, 0, 3, 0, 0, 0, 0],
    );
    let events = received(&mut going, &server).unwrap();
    let failed = |stream, error, again| Event::Failed {
        stream,
        error,
        again,
    };
    assert_eq!(events.last(), Some(&failed(5, HttpError::GoAway(0), true)));
    assert!(going.is_closed() && !going.can_request());
    let mut events = Vec::new();
    going.end(&mut events);
    assert_eq!(
        events,
        [
            failed(1, HttpError::CutShort, true),
            failed(3, HttpError::CutShort, false)
        ]
    );
    let (mut refused, _) = client(2);
    let server = Server::greeting()
        .frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 7])
        .frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 2])
        .frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 2]);
    assert_eq!(
        received(&mut refused, &server).unwrap(),
        [
            failed(1, HttpError::Reset(7), true),
            failed(3, HttpError::Reset(2), false)
        ]
    );
}

#[test]
fn a_body_shorter_than_its_head_says_is_cut_short() {
    let (mut client, _) = client(1);
    let server = Server::greeting()
        .head(1, 0, &[(":status", "200"), ("content-length", "9")])
        .data(1, flag::END_STREAM, b"short");
    let events = received(&mut client, &server).unwrap();
    let failed = Event::Failed {
        stream: 1,
        error: HttpError::CutShort,
        again: false,
    };
    assert_eq!(events.last(), Some(&failed));
}

#[test]
fn violations_are_named() {
    let status: &[(&str, &str)] = &[(":status", "200")];
    let protocol = |server: Server| match received(&mut client(1).0, &server) {
        Err(HttpError::Protocol(why)) => why,
        other => panic!("{other:?}"),
    };
    let greeting = Server::greeting;
    for (server, why) in [
        (
            greeting().frame(kind::DATA, 0, 0, b"x"),
            "a frame on a stream that was not opened",
        ),
        (
            greeting().frame(kind::DATA, 0, 3, b"x"),
            "a frame on a stream that was not opened",
        ),
        (
            greeting().head(2, 0, status),
            "a frame on a stream that was not opened",
        ),
        (
            greeting().frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]),
            "the server pushes",
        ),
        (
            greeting().frame(kind::PING, 0, 0, b"seven"),
            "a ping is malformed",
        ),
        (
            greeting().frame(kind::SETTINGS, 0, 0, b"seven"),
            "settings are malformed",
        ),
        (
            greeting().frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
            "a window grows by nothing",
        ),
        (
            greeting().frame(kind::GOAWAY, 0, 0, &[0; 4]),
            "GOAWAY is malformed",
        ),
        (greeting().data(1, 0, b"x"), "a body before its head"),
        (
            greeting().head(1, 0, status).data(1, flag::PADDED, &[9, 0]),
            "more padding than payload",
        ),
        (
            greeting().head(1, 0, status).head(1, 0, status),
            "a second head",
        ),
        (
            greeting().head(1, 0, &[("x", "y")]),
            "an answer without a status",
        ),
        (
            greeting().head(1, 0, &[(":status", "2")]),
            "the status is no number",
        ),
        (
            greeting().head(1, 0, &[(":path", "/")]),
            "an unknown pseudo-field",
        ),
        (
            greeting()
                .frame(kind::HEADERS, 0, 1, &[])
                .frame(kind::PING, 0, 0, &[0; 8]),
            "fields are interrupted or out of place",
        ),
        (
            greeting().frame(kind::CONTINUATION, 0, 1, &[]),
            "fields are interrupted or out of place",
        ),
        (
            greeting().frame(kind::DATA, 0, 1, &vec![0; MAX_PAYLOAD_BYTES + 1]),
            "a frame is larger than was allowed",
        ),
    ] {
        assert_eq!(protocol(server), why);
    }
    for (server, error) in [
        (
            Server(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            HttpError::NotHttp("2"),
        ),
        (
            Server::default().head(1, 0, status),
            HttpError::NotHttp("2"),
        ),
        (
            greeting().frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x80]),
            HttpError::Hpack(hpack::HpackError::Index),
        ),
    ] {
        let (mut client, _) = client(1);
        assert_eq!(received(&mut client, &server), Err(error));
        assert!(client.is_closed());
    }
}

/// A flood of each kind ends the connection after a bounded number of frames and bytes.
#[test]
fn floods_are_stopped() {
    type Flood = fn(Server) -> Server;
    let floods: [(&str, Flood); 7] = [
        ("ping", |server| server.frame(kind::PING, 0, 0, &[0; 8])),
        ("settings", |server| server.frame(kind::SETTINGS, 0, 0, &[])),
        ("window", |server| {
            server.frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])
        }),
        ("priority", |server| {
            server.frame(kind::PRIORITY, 0, 1, &[0; 5])
        }),
        ("unknown", |server| server.frame(0xee, 0, 0, &[])),
        ("empty data", |server| server.data(1, 0, &[])),
        ("padding", |server| {
            server.data(1, flag::PADDED, &[3, 0, 0, 0])
        }),
    ];
    for (name, flood) in floods {
        let (mut client, _) = client(1);
        received(
            &mut client,
            &Server::greeting().head(1, 0, &[(":status", "200")]),
        )
        .unwrap();
        let one = flood(Server::default());
        let ended = (0..=MAX_IDLE_FRAMES)
            .find_map(|sent| received(&mut client, &one).err().map(|e| (sent, e)));
        let (sent, error) = ended.unwrap();
        assert_eq!(error, HttpError::Flood, "{name}");
        assert!(sent <= MAX_IDLE_FRAMES && client.out.len() <= MAX_UNSENT_BYTES + 100);
    }
    // Acknowledgements that the server does not read, with content between.
    let (mut pings, _) = client(1);
    received(
        &mut pings,
        &Server::greeting().head(1, 0, &[(":status", "200")]),
    )
    .unwrap();
    let mut round = Server::default().data(1, 0, b"x");
    for _ in 0..100 {
        round = round.frame(kind::PING, 0, 0, &[0; 8]);
    }
    let ended = (0..100).find_map(|_| received(&mut pings, &round).err());
    assert_eq!(ended, Some(HttpError::Flood));
}

#[test]
fn fields_spread_over_endless_frames_are_stopped() {
    for payload in [&[][..], &[0; 8000]] {
        let (mut client, _) = client(1);
        let begin = Server::greeting().frame(kind::HEADERS, 0, 1, &[]);
        received(&mut client, &begin).unwrap();
        let more = Server::default().frame(kind::CONTINUATION, 0, 1, payload);
        let ended = (0..=MAX_CONTINUATIONS).find_map(|_| received(&mut client, &more).err());
        assert_eq!(ended, Some(HttpError::HeadTooLong(MAX_BLOCK_BYTES)));
    }
    // Interim answers neither.
    let (mut client, _) = client(1);
    received(&mut client, &Server::greeting()).unwrap();
    let more = Server::default().head(1, 0, &[(":status", "103")]);
    let ended = (0..=MAX_INTERIM).find_map(|_| received(&mut client, &more).err());
    assert_eq!(ended, Some(HttpError::Interim(MAX_INTERIM)));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, piece in 1..50_usize) {
        let (mut client, _) = client(2);
        let mut events = Vec::new();
        for piece in [&Server::greeting().0[..], &bytes].concat().chunks(piece) {
            if client.receive(piece, &mut events).is_err() {
                break;
            }
            prop_assert!(client.input.len() < MAX_PAYLOAD_BYTES + HEADER_BYTES);
        }
        client.end(&mut events);
    }

    /// Frames of known types with any payload; each request ends once at most.
    #[test]
    fn any_frames_are_survived(
        frames in proptest::collection::vec(
            (0..11_u8, any::<u8>(), 0..6_u32, proptest::collection::vec(any::<u8>(), 0..40)), 0..30)
    ) {
        let (mut client, _) = client(2);
        let mut server = Server::greeting();
        for (kind, flags, stream, payload) in frames {
            server = server.frame(kind, flags, stream, &payload);
        }
        let mut events = Vec::new();
        let _ = client.receive(&server.0, &mut events);
        client.end(&mut events);
        for stream in [1, 3] {
            let ends = events.iter().filter(|event| matches!(event,
                Event::End { stream: s } | Event::Failed { stream: s, .. } if *s == stream));
            prop_assert_eq!(ends.count(), 1);
        }
    }
}
