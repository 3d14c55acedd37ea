//! What the tests over loopback share: a responder in this process, and a client by hand that
//! does what no good client does.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_load::frames::{read_frame, write_frame};
use plumb_load::{Client, ClientError, PhaseOutcome, PhasePlan};
use plumb_serve::{Config, ServeError, Server};
use plumb_wire::native::control::flow::udp::UdpFlow;
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};
use plumb_wire::native::control::frame::{Preamble, Role};
use plumb_wire::native::control::{ClientMessage, ServerMessage, Start, Token};
use plumb_wire::native::spec;

/// Time to connect and be greeted, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(3);

static LOAD: Mutex<()> = Mutex::new(());

/// Tests that load the machine or watch times run one after the other.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    LOAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A responder on a free port, until it is dropped.
pub struct Responder {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Responder {
    pub fn start() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        let listen = vec!["[::]:0".parse().unwrap()];
        let server = Server::bind(Config { listen, ..config }).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], server.addresses()[0].port()));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.run(&stopped)));
        Self {
            address,
            stop,
            thread,
        }
    }

    pub fn client(&self) -> Client {
        Client::connect("box", self.address, TIMEOUT).unwrap()
    }

    /// Stops it and tells how long that took.
    pub fn stop(&mut self) -> Duration {
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

pub fn flows(down: u32, up: u32, tcp: TcpFlow) -> Vec<Flows> {
    vec![
        Flows::tcp(down, Role::Down, tcp.clone()),
        Flows::tcp(up, Role::Up, tcp),
    ]
}

pub fn plan(down_streams: u32, up_streams: u32, ms: u64) -> PhasePlan {
    PhasePlan {
        flows: flows(down_streams, up_streams, TcpFlow::default()),
        duration: Duration::from_millis(ms),
        byte_limit: None,
        until_steady: false,
        from: None,
        to: None,
    }
}

/// UDP streams each way.
pub fn udp_plan(down: u32, up: u32, flow: &UdpFlow, ms: u64) -> PhasePlan {
    let flows = [(down, Role::Down), (up, Role::Up)].map(|(count, role)| Flows {
        count,
        role,
        flow: Flow::Udp(flow.clone()),
    });
    PhasePlan {
        flows: flows.to_vec(),
        ..plan(0, 0, ms)
    }
}

pub fn run(client: &mut Client, plan: &PhasePlan) -> Result<PhaseOutcome, ClientError> {
    client.run_phase(plan, &|_| (), &AtomicBool::new(false))
}

/// A client by hand.
pub struct RawClient {
    pub control: TcpStream,
    responder: SocketAddr,
    source: [u8; 4],
    pub token: Token,
}

impl RawClient {
    /// Connects from a loopback address and greets.
    pub fn connect(responder: SocketAddr, source: [u8; 4]) -> Self {
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
        });
        let ServerMessage::Welcome(welcome) = client.receive() else {
            panic!("no welcome")
        };
        client.token = welcome.token;
        client
    }

    pub fn send(&self, message: &ClientMessage) {
        write_frame(
            &self.control,
            message,
            spec::MAX_CLIENT_FRAME_BYTES,
            Instant::now() + TIMEOUT,
        )
        .unwrap();
    }

    pub fn receive(&self) -> ServerMessage {
        read_frame(
            &self.control,
            spec::MAX_SERVER_FRAME_BYTES,
            Instant::now() + TIMEOUT,
        )
        .unwrap()
    }

    /// Starts a phase of one stream down and gives its socket.
    pub fn start_download(&self, duration_s: f64) -> TcpStream {
        self.start(flows(1, 0, TcpFlow::default()), duration_s)
    }

    /// Starts phase 1, which has one stream, and gives its socket.
    pub fn start(&self, flows: Vec<Flows>, duration_s: f64) -> TcpStream {
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
    pub fn attach(&self, phase: u32, stream: u32, role: Role) -> TcpStream {
        let data = connect_from(self.responder, self.source);
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

fn connect_from(responder: SocketAddr, source: [u8; 4]) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect_timeout(&responder.into(), TIMEOUT).unwrap();
    socket.into()
}
