//! The client against ports that are no responder.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::{Client, ClientError, Iperf3, Peer, PhasePlan, Unconducted};
use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow::{Flows, TcpFlow};

/// For a port that answers, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connects to a port that does `serve` with the connection, for as long as `timeout`.
fn connect_to(serve: impl FnOnce(TcpStream) + Send, timeout: Duration) -> ClientError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || serve(listener.accept().unwrap().0));
        Client::connect("box", address, timeout)
            .map(|_| ())
            .unwrap_err()
    })
}

#[test]
fn a_closed_port() {
    // Discard (RFC 863), where nothing listens and which no program gets that asks for any port.
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let error = Client::connect("box", address, PATIENCE)
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.starts_with("box: ")
            && text.contains(&address.port().to_string())
            && text.contains("plumb serve"),
        "{text}"
    );
}

#[test]
fn a_port_that_says_nothing() {
    // It ends with the client, which waits no longer than this.
    let serve = |mut socket: TcpStream| {
        let _ = socket.read_to_end(&mut Vec::new());
    };
    let error = connect_to(serve, Duration::from_millis(500));
    assert!(matches!(error, ClientError::Mute { .. }), "{error:?}");
}

#[test]
fn a_port_that_speaks_something_else() {
    for answer in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(),
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0\0\0\x02{}",
        b"\0\0\0\x13{\"type\":\"pong\",\"id\":1}",
        b"\0\0\0\x18{\"type\":\"pong\",\"id\":123}",
        b"",
    ] {
        let serve = move |mut socket: TcpStream| {
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket.write_all(answer);
        };
        let error = connect_to(serve, PATIENCE);
        assert!(
            matches!(error, ClientError::NotPlumb { .. }),
            "{error:?} to {answer:?}"
        );
    }
}

/// An iperf3 server that goes after it has taken the parameters, so often; how many tests were begun with it.
#[test]
fn a_test_that_the_path_ended_before_it_began_is_begun_once_more() {
    /// States of `iperf_api.h`.
    const PARAMETER_EXCHANGE: u8 = 9;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let begun = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut begun = 0;
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                // The cookie, or nothing where the test is over.
                if socket.read_exact(&mut [0; 37]).is_err() {
                    return begun;
                }
                begun += 1;
                socket.write_all(&[PARAMETER_EXCHANGE]).unwrap();
                let _ = socket.read(&mut [0; 4096]);
            }
            begun
        });
        let plan = PhasePlan {
            flows: vec![Flows::tcp(1, OneDirection::Up, TcpFlow::default())],
            duration: Duration::from_secs(1),
            byte_limit: None,
            until_steady: false,
            from: None,
            to: None,
        };
        let mut peer = Iperf3::at("box", address);
        let ended = peer.run_phase(&plan, &mut Unconducted, &|_| (), &AtomicBool::new(false));
        let lost = ended.map(|_| ()).unwrap_err();
        assert!(matches!(lost, ClientError::Lost { .. }), "{lost:?}");
        drop(TcpStream::connect(address).unwrap());
        server.join().unwrap()
    });
    assert_eq!(begun, 2);
}
