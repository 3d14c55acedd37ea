#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use super::*;
use proptest::prelude::*;
use std::net::TcpListener;
use std::thread::{JoinHandle, spawn};

/// Longer than any handshake on loopback takes.
const PATIENCE: Duration = Duration::from_secs(50);

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn server(
    socket: TcpStream,
    identity: &Identity,
) -> JoinHandle<Result<(TlsSession, TcpStream), TlsError>> {
    let identity = identity.clone();
    spawn(move || {
        let session = TlsSession::accept(&socket, &identity, Instant::now() + PATIENCE)?;
        Ok((session, socket))
    })
}

/// Both ends of an encrypted connection.
fn pair() -> [(TlsSession, TcpStream); 2] {
    let identity = Identity::generate().unwrap();
    let trust = Trust::in_certificate(identity.fingerprint()).unwrap();
    let (near, far) = sockets();
    let far = server(far, &identity);
    let session = TlsSession::connect(&near, &trust, Instant::now() + PATIENCE).unwrap();
    [(session, near), far.join().unwrap().unwrap()]
}

#[test]
fn payload_comes_through_as_it_was() {
    let [(mut near, near_socket), (mut far, far_socket)] = pair();
    assert!(
        near.cipher_suite().starts_with("TLS13_"),
        "{}",
        near.cipher_suite()
    );
    assert_eq!(near.cipher_suite(), far.cipher_suite());
    assert!(near.handshake() > Duration::ZERO && near.handshake() < PATIENCE);
    let sent: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let expected = sent.clone();
    let writer = spawn(move || {
        near.over(&near_socket)
            .write_all(&sent)
            .map(|()| near_socket)
    });
    let mut received = vec![0; expected.len()];
    far.over(&far_socket).read_exact(&mut received).unwrap();
    assert!(received == expected);
    assert_eq!(far.over(&far_socket).write(b"yes").unwrap(), 3);
    drop(writer.join().unwrap().unwrap());
}

#[test]
fn a_full_socket_keeps_what_was_taken_and_takes_no_more() {
    let [(mut near, near_socket), (mut far, far_socket)] = pair();
    near_socket.set_nonblocking(true).unwrap();
    let payload = vec![7; 256 * 1024];
    let mut taken = 0;
    let refused = loop {
        match near.over(&near_socket).write(&payload) {
            Ok(count) => taken += count,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    let reader = spawn(move || {
        let mut received = vec![0; taken];
        far.over(&far_socket)
            .read_exact(&mut received)
            .map(|()| received)
    });
    near_socket.set_nonblocking(false).unwrap();
    near.over(&near_socket).flush().unwrap();
    assert!(
        reader
            .join()
            .unwrap()
            .unwrap()
            .iter()
            .all(|byte| *byte == 7)
    );
}

#[test]
fn a_part_of_a_record_holds_no_read_up() {
    let [(mut near, mut near_socket), (mut far, far_socket)] = pair();
    let mut record = Vec::new();
    near.connection.writer().write_all(b"yes").unwrap();
    near.connection.write_tls(&mut record).unwrap();
    let (part, rest) = record.split_at(10);
    near_socket.write_all(part).unwrap();
    far_socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut received = [0; 3];
    let kept = far.over(&far_socket).read(&mut received).unwrap_err();
    assert_eq!(kept.kind(), io::ErrorKind::Interrupted);
    near_socket.write_all(rest).unwrap();
    far.over(&far_socket).read_exact(&mut received).unwrap();
    assert_eq!(&received, b"yes");
}

#[test]
fn another_certificate_is_refused_by_name() {
    let (announced, shown) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    assert_ne!(announced.fingerprint(), shown.fingerprint());
    let trust = Trust::in_certificate(announced.fingerprint()).unwrap();
    let (near, far) = sockets();
    let far = server(far, &shown);
    let error = TlsSession::connect(&near, &trust, Instant::now() + PATIENCE).unwrap_err();
    assert!(matches!(error, TlsError::Certificate), "{error}");
    assert!(far.join().unwrap().is_err());
}

/// The client's error against a far end that does `what` with the connection.
fn against(
    what: impl FnOnce(TcpStream) + Send + 'static,
    patience: Duration,
) -> (TlsError, Duration) {
    let trust = Trust::in_certificate(Fingerprint([0; 32])).unwrap();
    let (near, far) = sockets();
    let far = spawn(move || what(far));
    let began = Instant::now();
    let error = TlsSession::connect(&near, &trust, began + patience).unwrap_err();
    let took = began.elapsed();
    drop(near);
    far.join().unwrap();
    (error, took)
}

#[test]
fn a_far_end_that_stalls_or_vanishes_is_told_from_one_that_talks_otherwise() {
    let patience = Duration::from_millis(200);
    // It reads until the client gives up, and says nothing.
    let (error, took) = against(
        |mut far| while far.read(&mut [0; 512]).is_ok_and(|n| n > 0) {},
        patience,
    );
    assert!(
        matches!(error, TlsError::Link(LinkError::Silent)),
        "{error}"
    );
    assert!(took >= patience && took < PATIENCE, "{took:?}");
    let (error, _) = against(drop, PATIENCE);
    assert!(
        matches!(error, TlsError::Link(LinkError::Closed)),
        "{error}"
    );
    let (error, _) = against(
        |mut far| far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap(),
        PATIENCE,
    );
    assert!(matches!(error, TlsError::Protocol(_)), "{error}");
}

#[test]
fn a_byte_now_and_then_does_not_prolong_a_handshake() {
    let trickle = |mut far: TcpStream| {
        // A record of 16 KiB that never becomes whole.
        for byte in [22, 3, 3, 64, 0, 2, 0]
            .into_iter()
            .chain(std::iter::repeat(0))
        {
            if far.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let (error, took) = against(trickle, Duration::from_millis(200));
    assert!(
        matches!(error, TlsError::Link(LinkError::Silent)),
        "{error}"
    );
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn what_is_cut_off_is_an_error_and_not_an_end() {
    let [(mut near, near_socket), (far, far_socket)] = pair();
    drop((far, far_socket));
    assert!(near.over(&near_socket).read(&mut [0; 16]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn noise_is_survived_by_both_ends(noise in proptest::collection::vec(any::<u8>(), 0..600), record: bool) {
        let noise: Vec<u8> = if record {
            // The head of a handshake record of that length.
            [22, 3, 3].into_iter().chain((noise.len() as u16).to_be_bytes()).chain(noise).collect()
        } else {
            noise
        };
        let (near, mut far) = sockets();
        far.write_all(&noise).unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let trust = Trust::in_certificate(Fingerprint([0; 32])).unwrap();
        prop_assert!(TlsSession::connect(&near, &trust, deadline).is_err());
        let (near, mut far) = sockets();
        far.write_all(&noise).unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        prop_assert!(TlsSession::accept(&near, &Identity::generate().unwrap(), deadline).is_err());
        prop_assert!(Instant::now() < deadline);
    }
}
