//! What is answered to which request.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use plumb_load::payload;
use plumb_wire::web::{self, ndt7, nq};

use super::activity::Activity;
use super::body::{Answer, Large, NotTaken, drain};
use super::loads::{Loads, NotNow};
use super::state::Counters;
use crate::gate::Gate;

/// A body of more than this is heavy, in bytes: more than a request and its answer, and no test of a rate.
const LIGHT_BYTES: u64 = 1000;

/// Bytes that a body hands over at once: what TLS makes several full records of.
const PAYLOAD_BYTES: usize = 128 * 1024;

/// The longest body: four times a test of networkQuality, and a slow client does not keep others out for longer.
const LONGEST: Duration = Duration::from_secs(120);

/// When to come again, where nobody knows.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) gate: Gate,
    pub(super) loads: Loads,
    pub(super) counters: Arc<Counters>,
    pub(super) payload: Bytes,
}

/// The client of a connection.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) activity: Arc<Activity>,
    pub(super) peer: IpAddr,
    pub(super) is_secure: bool,
}

type Answered = Response<Answer>;

impl Site {
    pub(super) fn new(gate: Gate) -> Arc<Self> {
        Arc::new(Self {
            gate,
            loads: Loads::default(),
            counters: Arc::default(),
            payload: Bytes::from_owner(payload(PAYLOAD_BYTES)),
        })
    }

    /// When a body that begins now ends at the latest.
    fn until(&self) -> Instant {
        Instant::now() + self.gate.longest().min(LONGEST)
    }

    /// Answers a request. A WebSocket of NDT7 is for the connection's thread, which finds what is asked for in the extensions.
    pub(super) async fn answer(
        self: Arc<Self>,
        client: Client,
        request: Request<Incoming>,
    ) -> Result<Answered, Infallible> {
        self.counters.request();
        let answering = client.activity.answering();
        let answer = self.route(&client, request).await;
        Ok(answer.map(|body| body.to(answering)))
    }

    async fn route(&self, client: &Client, request: Request<Incoming>) -> Answered {
        if !self.gate.answers(client.peer) {
            self.counters.refusal();
            let why = crate::gate::Denied::Policy.to_string();
            return document(StatusCode::FORBIDDEN, TEXT, why + "\n");
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        match (request.uri().path(), reads) {
            ("/", true) => {
                let page = self.counters.page(self.gate.standing());
                document(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            ("/metrics", true) => {
                let text = self.counters.prometheus(self.gate.standing());
                document(StatusCode::OK, "text/plain; version=0.0.4", text)
            }
            (nq::PATH, true) => configuration(client, &request),
            (web::DOWN, true) => self.download(client, &request),
            (web::UP, false) if matches!(*request.method(), Method::POST | Method::PUT) => {
                self.upload(client, request).await
            }
            (ndt7::DOWNLOAD, true) => self.websocket(client, &request, ndt7::Test::Download),
            (ndt7::UPLOAD, true) => self.websocket(client, &request, ndt7::Test::Upload),
            ("/" | "/metrics" | nq::PATH | web::DOWN | web::UP, _) => document(
                StatusCode::METHOD_NOT_ALLOWED,
                TEXT,
                "this path takes another method\n",
            ),
            _ => document(
                StatusCode::NOT_FOUND,
                TEXT,
                "there is nothing at this path\n",
            ),
        }
    }

    fn download(&self, client: &Client, request: &Request<Incoming>) -> Answered {
        let Some(bytes) = web::bytes_asked(request.uri().query().unwrap_or_default()) else {
            return document(
                StatusCode::BAD_REQUEST,
                TEXT,
                "say how many bytes: /__down?bytes=1000000\n",
            );
        };
        let is_heavy = bytes > LIGHT_BYTES && request.method() != Method::HEAD;
        let test = is_heavy.then(|| self.loads.join(&self.gate, client.peer));
        match test.transpose() {
            Ok(test) => with_type(
                Response::new(Answer::large(Large {
                    left: bytes,
                    payload: self.payload.clone(),
                    until: self.until(),
                    test,
                    counters: Arc::clone(&self.counters),
                })),
                "application/octet-stream",
            ),
            Err(why) => self.refuse(&why),
        }
    }

    async fn upload(&self, client: &Client, request: Request<Incoming>) -> Answered {
        let join = || self.loads.join(&self.gate, client.peer);
        let body = request.into_body();
        match drain(body, self.until(), LIGHT_BYTES, join, &self.counters).await {
            Ok(bytes) => document(StatusCode::OK, TEXT, format!("{bytes} bytes\n")),
            Err(NotTaken::NotNow(why)) => self.refuse(&why),
            Err(why) => document(StatusCode::PAYLOAD_TOO_LARGE, TEXT, format!("{why}\n")),
        }
    }

    /// Agrees to a WebSocket (RFC 6455, section 4.2.2).
    fn websocket(
        &self,
        client: &Client,
        request: &Request<Incoming>,
        asked: ndt7::Test,
    ) -> Answered {
        let field = |name| request.headers().get(name).map(HeaderValue::as_bytes);
        let names = |name, wanted: &str| {
            let text = field(name).and_then(|value| std::str::from_utf8(value).ok());
            let mut words = text.unwrap_or_default().split(',');
            words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
        };
        let key = field(header::SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
        let asks = names(header::UPGRADE, "websocket") && names(header::CONNECTION, "upgrade");
        let Some(key) = key.filter(|_| asks) else {
            let why = "this path is for NDT7's clients, over a WebSocket\n";
            return document(StatusCode::UPGRADE_REQUIRED, TEXT, why);
        };
        if !names(header::SEC_WEBSOCKET_PROTOCOL, ndt7::SUBPROTOCOL) {
            let why = format!("the subprotocol must be {}\n", ndt7::SUBPROTOCOL);
            return document(StatusCode::BAD_REQUEST, TEXT, why);
        }
        let test = match self.loads.join(&self.gate, client.peer) {
            Ok(test) => test,
            Err(why) => return self.refuse(&why),
        };
        let accepted = tungstenite::handshake::derive_accept_key(key);
        let Ok(accepted) = HeaderValue::from_str(&accepted) else {
            return document(StatusCode::BAD_REQUEST, TEXT, "the key is none\n");
        };
        let mut answer = Response::new(Answer::of(""));
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let fields = answer.headers_mut();
        fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        fields.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        fields.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
        let protocol = HeaderValue::from_static(ndt7::SUBPROTOCOL);
        fields.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        answer.extensions_mut().insert((asked, test));
        answer
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
            let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
            answer
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// networkQuality's document, for the name by which the client has come.
fn configuration(client: &Client, request: &Request<Incoming>) -> Answered {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let Some(authority) = authority.or(host) else {
        return document(StatusCode::BAD_REQUEST, TEXT, "the request names no host\n");
    };
    let scheme = if client.is_secure { "https" } else { "http" };
    let json = nq::Configuration::json(scheme, authority);
    document(StatusCode::OK, "application/json", json)
}

fn document(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answered {
    let mut answer = with_type(Response::new(Answer::of(text)), kind);
    *answer.status_mut() = status;
    answer
}

fn with_type(mut answer: Answered, kind: &'static str) -> Answered {
    let fields = answer.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}
