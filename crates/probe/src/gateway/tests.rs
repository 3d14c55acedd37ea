//! Gateways on the loopback, honest and hostile.

#![allow(clippy::unwrap_used)]
use std::net::TcpListener;
use std::thread;

use super::*;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const LINE: &str = "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1";

/// How long a question may take in these tests; what never ends is given up after it.
const WITHIN: Duration = Duration::from_millis(400);

/// A service at which each connection is answered by that function, one after the other.
fn service(answer: impl Fn(&mut std::net::TcpStream) + Send + 'static) -> Service {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            answer(&mut stream);
        }
    });
    Service {
        kind: LINE.to_owned(),
        control: format!("http://{HERE}:{port}/ctl").parse().unwrap(),
    }
}

fn gateway(line: Service) -> Gateway {
    Gateway {
        model: None,
        line,
        connection: None,
    }
}

/// An answer to any question at once, with a length.
fn values(status: &str, values: &str) -> Vec<u8> {
    let body = format!("<e:Envelope><e:Body><u:R>{values}</u:R></e:Body></e:Envelope>");
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn a_line_and_its_counters_are_read() {
    let service = service(|stream| {
        let all = "<NewLayer1DownstreamMaxBitRate>50000000</NewLayer1DownstreamMaxBitRate>\
                   <NewTotalBytesSent>7</NewTotalBytesSent><NewTotalBytesReceived>9</NewTotalBytesReceived>";
        let _ = stream.write_all(&values("200 OK", all));
    });
    let gateway = gateway(service);
    let within = Duration::from_secs(5);
    assert_eq!(gateway.line(within).unwrap().down_bps, Some(5e7));
    assert_eq!(gateway.bytes(within).unwrap(), [9, 7]);
    assert_eq!(
        gateway.address(within).unwrap(),
        None,
        "it has no such service"
    );
}

#[test]
fn a_refusal_is_named() {
    let service = service(|stream| {
        let _ = stream.write_all(&values(
            "500 Internal Server Error",
            "<errorCode>501</errorCode>",
        ));
    });
    let error = gateway(service).bytes(Duration::from_secs(5)).unwrap_err();
    assert!(error.to_string().contains("UPnP error 501"), "{error}");
}

/// What became of a question, and how long that took.
fn asked(answer: impl Fn(&mut std::net::TcpStream) + Send + 'static) -> (GatewayError, Duration) {
    let gateway = gateway(service(answer));
    let began = Instant::now();
    let error = gateway.bytes(WITHIN).unwrap_err();
    (error, began.elapsed())
}

#[test]
fn what_never_ends_is_given_up_in_time() {
    let silent = |_: &mut std::net::TcpStream| thread::sleep(Duration::from_secs(60));
    let drops = |stream: &mut std::net::TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"<").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    };
    for (error, took) in [asked(silent), asked(drops)] {
        assert!(matches!(error, GatewayError::TimedOut), "{error}");
        assert!(took >= WITHIN && took < Duration::from_secs(30), "{took:?}");
    }
}

#[test]
fn an_endless_answer_is_cut() {
    let (error, _) = asked(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'<'; 4096]).is_ok() {}
    });
    assert!(matches!(error, GatewayError::TooLong), "{error}");
}

#[test]
fn what_is_no_answer_is_named() {
    let (error, _) = asked(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    assert!(matches!(error, GatewayError::Status(404)), "{error}");
    let (error, _) = asked(|stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
    });
    assert!(matches!(error, GatewayError::Http(_)), "{error}");
    let (error, _) = asked(|stream| {
        let _ = stream.write_all(&values(
            "200 OK",
            "<NewTotalBytesReceived>-1</NewTotalBytesReceived>",
        ));
    });
    assert!(matches!(error, GatewayError::Soap(_)), "{error}");
}

#[test]
fn a_gateway_without_upnp_is_silent_and_costs_seconds_at_most() {
    let began = Instant::now();
    let found = Gateway::find(HERE, WITHIN);
    assert!(matches!(found, Err(GatewayError::Silent)), "{found:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
}
