//! What is looked up, connected to and asked for when, and what comes of it: everything of a page load but sockets and the
//! clock. Bytes, times and what became of its wishes come in; bytes and wishes go out.
//!
//! A browser is followed where it matters to the network: objects are asked for as soon as the bytes that name them have
//! come, in that order; HTTP/2 has one connection an origin and HTTP/1.1 up to six; where it is not known which a server
//! speaks, the first connection says it before others are opened.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use plumb_model::results::page_load::{HttpVersion, ObjectKind};
use plumb_wire::http_client::{Event, HttpError, Request};
use plumb_wire::http_head::Head;
use plumb_wire::page::{Found, css};
use plumb_wire::url::{Origin, Scheme, Url, UrlError};

use super::address_space::{AddressSpace, is_blocked};
use super::cache_fields::cache_fields;
use super::object::{Object, Scanner};
use super::origin::{Client, Connection, Established, Lookup, Server, Span, State};
use super::plan::{Limits, Objects, PagePlan};

/// How often an object is asked for at most, connections left aside that the server closed after other answers: it may
/// refuse a request, or all that follow, once and by bad luck twice.
const MAX_ATTEMPTS: u32 = 3;

/// What the loader wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The name of a server looked up: [`Loader::resolved`].
    Resolve { server: usize },
    /// A connection: [`Loader::established`] or [`Loader::not_established`].
    Connect { connection: usize },
    /// A connection closed that is of no more use.
    Close { connection: usize },
}

/// Why something is not fetched that a page names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    Objects,
    Origins,
    Port,
    Url,
    Compressed,
}

#[derive(Debug)]
pub(crate) struct Loader {
    pub(super) begun_ns: u64,
    pub(super) limits: Limits,
    pub(super) wanted: Objects,
    pub(super) gzip: bool,
    version: Option<HttpVersion>,
    pub(super) servers: Vec<Server>,
    pub(super) connections: Vec<Connection>,
    pub(super) objects: Vec<Object>,
    /// The one that is the page, after its redirects so far.
    pub(super) page: usize,
    /// What references on the page are relative to, where it says so itself.
    base: Option<Url>,
    known: BTreeSet<Url>,
    /// How public the server is that the user named.
    space: Option<AddressSpace>,
    pub(super) left: BTreeMap<Left, u64>,
    came_bytes: u64,
    actions: VecDeque<Action>,
}

impl Loader {
    pub(crate) fn new(plan: &PagePlan, begun_ns: u64) -> Self {
        let mut loader = Self {
            begun_ns,
            limits: plan.limits,
            wanted: plan.objects.clone(),
            // What is compressed cannot be searched.
            gzip: plan.gzip && plan.objects != Objects::Found,
            version: plan.version,
            servers: Vec::new(),
            connections: Vec::new(),
            objects: Vec::new(),
            page: 0,
            base: None,
            known: BTreeSet::new(),
            space: None,
            left: BTreeMap::new(),
            came_bytes: 0,
            actions: VecDeque::new(),
        };
        loader.known.insert(plan.url.clone());
        let server = loader.server_of(&plan.url.origin);
        let page = Object::new(plan.url.clone(), ObjectKind::Page, server, begun_ns);
        loader.enqueue(page);
        loader.dispatch();
        loader
    }

    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether nothing more is expected.
    pub(crate) fn is_done(&self) -> bool {
        self.objects.iter().all(|object| object.over)
    }

    /// The server of an [`Action::Resolve`].
    pub(crate) fn origin(&self, server: usize) -> Option<&Origin> {
        self.servers.get(server).map(|server| &server.origin)
    }

    /// Where a connection is to lead, by its addresses in the order of preference.
    pub(crate) fn addresses(&self, connection: usize) -> Option<(&Origin, &[SocketAddr])> {
        let server = self.servers.get(self.connections.get(connection)?.server)?;
        match &server.lookup {
            Lookup::Known(addresses) => Some((&server.origin, addresses)),
            _ => None,
        }
    }

    /// What has been found for the name of a server.
    pub(crate) fn resolved(
        &mut self,
        server: usize,
        found: Result<Vec<SocketAddr>, String>,
        span: Span,
    ) {
        if let Some(known) = self.servers.get_mut(server) {
            known.dns = Some(span);
        }
        match found {
            Ok(addresses) => self.located(server, addresses),
            Err(why) => self.unreachable(server, &format!("its name was not found ({why})")),
        }
        self.dispatch();
    }

    pub(crate) fn established(&mut self, number: usize, established: Established) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        if let Some(server) = self.servers.get_mut(connection.server) {
            server.version = Some(established.version);
        }
        let space = AddressSpace::of(established.address.ip());
        self.space.get_or_insert(space);
        connection.state = State::Open(Client::new(established.version));
        connection.established = Some(established);
        self.dispatch();
    }

    pub(crate) fn not_established(&mut self, number: usize, why: &str) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        connection.state = State::Closed;
        let server = connection.server;
        match self.live(Some(server)) {
            0 => self.unreachable(server, why),
            // As many as it takes.
            live => {
                if let Some(server) = self.servers.get_mut(server) {
                    server.max_connections = live;
                }
            }
        }
        self.dispatch();
    }

    /// What is to be sent on a connection.
    pub(crate) fn take_output(&mut self, connection: usize) -> Vec<u8> {
        match self.connections.get_mut(connection).map(|c| &mut c.state) {
            Some(State::Open(client)) => client.take_output(),
            _ => Vec::new(),
        }
    }

    /// All of that has been handed to the kernel.
    pub(crate) fn sent(&mut self, connection: usize, at_ns: u64) {
        let Some(connection) = self.connections.get_mut(connection) else {
            return;
        };
        for object in connection.unsent.drain(..) {
            if let Some(object) = self.objects.get_mut(object) {
                object.sent_ns = Some(at_ns);
            }
        }
    }

    /// What has come on a connection.
    pub(crate) fn received(&mut self, number: usize, bytes: &[u8], at_ns: u64) {
        self.came_bytes += bytes.len() as u64;
        if self.came_bytes > self.limits.bytes {
            let most = self.limits.bytes;
            self.give_up(&format!("more than {most} bytes came"));
            return;
        }
        let Some(State::Open(client)) = self.connections.get_mut(number).map(|c| &mut c.state)
        else {
            return;
        };
        let mut events = Vec::new();
        let received = client.receive(bytes, &mut events);
        for event in events {
            self.event(number, event, at_ns);
        }
        if let Err(error) = received {
            self.broken(number, &error.to_string());
        }
        self.close_finished(number);
        self.dispatch();
    }

    /// A connection has ended, for that reason where it is known.
    pub(crate) fn ended(&mut self, number: usize, why: Option<&str>, at_ns: u64) {
        let Some(State::Open(client)) = self.connections.get_mut(number).map(|c| &mut c.state)
        else {
            return;
        };
        let mut events = Vec::new();
        client.end(&mut events);
        for event in events {
            let event = match (event, why) {
                (
                    Event::Failed {
                        stream,
                        again: false,
                        ..
                    },
                    Some(why),
                ) => {
                    self.lost(number, stream, why);
                    continue;
                }
                (event, _) => event,
            };
            self.event(number, event, at_ns);
        }
        if let Some(connection) = self.connections.get_mut(number) {
            connection.state = State::Closed;
        }
        self.dispatch();
    }

    /// Nothing more is waited for.
    pub(crate) fn give_up(&mut self, why: &str) {
        for object in self.objects.iter_mut().filter(|object| !object.over) {
            object.error = Some(why.to_owned());
            object.over = true;
        }
        for server in &mut self.servers {
            server.waiting.clear();
        }
    }

    fn event(&mut self, number: usize, event: Event, at_ns: u64) {
        let (Event::Began { stream }
        | Event::Head { stream, .. }
        | Event::Data { stream, .. }
        | Event::End { stream }
        | Event::Failed { stream, .. }) = event;
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        let Some(&at) = connection.streams.get(&stream) else {
            return;
        };
        let Some(object) = self.objects.get_mut(at) else {
            return;
        };
        match event {
            Event::Began { .. } => object.first_byte_ns = Some(at_ns),
            Event::Head { head, .. } => self.head(at, &head, at_ns),
            Event::Data { bytes, .. } => {
                object.bytes += bytes.len() as u64;
                connection.carried_bytes += bytes.len() as u64;
                for found in object.scanner.push(&bytes) {
                    self.found(at, found, at_ns);
                }
            }
            Event::End { .. } => {
                connection.streams.remove(&stream);
                connection.answers += 1;
                object.end_ns = Some(at_ns);
                object.over = true;
                if let Some(status) = object.status.filter(|status| *status >= 400) {
                    object.error = Some(format!("HTTP status {status}"));
                }
                if at == self.page
                    && let Objects::Listed(listed) = &self.wanted
                {
                    for url in listed.clone() {
                        self.add(url, ObjectKind::Listed, at, at_ns);
                    }
                }
            }
            Event::Failed { again, error, .. } => {
                connection.streams.remove(&stream);
                // A server may close a connection just when it is used again. Each such connection has answered
                // something before, so that the retries come to an end.
                if error == HttpError::CutShort && connection.answers > 0 {
                    object.attempts = object.attempts.saturating_sub(1);
                }
                if again && object.attempts < MAX_ATTEMPTS && !object.over {
                    object.reset();
                    if let Some(server) = self.servers.get_mut(object.server) {
                        server.waiting.push_front(at);
                    }
                } else {
                    object.fail(&error.to_string());
                }
            }
        }
    }

    /// The request of a stream is lost with its connection.
    fn lost(&mut self, connection: usize, stream: u32, why: &str) {
        let streams = self.connections.get_mut(connection).map(|c| &mut c.streams);
        let object = streams.and_then(|streams| streams.remove(&stream));
        if let Some(object) = object.and_then(|at| self.objects.get_mut(at)) {
            object.fail(&format!(
                "the connection ended before the answer was complete ({why})"
            ));
        }
    }

    /// The server cannot be understood.
    fn broken(&mut self, number: usize, why: &str) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        connection.state = State::Closed;
        self.actions.push_back(Action::Close { connection: number });
        for at in std::mem::take(&mut connection.streams).into_values() {
            if let Some(object) = self.objects.get_mut(at) {
                object.fail(why);
            }
        }
    }

    fn close_finished(&mut self, number: usize) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        let finished = matches!(&connection.state, State::Open(client) if client.is_closed());
        if finished && connection.streams.is_empty() {
            connection.state = State::Closed;
            self.actions.push_back(Action::Close { connection: number });
        }
    }

    fn head(&mut self, at: usize, head: &Head, at_ns: u64) {
        let Some(object) = self.objects.get_mut(at) else {
            return;
        };
        object.status = Some(head.status);
        object.cache_fields = cache_fields(head);
        // RFC 9110, section 15.4.
        let leads = matches!(head.status, 301 | 302 | 303 | 307 | 308);
        if let Some(location) = head.field("location").filter(|_| leads) {
            object.redirected = true;
            if let Err(why) = self.redirect(at, location, at_ns)
                && let Some(object) = self.objects.get_mut(at)
            {
                object.error = Some(why);
            }
            return;
        }
        if self.wanted != Objects::Found || !(200..300).contains(&head.status) {
            return;
        }
        let media = head
            .field("content-type")
            .unwrap_or("text/html")
            .to_ascii_lowercase();
        let is_html = media.starts_with("text/html") || media.starts_with("application/xhtml+xml");
        let scanner = match object.kind {
            ObjectKind::Page if is_html => Scanner::Html(Box::default()),
            ObjectKind::Style if object.depth == 0 => Scanner::Css(css::Scanner::default()),
            _ => return,
        };
        let coding = head.field("content-encoding").unwrap_or("identity");
        match coding.eq_ignore_ascii_case("identity") {
            true => object.scanner = scanner,
            false => self.leave(Left::Compressed),
        }
    }

    /// Follows a redirect, or says why not.
    fn redirect(&mut self, at: usize, location: &str, at_ns: u64) -> Result<(), String> {
        let from = self.objects.get(at).ok_or_else(String::new)?;
        if from.redirects >= self.limits.redirects {
            return Err(format!("more than {} redirects", self.limits.redirects));
        }
        let url = from.url.join(location);
        let url = url.map_err(|why| format!("it leads to what is not fetched: {why}"))?;
        if is_blocked(url.origin.port) {
            return Err(format!(
                "it leads to port {}, which is no web server's",
                url.origin.port
            ));
        }
        if self.is_full(&url.origin).is_some() {
            return Err("it leads to one object more than are fetched".to_owned());
        }
        let mut to = Object::new(url, from.kind, 0, at_ns);
        (to.found_in, to.redirects, to.depth) = (Some(at), from.redirects + 1, from.depth);
        to.server = self.server_of(&to.url.origin);
        self.known.insert(to.url.clone());
        let to = self.enqueue(to);
        if at == self.page {
            self.page = to;
        }
        Ok(())
    }

    fn found(&mut self, at: usize, found: Found, at_ns: u64) {
        let Some(object) = self.objects.get(at) else {
            return;
        };
        let base = self.base.as_ref().filter(|_| at == self.page);
        let url = match &found {
            Found::Base(href) => {
                // The first counts (WHATWG HTML, "the base element").
                let own = object.url.join(href).ok();
                self.base = self.base.take().or(own);
                return;
            }
            Found::Object { reference, .. } => base.unwrap_or(&object.url).join(reference),
        };
        match (url, found) {
            (Ok(url), Found::Object { kind, .. }) => self.add(url, kind, at, at_ns),
            // Data within the page, and what is no request.
            (Err(UrlError::Scheme(_)), _) => {}
            _ => self.leave(Left::Url),
        }
    }

    /// An object that another one names, if it is to be fetched and not known yet.
    fn add(&mut self, url: Url, kind: ObjectKind, found_in: usize, at_ns: u64) {
        if self.known.contains(&url) {
            return;
        }
        let blocked = is_blocked(url.origin.port).then_some(Left::Port);
        if let Some(why) = blocked.or(self.is_full(&url.origin)) {
            self.leave(why);
            return;
        }
        self.known.insert(url.clone());
        let server = self.server_of(&url.origin);
        // The user named it.
        if kind == ObjectKind::Listed
            && let Some(server) = self.servers.get_mut(server)
        {
            server.chosen = true;
        }
        let mut object = Object::new(url, kind, server, at_ns);
        object.found_in = Some(found_in);
        let inside = self
            .objects
            .get(found_in)
            .filter(|o| o.kind == ObjectKind::Style);
        object.depth = inside.map_or(0, |style| style.depth + 1);
        self.enqueue(object);
    }

    fn leave(&mut self, why: Left) {
        *self.left.entry(why).or_default() += 1;
    }

    fn is_full(&self, origin: &Origin) -> Option<Left> {
        let new = self.servers.iter().all(|server| server.origin != *origin);
        match () {
            () if self.objects.len() >= self.limits.objects => Some(Left::Objects),
            () if new && self.servers.len() >= self.limits.origins => Some(Left::Origins),
            () => None,
        }
    }

    fn enqueue(&mut self, object: Object) -> usize {
        let at = self.objects.len();
        if let Some(server) = self.servers.get_mut(object.server) {
            server.waiting.push_back(at);
        }
        self.objects.push(object);
        at
    }

    /// The number of a server, which becomes known by that.
    fn server_of(&mut self, origin: &Origin) -> usize {
        let mut known = self.servers.iter();
        if let Some(at) = known.position(|server| server.origin == *origin) {
            return at;
        }
        // Without TLS nothing says what a server speaks; HTTP/2 is then spoken where the user knows that it is.
        let version = match origin.scheme {
            Scheme::Http => Some(self.version.unwrap_or(HttpVersion::Http1)),
            Scheme::Https => self.version,
        };
        self.servers.push(Server {
            origin: origin.clone(),
            lookup: Lookup::Unknown,
            dns: None,
            version,
            waiting: VecDeque::new(),
            max_connections: self.limits.connections_per_origin.max(1),
            chosen: self.servers.is_empty(),
            error: None,
        });
        self.servers.len() - 1
    }

    /// A server's addresses are known, of which those count that its page may lead to.
    fn located(&mut self, number: usize, addresses: Vec<SocketAddr>) {
        let Some(server) = self.servers.get_mut(number) else {
            return;
        };
        let space = self.space.filter(|_| !server.chosen);
        let allowed = |address: &SocketAddr| {
            space.is_none_or(|space| AddressSpace::of(address.ip()) <= space)
        };
        let (allowed, refused): (Vec<_>, Vec<_>) = addresses.into_iter().partition(allowed);
        server.lookup = Lookup::Known(allowed.clone());
        match (allowed.is_empty(), refused.first()) {
            (false, _) => {}
            (true, None) => {
                self.unreachable(number, "its name has no address of that version of IP")
            }
            (true, Some(address)) => {
                let why = format!(
                    "{} is an address of a network that the page's server is not in: pages do not lead there",
                    address.ip()
                );
                self.unreachable(number, &why);
            }
        }
    }

    fn unreachable(&mut self, server: usize, why: &str) {
        let Some(server) = self.servers.get_mut(server) else {
            return;
        };
        server.lookup = Lookup::Failed;
        server.error = Some(why.to_owned());
    }

    /// Connections that stand or are being made, to a server or to all.
    pub(super) fn live(&self, server: Option<usize>) -> usize {
        let live = self.connections.iter().filter(|connection| {
            server.is_none_or(|server| connection.server == server)
                && !matches!(connection.state, State::Closed)
        });
        live.count()
    }

    /// Brings waiting objects on their way.
    fn dispatch(&mut self) {
        for number in 0..self.servers.len() {
            let Some(server) = self.servers.get_mut(number) else {
                continue;
            };
            if server.waiting.is_empty() {
                continue;
            }
            if server.lookup == Lookup::Unknown {
                let host = &server.origin.host;
                match host.parse::<IpAddr>() {
                    Ok(address) => {
                        let address = SocketAddr::new(address, server.origin.port);
                        self.located(number, vec![address]);
                    }
                    Err(_) => {
                        server.lookup = Lookup::UnderWay;
                        self.actions.push_back(Action::Resolve { server: number });
                    }
                }
            }
            match self.servers.get(number).map(|server| &server.lookup) {
                Some(Lookup::Known(_)) => {
                    self.ask(number);
                    self.open(number);
                }
                Some(Lookup::Failed) => self.fail_waiting(number),
                _ => {}
            }
        }
    }

    fn fail_waiting(&mut self, number: usize) {
        let Some(server) = self.servers.get_mut(number) else {
            return;
        };
        for at in server.waiting.drain(..) {
            if let Some(object) = self.objects.get_mut(at) {
                object.fail(server.error.as_deref().unwrap_or_default());
            }
        }
    }

    /// Asks for what waits on connections that take requests.
    fn ask(&mut self, number: usize) {
        let Some(server) = self.servers.get_mut(number) else {
            return;
        };
        for (connection, at_connection) in self.connections.iter_mut().zip(0..) {
            let State::Open(client) = &mut connection.state else {
                continue;
            };
            if connection.server != number {
                continue;
            }
            while client.can_request()
                && let Some(at) = server.waiting.pop_front()
            {
                let Some(object) = self.objects.get_mut(at) else {
                    continue;
                };
                let request = Request {
                    url: object.url.clone(),
                    gzip: self.gzip,
                };
                let Some(stream) = client.request(&request) else {
                    server.waiting.push_front(at);
                    break;
                };
                connection.streams.insert(stream, at);
                connection.unsent.push(at);
                object.connection = Some(at_connection);
                object.reused = connection.requests > 0;
                object.carried_bytes = connection.carried_bytes;
                object.attempts += 1;
                connection.requests += 1;
            }
        }
    }

    /// Opens connections for what still waits.
    fn open(&mut self, number: usize) {
        loop {
            let Some(server) = self.servers.get(number) else {
                return;
            };
            let connecting = self.connections.iter().filter(|connection| {
                connection.server == number && matches!(connection.state, State::Connecting)
            });
            let connecting = connecting.count();
            let most = match server.version {
                Some(HttpVersion::Http1) => server.max_connections,
                // One is enough for HTTP/2, and to see what the server speaks.
                _ => 1,
            };
            if connecting >= server.waiting.len() || self.live(Some(number)) >= most {
                return;
            }
            if self.live(None) >= self.limits.connections && !self.close_idle() {
                return;
            }
            let connection = self.connections.len();
            self.connections.push(Connection {
                server: number,
                state: State::Connecting,
                established: None,
                requests: 0,
                answers: 0,
                streams: BTreeMap::new(),
                unsent: Vec::new(),
                carried_bytes: 0,
            });
            self.actions.push_back(Action::Connect { connection });
        }
    }

    /// Closes a connection on which nothing happens, for another one's sake; false where there is none.
    fn close_idle(&mut self) -> bool {
        let mut idle = self
            .connections
            .iter_mut()
            .zip(0..)
            .filter(|(connection, _)| {
                matches!(connection.state, State::Open(_)) && connection.streams.is_empty()
            });
        let Some((connection, number)) = idle.next() else {
            return false;
        };
        connection.state = State::Closed;
        self.actions.push_back(Action::Close { connection: number });
        true
    }
}

#[cfg(test)]
mod tests;
