//! What happens over loopback when one end fails or means harm.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common::{RawClient, Responder, TIMEOUT, in_turn, paced_plan, plan, run};
use plumb_load::{Client, ClientError, EndedEarly, PhaseOutcome};
use plumb_serve::{Config, Server};
use plumb_wire::native::control::{ClientMessage, ErrorCode, Refusal, ServerMessage};
use plumb_wire::native::spec;

/// Ten times what it takes: an end that is silent is given up after 5 s.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// After this time a silent client is given up: longer than the silence that the responder allows.
const SILENT: Duration = spec::SILENCE_TIMEOUT.saturating_add(Duration::from_secs(1));

/// A responder in a process of its own, which can be killed or stopped.
struct Process {
    child: Child,
    address: SocketAddr,
}

/// Tells the process of a [`Process`] that it is one.
const RESPONDER: &str = "PLUMB_TEST_RESPONDER";

/// What a [`Process`] runs, until it is killed; in the tests' own process it does nothing.
#[test]
fn responder_process() {
    if std::env::var_os(RESPONDER).is_none() {
        return;
    }
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let server = Server::bind(Config {
        listen,
        ..Config::default()
    })
    .unwrap();
    println!("port {}", server.addresses()[0].port());
    server.run(&Arc::new(AtomicBool::new(false))).unwrap();
}

impl Process {
    fn start() -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()))
    }

    fn start_by(mut program: Command) -> Self {
        let mut child = program
            .args(["--exact", "failures::responder_process", "--nocapture"])
            .env(RESPONDER, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|l| l.split_once("port ")?.1.trim().parse().ok())
            .unwrap();
        Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id()))
            .unwrap()
            .count()
    }

    fn sockets(&self) -> usize {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let links = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        links
            .filter(|link| link.to_string_lossy().starts_with("socket:"))
            .count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a phase of 3 s while the responder gets a signal, and gives what is said of it and the
/// time from the signal to it. What was measured until then is kept.
fn lose(signal: &'static str) -> (String, Duration) {
    let process = Process::start();
    let mut client = Client::connect("box", process.address, TIMEOUT).unwrap();
    std::thread::scope(|scope| {
        let harmed = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            process.signal(signal);
            Instant::now()
        });
        // At full rate the kernel of a stopped program has its buffers full at once, and acknowledges nothing any more.
        let outcome = run(&mut client, &plan(1, 1, 3000)).unwrap();
        let after = harmed.join().unwrap().elapsed();
        (kept(outcome), after)
    })
}

/// Why the far end's record is missing; this end's is there.
fn kept(outcome: PhaseOutcome) -> String {
    assert_eq!(outcome.ended_early, Some(EndedEarly::FarEndLost));
    for direction in [outcome.down.unwrap(), outcome.up.unwrap()] {
        let result = direction.result;
        assert!(result.bytes > 0 && result.bps > 0.0, "{result:?}");
        assert_eq!((result.streams.len(), result.cpu.remote_ratio), (1, None));
        // Upwards it is what was acknowledged.
        let rates = &direction.series["bps"];
        assert!(rates.points().any(|(_, bps)| bps > 0.0), "{rates:?}");
    }
    outcome.lost.unwrap()
}

#[test]
fn a_killed_responder_is_noticed_at_once() {
    let _turn = in_turn();
    let (error, after) = lose("KILL");
    assert!(
        error.starts_with("box: lost the responder: the connection was closed"),
        "{error}"
    );
    assert!(after < Duration::from_secs(1), "{after:?}");
}

#[test]
fn a_silent_responder_is_given_up() {
    let _turn = in_turn();
    let (error, after) = lose("STOP");
    assert!(error.contains("said nothing for 5 s"), "{error}");
    assert!(
        (Duration::from_secs(4)..GIVEN_UP).contains(&after),
        "{after:?}"
    );
}

#[test]
fn a_responder_that_stops_says_so() {
    let _turn = in_turn();
    let mut responder = Responder::start();
    let mut client = responder.client();
    let (error, stopped) = std::thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            responder.stop()
        });
        (
            kept(run(&mut client, &plan(1, 1, 3000)).unwrap()),
            stopped.join().unwrap(),
        )
    });
    assert!(error.contains("shuts down"), "{error}");
    assert!(stopped < Duration::from_secs(1), "{stopped:?}");
}

#[test]
fn a_vanished_client_frees_its_place() {
    let process = Process::start();
    let mut client = Client::connect("box", process.address, TIMEOUT).unwrap();
    let (threads, sockets) = (process.threads(), process.sockets());

    // It holds its connections and says no more.
    let vanished = RawClient::connect(process.address, [127, 0, 0, 1]);
    let data = vanished.start_download(60.0);
    let silent_since = Instant::now();
    match run(&mut client, &paced_plan(1, 0, 100)) {
        Err(ClientError::PhaseRefused {
            reason: Refusal::Busy,
            ..
        }) => (),
        other => panic!("{other:?}"),
    }
    // The client's heartbeats keep its own session meanwhile.
    std::thread::sleep(SILENT.saturating_sub(silent_since.elapsed()));
    run(&mut client, &paced_plan(1, 0, 100)).unwrap();

    // What was on its way may be read; then the connections are over.
    for mut connection in [&data, &vanished.control] {
        connection.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut buffer = vec![0; 1 << 20];
        let end = loop {
            match connection.read(&mut buffer) {
                Ok(0) => break None,
                Ok(_) => (),
                Err(error) => break Some(error.kind()),
            }
        };
        assert!(
            matches!(end, None | Some(std::io::ErrorKind::ConnectionReset)),
            "{end:?}"
        );
    }
    assert_eq!((process.threads(), process.sockets()), (threads, sockets));
}

#[test]
fn noise_trickles_and_floods_do_no_harm() {
    let process = Process::start();
    let mut client = Client::connect("box", process.address, TIMEOUT).unwrap();
    let (threads, sockets) = (process.threads(), process.sockets());
    let connect = || {
        let socket = TcpStream::connect(process.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(7)))
            .unwrap();
        socket
    };
    let closed = |mut socket: &TcpStream| !matches!(socket.read(&mut [0; 64]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock);

    std::thread::scope(|scope| {
        // Slow: a byte of a valid preamble, or of a valid frame, every 300 ms.
        for (name, bytes) in [
            ("preamble", spec::DATA_MAGIC.repeat(6)),
            ("frame", [&[0, 0, 3, 200], [b' '; 44].as_slice()].concat()),
        ] {
            scope.spawn(move || {
                let (mut socket, begun) = (connect(), Instant::now());
                let sent = bytes.iter().take_while(|byte| {
                    std::thread::sleep(Duration::from_millis(300));
                    socket.write_all(&[**byte]).is_ok()
                });
                let count = sent.count();
                assert!(closed(&socket), "{name}");
                let after = begun.elapsed();
                assert!(
                    after >= Duration::from_secs(4) && after < GIVEN_UP,
                    "{name}: {after:?}, {count} bytes"
                );
            });
        }
        // Half-open: says nothing.
        scope.spawn(move || {
            let (socket, begun) = (connect(), Instant::now());
            assert!(closed(&socket));
            assert!(begun.elapsed() < GIVEN_UP, "{:?}", begun.elapsed());
        });
        // Noise: refused at once.
        scope.spawn(move || {
            let mut state = 1_u32;
            for round in 0..100 {
                let mut socket = connect();
                let noise: Vec<u8> = (0..200)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 24) as u8
                    })
                    .collect();
                // Every other round with a header that announces a frame.
                let header = if round % 2 == 0 {
                    [0, 0, 0, 190]
                } else {
                    [noise[0] | 1, 1, 2, 3]
                };
                let _ = socket
                    .write_all(&header)
                    .and_then(|()| socket.write_all(&noise));
                let begun = Instant::now();
                assert!(closed(&socket));
                assert!(begun.elapsed() < Duration::from_secs(20));
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        let outcome = run(&mut client, &paced_plan(1, 1, 500)).unwrap();
        assert!(outcome.down.unwrap().result.bytes > 0);
    });

    // A flood: more than one address may hold.
    let flood: Vec<_> = (0..spec::MAX_GREETING_PER_ADDRESS + 100)
        .map(|_| connect())
        .collect();
    assert!(flood.last().is_some_and(closed));
    drop(flood);
    let all_freed = || {
        let begun = Instant::now();
        while (process.threads(), process.sockets()) != (threads, sockets) {
            let left = (process.threads(), process.sockets());
            assert!(
                begun.elapsed() < GIVEN_UP,
                "{left:?} threads and sockets, not {:?}",
                (threads, sockets)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    all_freed();
    run(&mut client, &paced_plan(2, 2, 300)).unwrap();
    all_freed();
}

#[test]
fn a_responder_may_have_as_many_sockets_as_its_limits_let_in() {
    let mut shell = Command::new("sh");
    let lower = "ulimit -Sn 100; exec \"$0\" \"$@\"";
    shell
        .args(["-c", lower])
        .arg(std::env::current_exe().unwrap());
    let process = Process::start_by(shell);
    let client = || Client::connect("box", process.address, TIMEOUT).unwrap();
    let clients: Vec<_> = (0..spec::MAX_CLIENTS / 2).map(|_| client()).collect();
    assert!(process.sockets() > clients.len());
}

#[test]
fn another_version_is_told() {
    let responder = Responder::start();
    let client = RawClient::connect(responder.address, [127, 0, 0, 1]);
    client.send(&ClientMessage::Hello {
        version: 1,
        plumb: String::new(),
        waits_s: None,
        unpacks: false,
    });
    assert!(matches!(
        client.receive(),
        ServerMessage::Error {
            code: ErrorCode::Protocol,
            ..
        }
    ));

    let socket = TcpStream::connect(responder.address).unwrap();
    let hello = ClientMessage::Hello {
        version: spec::VERSION + 1,
        plumb: String::new(),
        waits_s: None,
        unpacks: false,
    };
    let deadline = Instant::now() + TIMEOUT;
    plumb_load::frames::write_frame(&socket, &hello, spec::MAX_CLIENT_FRAME_BYTES, deadline)
        .unwrap();
    match plumb_load::frames::read_frame(&socket, spec::MAX_SERVER_FRAME_BYTES, deadline).unwrap() {
        ServerMessage::Error {
            code: ErrorCode::Version,
            message,
        } => assert!(
            message.contains(&format!("version {}", spec::VERSION)),
            "{message}"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_clients_than_allowed_are_told_so() {
    let responder = Responder::with(Config {
        max_clients: 1,
        ..Config::default()
    });
    let first = responder.client();
    match Client::connect("box", responder.address, TIMEOUT) {
        Err(ClientError::Ended {
            code: ErrorCode::Full,
            ..
        }) => (),
        other => panic!("{other:?}"),
    }
    drop(first);
    // The responder sees the end of the first within a moment.
    let begun = Instant::now();
    while Client::connect("box", responder.address, TIMEOUT).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
}
