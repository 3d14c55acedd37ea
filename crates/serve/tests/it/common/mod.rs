//! What the tests over loopback share: a responder in this process, and a client by hand that
//! does what no good client does.

pub(crate) mod http2;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_load::frames::{read_frame, write_frame};
use plumb_load::{Client, ClientError, PhaseOutcome, PhasePlan};
use plumb_model::direction::OneDirection;
use plumb_serve::{Config, Entry, Listening, ServeError, Server, Wanted, protocols};
use plumb_wire::native::control::flow::udp::UdpFlow;
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::{ClientMessage, ServerMessage, Start, Token};
use plumb_wire::native::spec;

/// Time to connect and be greeted, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// As many tests that load the machine go on at once: one after the other they took 57 s of processors in 131 s.
const TURNS: usize = 4;

static FREE: Mutex<usize> = Mutex::new(TURNS);
static GIVEN_BACK: Condvar = Condvar::new();

/// A turn on the machine, until it is dropped.
pub(crate) struct Turn(usize);

impl Turn {
    fn take(turns: usize) -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let free = GIVEN_BACK.wait_while(free, |free| *free < turns);
        *free.unwrap_or_else(PoisonError::into_inner) -= turns;
        Self(turns)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        GIVEN_BACK.notify_all();
    }
}

/// Tests that load the machine, or watch times to a tenth of a second, wait for their turn.
pub(crate) fn in_turn() -> Turn {
    Turn::take(1)
}

/// Tests that count threads or packets of a schedule, or compare a good client with itself, have the machine to themselves.
pub(crate) fn alone() -> Turn {
    Turn::take(TURNS)
}

/// STAMP on that port.
pub(crate) fn stamp_at(port: u16, is_required: bool) -> Wanted {
    Wanted {
        entry: protocols::named("stamp").unwrap(),
        port,
        is_required,
    }
}

/// Where STAMP is answered, if it is.
pub(crate) fn stamp_port(server: &Server) -> Option<u16> {
    port_of(&server.listening(), "stamp")
}

fn port_of(listening: &[(&Entry, Listening)], name: &str) -> Option<u16> {
    let (_, at) = listening.iter().find(|(entry, _)| entry.name == name)?;
    Some(at.address.port())
}

/// A responder on a free port, until it is dropped.
pub(crate) struct Responder {
    pub(crate) address: SocketAddr,
    pub(crate) stamp_port: Option<u16>,
    listening: Vec<(&'static Entry, Listening)>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Responder {
    pub(crate) fn start() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let listen = vec!["[::]:0".parse().unwrap()];
        let server = Server::bind(Config { listen, ..config }).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], server.addresses()[0].port()));
        let stamp_port = stamp_port(&server);
        let listening = server.listening();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.run(&stopped)));
        Self {
            address,
            listening,
            stamp_port,
            stop,
            thread,
        }
    }

    /// Where a protocol of that name is spoken, if it is.
    pub(crate) fn port_of(&self, name: &str) -> Option<u16> {
        port_of(&self.listening, name)
    }

    /// Where all protocols of others listen.
    pub(crate) fn listening(&self) -> Vec<Listening> {
        self.listening.iter().map(|(_, at)| *at).collect()
    }

    /// Where each protocol of others is served.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, Listening)> + '_ {
        self.listening.iter().map(|(entry, at)| (entry.name, *at))
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect("box", self.address, TIMEOUT).unwrap()
    }

    /// Stops it and tells how long that took.
    pub(crate) fn stop(&mut self) -> Duration {
        let begun = Instant::now();
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
        begun.elapsed()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn flows(down: u32, up: u32, tcp: TcpFlow) -> Vec<Flows> {
    vec![
        Flows::tcp(down, OneDirection::Down, tcp.clone()),
        Flows::tcp(up, OneDirection::Up, tcp),
    ]
}

pub(crate) fn plan(down_streams: u32, up_streams: u32, ms: u64) -> PhasePlan {
    PhasePlan {
        flows: flows(down_streams, up_streams, TcpFlow::default()),
        duration: Duration::from_millis(ms),
        byte_limit: None,
        until_steady: false,
        from: None,
        to: None,
    }
}

/// What beside anything else goes on does no harm to it, in bit/s: the tests whose streams are paced so need no turn.
pub(crate) const PACED_BPS: u64 = 20_000_000;

/// The same at that rate for each stream.
pub(crate) fn paced_plan(down_streams: u32, up_streams: u32, ms: u64) -> PhasePlan {
    let paced = TcpFlow {
        pacing_bps: Some(PACED_BPS),
        ..TcpFlow::default()
    };
    PhasePlan {
        flows: flows(down_streams, up_streams, paced),
        ..plan(0, 0, ms)
    }
}

/// UDP streams each way.
pub(crate) fn udp_plan(down: u32, up: u32, flow: &UdpFlow, ms: u64) -> PhasePlan {
    let flows = [(down, OneDirection::Down), (up, OneDirection::Up)].map(|(count, role)| Flows {
        count,
        role,
        flow: Flow::Udp(flow.clone()),
    });
    PhasePlan {
        flows: flows.to_vec(),
        ..plan(0, 0, ms)
    }
}

pub(crate) fn run(client: &mut Client, plan: &PhasePlan) -> Result<PhaseOutcome, ClientError> {
    client.run_phase(plan, &|_| (), &AtomicBool::new(false))
}

/// A client by hand.
pub(crate) struct RawClient {
    pub(crate) control: TcpStream,
    responder: SocketAddr,
    source: IpAddr,
    pub(crate) token: Token,
}

impl RawClient {
    /// Connects from a loopback address and greets.
    pub(crate) fn connect(responder: SocketAddr, source: impl Into<IpAddr>) -> Self {
        Self::connect_in_turn(responder, source, None).unwrap()
    }

    /// The same for a client that waits so long for a place, and gives what it is told when it gets none.
    pub(crate) fn connect_in_turn(
        responder: SocketAddr,
        source: impl Into<IpAddr>,
        waits_s: Option<u32>,
    ) -> Result<Self, String> {
        let source = source.into();
        let control = connect_from(responder, source);
        let mut client = Self {
            control,
            responder,
            source,
            token: Token([0; 16]),
        };
        client.send(&ClientMessage::Hello {
            version: spec::VERSION,
            plumb: "by hand".into(),
            waits_s,
            unpacks: false,
        });
        match client.receive_in_turn() {
            ServerMessage::Welcome(welcome) => client.token = welcome.token,
            ServerMessage::Error { message, .. } => return Err(message),
            other => panic!("{other:?}"),
        }
        Ok(client)
    }

    /// The next message that is about this client, which shows that it is there meanwhile.
    pub(crate) fn receive_in_turn(&self) -> ServerMessage {
        loop {
            match self.receive() {
                ServerMessage::Queued { .. } if self.token != Token([0; 16]) => {
                    self.send(&ClientMessage::Ping { id: 0 });
                }
                ServerMessage::Queued { .. } | ServerMessage::Pong { .. } => (),
                message => return message,
            }
        }
    }

    pub(crate) fn send(&self, message: &ClientMessage) {
        write_frame(
            &self.control,
            message,
            spec::MAX_CLIENT_FRAME_BYTES,
            Instant::now() + TIMEOUT,
        )
        .unwrap();
    }

    /// Whether it could be sent.
    pub(crate) fn try_send(&self, message: &ClientMessage) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        write_frame(
            &self.control,
            message,
            spec::MAX_CLIENT_FRAME_BYTES,
            deadline,
        )
        .is_ok()
    }

    pub(crate) fn receive(&self) -> ServerMessage {
        self.try_receive().unwrap()
    }

    pub(crate) fn try_receive(&self) -> Option<ServerMessage> {
        // As patient as a client.
        let deadline = Instant::now() + spec::SILENCE_TIMEOUT;
        read_frame(&self.control, spec::MAX_SERVER_FRAME_BYTES, deadline).ok()
    }

    /// Starts a phase of one stream down and gives its socket.
    pub(crate) fn start_download(&self, duration_s: f64) -> TcpStream {
        self.start(flows(1, 0, TcpFlow::default()), duration_s)
    }

    /// Starts phase 1, which has one stream, and gives its socket.
    pub(crate) fn start(&self, flows: Vec<Flows>, duration_s: f64) -> TcpStream {
        let role = flows.iter().find(|flows| flows.count > 0).unwrap().role;
        self.send(&ClientMessage::Start(Start {
            phase: 1,
            flows,
            duration_s,
            byte_limit: None,
        }));
        assert_eq!(self.receive(), ServerMessage::Ready { phase: 1 });
        let data = self.attach(1, 0, role);
        assert_eq!(self.receive(), ServerMessage::Started { phase: 1 });
        data
    }

    /// Opens a data connection.
    pub(crate) fn attach(&self, phase: u32, stream: u32, role: OneDirection) -> TcpStream {
        self.attach_from(self.source, phase, stream, role)
    }

    /// The same from another address.
    pub(crate) fn attach_from(
        &self,
        source: impl Into<IpAddr>,
        phase: u32,
        stream: u32,
        role: OneDirection,
    ) -> TcpStream {
        let data = connect_from(self.responder, source);
        let preamble = Preamble {
            token: self.token,
            phase,
            stream,
            role,
            tls: false,
        };
        std::io::Write::write_all(&mut &data, &preamble.encode()).unwrap();
        data
    }
}

pub(crate) fn connect_from(responder: SocketAddr, source: impl Into<IpAddr>) -> TcpStream {
    let domain = socket2::Domain::for_address(responder);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None).unwrap();
    let from = SocketAddr::new(source.into(), 0);
    socket.bind(&from.into()).unwrap();
    socket.connect_timeout(&responder.into(), TIMEOUT).unwrap();
    socket.into()
}
