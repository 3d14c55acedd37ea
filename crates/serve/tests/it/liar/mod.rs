//! A responder that keeps to the protocol on its control connections, and does with each data
//! connection what a test wants.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use plumb_load::frames::{read_body, write_frame};
use plumb_model::run::HostFacts;
use plumb_wire::native::control::frame::{Opening, opening};
use plumb_wire::native::control::report::ReportTail;
use plumb_wire::native::control::{
    ClientMessage, Fingerprint, Limits, ServerMessage, Token, Welcome,
};
use plumb_wire::native::spec;

use super::common::TIMEOUT;

/// It ends with the test's process.
pub(crate) struct Liar {
    pub(crate) address: SocketAddr,
}

impl Liar {
    /// `with_data` gets every data connection after its preamble, in a thread of its own.
    pub(crate) fn start(with_data: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::that_says(honest, with_data)
    }

    /// The same with another way to answer on its control connections.
    pub(crate) fn that_says(
        says: Says,
        with_data: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let with_data = Arc::new(with_data);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let with_data = Arc::clone(&with_data);
                std::thread::spawn(move || {
                    let mut socket = socket;
                    let mut first = [0; spec::FRAME_HEADER_BYTES];
                    socket.read_exact(&mut first).unwrap();
                    match opening(first).unwrap() {
                        Opening::Control(length) => control(&socket, length, says),
                        Opening::Data => {
                            socket
                                .read_exact(
                                    &mut [0; spec::PREAMBLE_BYTES - spec::FRAME_HEADER_BYTES],
                                )
                                .unwrap();
                            with_data(socket);
                        }
                        // Nobody asks a liar for silence.
                        Opening::Silent => {}
                    }
                });
            }
        });
        Self { address }
    }
}

fn control(mut socket: &TcpStream, mut length: usize, says: Says) {
    loop {
        let Ok(message) = read_body(socket, length, Instant::now() + TIMEOUT) else {
            return;
        };
        for answer in says(message) {
            let deadline = Instant::now() + TIMEOUT;
            // The client may have gone.
            if write_frame(socket, &answer, spec::MAX_SERVER_FRAME_BYTES, deadline).is_err() {
                return;
            }
        }
        let _ = socket.flush();
        let mut header = [0; spec::FRAME_HEADER_BYTES];
        if socket.read_exact(&mut header).is_err() {
            return;
        }
        length = u32::from_be_bytes(header) as usize;
    }
}

/// What is answered to a message.
pub(crate) type Says = fn(ClientMessage) -> Vec<ServerMessage>;

/// What a responder says that has nothing to report.
pub(crate) fn honest(message: ClientMessage) -> Vec<ServerMessage> {
    match message {
        ClientMessage::Hello { .. } => vec![ServerMessage::Welcome(Box::new(Welcome {
            token: Token([7; 16]),
            limits: Limits {
                max_duration_s: 100.0,
                max_streams: 100,
            },
            host: HostFacts::default(),
            udp_port: None,
            certificate: Fingerprint([7; 32]),
        }))],
        // It does not wait for the data connections.
        ClientMessage::Start(start) => vec![
            ServerMessage::Ready { phase: start.phase },
            ServerMessage::Started { phase: start.phase },
        ],
        ClientMessage::Stop { phase } => vec![ServerMessage::Result {
            phase,
            report: Box::new(ReportTail {
                senders: Vec::new(),
                receivers: Vec::new(),
                elapsed_s: 1.0,
                cpu_s: 0.0,
                notes: Vec::new(),
            }),
        }],
        ClientMessage::Trace(_) => Vec::new(),
        ClientMessage::Proof { .. } => Vec::new(),
        ClientMessage::Ping { id } => vec![ServerMessage::Pong { id }],
    }
}
