//! What is answered to which request.

use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use plumb_load::payload;
use plumb_load::web::visited::{Body, Visited};
use plumb_model::direction::OneDirection;
use plumb_wire::native::key::{Key, Purpose};
use plumb_wire::web::key::{self, Challenger};
use plumb_wire::web::{self, ndt7, nq, visit};

use super::activity::{Activity, Answering, SMALL_LONGEST};
use super::body::{Answer, Large, NotTaken, drain, take_whole};
use super::documents::{Answered, TEXT, configuration, document, page, with_type, without_body};
use super::loads::{Load, Loads, NotNow};
use super::origin::{Names, is_private};
use super::page;
use super::state::Counters;
use super::visits::{NotRead, Visits};
use super::websocket::agree;
use crate::admission::answers::HEAD_BYTES;
use crate::gate::{Denied, Entrance, Gate};
use crate::settings::Judge;

/// A body of more than this is heavy, in bytes: more than a request and its answer, and no test of a rate.
const LIGHT_BYTES: u64 = 1000;

/// Bytes that a body hands over at once: what TLS makes several full records of.
const PAYLOAD_BYTES: usize = 128 * 1024;

/// When to come again, where the time until the turn is not known.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) gate: Gate,
    pub(super) loads: Loads,
    pub(super) counters: Arc<Counters>,
    pub(super) payload: Bytes,
    visits: Visits,
    judge: Option<Judge>,
    names: Names,
    challenger: Challenger,
    begun: Instant,
}

/// What a connection becomes after its request.
#[derive(Debug, Clone)]
pub(super) enum Becomes {
    /// A test of NDT7.
    Test(ndt7::Test, Arc<Load>),
    /// Echoes for the page.
    Echoes(Arc<Visited>),
}

/// Nothing more is answered on a connection.
#[derive(Debug, thiserror::Error)]
#[error("nothing more is answered on this connection")]
pub(super) struct IsOver;

/// The client of a connection.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) activity: Arc<Activity>,
    pub(super) peer: IpAddr,
    /// Its port, which names the connection.
    pub(super) port: u16,
    pub(super) socket: Arc<TcpStream>,
    pub(super) is_secure: bool,
}

impl Site {
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn new(gate: Gate, judge: Option<Judge>, names: Names) -> io::Result<Arc<Self>> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Arc::new(Self {
            gate,
            loads: Loads::default(),
            counters: Arc::default(),
            payload: Bytes::from_owner(payload(PAYLOAD_BYTES)),
            visits: Visits::default(),
            judge,
            names,
            challenger: Challenger::new(&secret),
            begun: Instant::now(),
        }))
    }

    /// Answers a request. A WebSocket of NDT7 is for the connection's thread, which finds what is asked for in the extensions.
    ///
    /// Every answer passes here, and draws on what its client may have without a turn: one that would be too much is refused
    /// and ends the connection.
    ///
    /// # Errors
    /// On a connection that is over.
    pub(super) async fn answer(
        self: Arc<Self>,
        client: Client,
        request: Request<Incoming>,
    ) -> Result<Answered, IsOver> {
        self.counters.request();
        if client.activity.is_over() {
            return Err(IsOver);
        }
        let answering = client.activity.answering();
        let wants_body = *request.method() != Method::HEAD;
        let answer = match self.gate.small_answer(client.peer, HEAD_BYTES) {
            Ok(()) => self.route(&client, &answering, request).await,
            Err(after) => self.refuse_more(&client, after),
        };
        let answer = match wants_body {
            true => answer,
            false => without_body(answer),
        };
        let bytes = answer.body().small_bytes();
        let answer = match self.gate.small_answer(client.peer, bytes) {
            Ok(()) => {
                self.counters.took_no_turn(bytes);
                answer
            }
            Err(_) if client.activity.is_over() => answer,
            Err(after) => self.refuse_more(&client, after),
        };
        Ok(answer.map(|body| body.to(answering)))
    }

    /// What is answered to a client that has had as much as it may without a turn, on the last of this connection.
    fn refuse_more(&self, client: &Client, after: Duration) -> Answered {
        client.activity.end();
        self.counters.refusal();
        let why = "too many answers for this address at once\n";
        let mut answer = document(StatusCode::TOO_MANY_REQUESTS, TEXT, why);
        let fields = answer.headers_mut();
        fields.insert(header::RETRY_AFTER, seconds(after).into());
        fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
        answer
    }

    async fn route(
        &self,
        client: &Client,
        answering: &Answering,
        request: Request<Incoming>,
    ) -> Answered {
        let path = request.uri().path();
        let is_open = path != "/" && page::file(path).is_some();
        if !is_open && let Err(why) = self.names.check(&request, is_private(path)) {
            self.counters.refusal();
            return document(StatusCode::FORBIDDEN, TEXT, format!("{why}\n"));
        }
        match self.gate.entrance(client.peer) {
            Entrance::Open => {}
            Entrance::Locked(key) => return self.ask(client, request, &key).await,
            Entrance::Closed => return self.forbid(),
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let gets = *request.method() == Method::GET;
        match (request.uri().path(), reads) {
            ("/status", true) => {
                let page = self.counters.page(self.gate.standing());
                document(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            ("/metrics", true) => {
                let text = self.counters.prometheus(self.gate.standing());
                document(StatusCode::OK, "text/plain; version=0.0.4", text)
            }
            (nq::PATH, true) => configuration(client.is_secure, &request),
            (web::DOWN, true) => self.download(client, answering, &request),
            (web::UP, false) if matches!(*request.method(), Method::POST | Method::PUT) => {
                self.upload(client, answering, request).await
            }
            (visit::ECHO, true) if gets => self.echoes(client, &request),
            (visit::CHECK, false) if *request.method() == Method::POST => {
                self.check(client, request).await
            }
            (ndt7::DOWNLOAD, true) if gets => {
                self.websocket(client, &request, ndt7::Test::Download)
            }
            (ndt7::UPLOAD, true) if gets => self.websocket(client, &request, ndt7::Test::Upload),
            (path, true) if let Some(file) = page::file(path) => page(StatusCode::OK, file),
            ("/" | "/status" | "/metrics" | nq::PATH | web::DOWN | web::UP | visit::CHECK, _) => {
                document(
                    StatusCode::METHOD_NOT_ALLOWED,
                    TEXT,
                    "this path takes another method\n",
                )
            }
            _ => document(
                StatusCode::NOT_FOUND,
                TEXT,
                "there is nothing at this path\n",
            ),
        }
    }

    /// What is answered to those who have to prove first that they have the key.
    async fn ask(&self, client: &Client, request: Request<Incoming>, key: &Key) -> Answered {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let now_s = self.begun.elapsed().as_secs();
        match (request.uri().path(), reads) {
            (key::PATH, true) => {
                let challenge = self.challenger.challenge(client.peer, now_s);
                let json = serde_json::json!({ "challenge": challenge }).to_string();
                document(StatusCode::OK, "application/json", json)
            }
            (key::PATH, false) if *request.method() == Method::POST => {
                let until = Instant::now() + SMALL_LONGEST;
                let text = take_whole(request.into_body(), until, key::MOST_BYTES).await;
                let Some(answer) = text.and_then(|text| key::parse(&text)) else {
                    return document(StatusCode::BAD_REQUEST, TEXT, "that is no answer\n");
                };
                let key::Answer {
                    challenge,
                    nonce,
                    code,
                } = answer;
                // An answer to no challenge of this responder reveals nothing of the key, and spends no attempt.
                if !self.challenger.made(client.peer, challenge, now_s) {
                    let why =
                        "that challenge is not of this responder, or too old: ask for another\n";
                    return document(StatusCode::BAD_REQUEST, TEXT, why);
                }
                let proves = || key.proves(Purpose::Page, challenge, nonce, code);
                let (status, why) = match self.gate.attempt(client.peer, key, proves) {
                    Some(true) => {
                        return document(StatusCode::OK, TEXT, "you are served for an hour\n");
                    }
                    Some(false) => (StatusCode::FORBIDDEN, "it is another key\n"),
                    None => (StatusCode::TOO_MANY_REQUESTS, "one wrong answer a second\n"),
                };
                self.counters.refusal();
                document(status, TEXT, why)
            }
            ("/", true) => page(StatusCode::FORBIDDEN, &page::KEY),
            (path @ ("/key.js" | "/page.css"), true) if let Some(file) = page::file(path) => {
                page(StatusCode::OK, file)
            }
            _ => self.forbid(),
        }
    }

    fn forbid(&self) -> Answered {
        self.counters.refusal();
        document(
            StatusCode::FORBIDDEN,
            TEXT,
            Denied::Policy.to_string() + "\n",
        )
    }

    fn download(
        &self,
        client: &Client,
        answering: &Answering,
        request: &Request<Incoming>,
    ) -> Answered {
        let Some(bytes) = web::bytes_asked(request.uri().query().unwrap_or_default()) else {
            return document(
                StatusCode::BAD_REQUEST,
                TEXT,
                "say how many bytes: /__down?bytes=1000000\n",
            );
        };
        let query = request.uri().query().unwrap_or_default();
        // What HEAD asks for is not sent.
        let is_heavy = bytes > LIGHT_BYTES && request.method() != Method::HEAD;
        let test = is_heavy.then(|| self.join(client, answering));
        match test.transpose() {
            Ok(test) => with_type(
                Response::new(Answer::large(Large {
                    left: bytes,
                    payload: self.payload.clone(),
                    until: test
                        .as_ref()
                        .map_or(Instant::now() + SMALL_LONGEST, |load: &Arc<Load>| {
                            load.until()
                        }),
                    _seen: test
                        .as_ref()
                        .and_then(|_| self.body(client, OneDirection::Down, query)),
                    test,
                    counters: Arc::clone(&self.counters),
                    activity: Arc::clone(&client.activity),
                })),
                "application/octet-stream",
            ),
            Err(why) => self.refuse(&why),
        }
    }

    /// The load of a client, of which the request is a part.
    fn join(&self, client: &Client, answering: &Answering) -> Result<Arc<Load>, NotNow> {
        let load = self.loads.join(&self.gate, client.peer)?;
        answering.carries(&load);
        Ok(load)
    }

    async fn upload(
        &self,
        client: &Client,
        answering: &Answering,
        request: Request<Incoming>,
    ) -> Answered {
        // The head is not kept while the body comes.
        let query = request.uri().query().unwrap_or_default().to_owned();
        let body = request.into_body();
        let join = || {
            let load = self.join(client, answering)?;
            Ok((load, self.body(client, OneDirection::Up, &query)))
        };
        match drain(body, LIGHT_BYTES, join, &self.counters).await {
            Ok(bytes) => document(StatusCode::OK, TEXT, format!("{bytes} bytes\n")),
            Err(NotTaken::NotNow(why)) => self.refuse(&why),
            Err(why) => document(StatusCode::PAYLOAD_TOO_LARGE, TEXT, format!("{why}\n")),
        }
    }

    /// What a body of a visit shows, where it belongs to one.
    fn body(&self, client: &Client, direction: OneDirection, query: &str) -> Option<Arc<Body>> {
        self.judge.as_ref()?;
        let (id, stream) = visit::of_query(query)?;
        let visited = self.visits.of(client.peer, id)?;
        let body = Arc::new(visited.begin(direction, stream, client.port, &client.socket)?);
        client.activity.shows(&body);
        Some(body)
    }

    /// The Run of a visit that is over, and its report.
    async fn check(&self, client: &Client, request: Request<Incoming>) -> Answered {
        let bad = |why: String| document(StatusCode::BAD_REQUEST, TEXT, why + "\n");
        let Some(judge) = &self.judge else {
            return bad("this responder judges no visits".to_owned());
        };
        // Nothing is read of those who took no turn, for nothing would be judged.
        let unknown = "this responder knows nothing of that visit, or it was too long ago";
        let _reading = match self.visits.read(client.peer) {
            Ok(reading) => reading,
            Err(NotRead::Unknown) => return bad(unknown.to_owned()),
            Err(NotRead::NotNow) => {
                let why = "as many visits as may be judged at once are: try again\n";
                return document(StatusCode::SERVICE_UNAVAILABLE, TEXT, why);
            }
        };
        let until = Instant::now() + SMALL_LONGEST;
        let Some(json) = take_whole(request.into_body(), until, visit::MOST_BYTES).await else {
            return bad("it is too long, or took too long".to_owned());
        };
        let found = match visit::parse(&json) {
            Ok(found) => found,
            Err(why) => return bad(why.to_string()),
        };
        // Judging takes a processor some milliseconds, and its answer is long: only those are judged who took a turn.
        let Some((seen, known)) = self.visits.take(client.peer, &found.id) else {
            return bad(unknown.to_owned());
        };
        if let Err(why) = seen.agrees(&found, known.as_secs_f64()) {
            return bad(format!("this visit is not judged: {why}"));
        }
        document(
            StatusCode::OK,
            "application/json",
            judge.judge(client.peer, &found, &seen),
        )
    }

    fn echoes(&self, client: &Client, request: &Request<Incoming>) -> Answered {
        let query = request.uri().query().unwrap_or_default();
        let visited = visit::of_query(query).and_then(|(id, _)| self.visits.of(client.peer, id));
        match visited {
            None => document(StatusCode::BAD_REQUEST, TEXT, "the query names no visit\n"),
            Some(visited) => agree(request, None, || Ok::<_, NotNow>(Becomes::Echoes(visited)))
                .unwrap_or_else(|why| self.refuse(&why)),
        }
    }

    fn websocket(
        &self,
        client: &Client,
        request: &Request<Incoming>,
        asked: ndt7::Test,
    ) -> Answered {
        let join = || {
            Ok(Becomes::Test(
                asked,
                self.loads.join(&self.gate, client.peer)?,
            ))
        };
        agree(request, Some(ndt7::SUBPROTOCOL), join).unwrap_or_else(|why| self.refuse(&why))
    }

    fn refuse(&self, why: &NotNow) -> Answered {
        self.counters.refusal();
        let (status, after) = match why {
            NotNow::Denied(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
            NotNow::Later(queued) => (
                StatusCode::SERVICE_UNAVAILABLE,
                Some(queued.after.unwrap_or(RETRY_AFTER)),
            ),
        };
        let mut answer = document(status, TEXT, format!("{why}\n"));
        if let Some(after) = after {
            let fields = answer.headers_mut();
            fields.insert(header::RETRY_AFTER, seconds(after).into());
        }
        answer
    }
}

/// A time for `Retry-After`.
fn seconds(after: Duration) -> u64 {
    after.as_secs_f64().ceil().max(1.0) as u64
}
