//! `plumb serve` and SIGTERM, whatever runs.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common::responder::Responder;
use crate::common::slots::Weight;
use plumb_load::{Client, PhasePlan};
use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows};

/// From the signal to the end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// How long it takes to end after SIGTERM.
fn terminate(responder: &mut Responder) -> Duration {
    let id = responder.child.id().to_string();
    let begun = Instant::now();
    let killed = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(killed.unwrap().success());
    while responder.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never ends");
        std::thread::sleep(Duration::from_millis(10));
    }
    begun.elapsed()
}

#[test]
fn a_termination_ends_it_whatever_runs() {
    let mut responder = Responder::start_for(Weight::Heavy, &["--without", "stamp"]);
    let address = SocketAddr::from(([127, 0, 0, 1], responder.port));
    // One that says nothing, one that says half of what it is, and one that closes neither way.
    let half_open: Vec<_> = [b"".as_slice(), &[0, 0], b"plumbDAT"]
        .iter()
        .map(|said| {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.write_all(said).unwrap();
            socket
        })
        .collect();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut client = Client::connect("box", address, Duration::from_secs(5)).unwrap();
            let plan = PhasePlan {
                flows: vec![Flows {
                    count: 2,
                    role: OneDirection::Down,
                    flow: Flow::Udp(UdpFlow::new(64, Pattern::Constant { pps: 1e9 })),
                }],
                duration: Duration::from_secs(20),
                byte_limit: None,
                until_steady: false,
                from: None,
                to: None,
            };
            client.run_phase(&plan, &|_| (), &AtomicBool::new(false))
        });
        std::thread::sleep(Duration::from_secs(1));
        let took = terminate(&mut responder);
        assert!(took < ENDS_WITHIN, "{took:?}");
        // What was measured until then is kept.
        assert!(client.join().unwrap().unwrap().lost.is_some());
    });
    drop(half_open);
}
