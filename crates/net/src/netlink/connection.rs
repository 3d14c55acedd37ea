//! Requests to the kernel and its answers (netlink(7)): the socket, and the messages that go over it.
//!
//! Blocking: the kernel answers a request before send(2) returns, so that what is received is there already.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, connect, recv,
    send, socket,
};

use super::attribute::{bytes_at, u32_at};
use super::error::NetlinkError;

/// Length of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

/// `NLMSG_ERROR` and `NLMSG_DONE` of `linux/netlink.h`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Flags of requests (`NLM_F_*` of `linux/netlink.h`). Of two that make something, `CREATE` allows it where there
/// is none, `EXCLUSIVE` forbids it where there is one, and `REPLACE` puts it in that one's place.
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const APPEND: u16 = 0x800;

/// The kernel puts no more than 32 KiB into one answer of a list (`netlink_dump`,
/// `net/netlink/af_netlink.c`).
const ANSWER_BYTES: usize = 64 * 1024;

/// Most messages that a list may have; a kernel with more sockets than this is not asked further.
const MOST_MESSAGES: usize = 200_000;

/// A message of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    /// What follows the header.
    pub(crate) body: Vec<u8>,
}

/// A request of a batch.
pub(crate) struct Request {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    /// What follows the header, in whole words of four bytes.
    pub(crate) body: Vec<u8>,
}

/// A connection to one part of the kernel, in the network namespace of the thread that opened it.
pub(crate) struct Connection {
    socket: OwnedFd,
    sequence: u32,
}

/// Everything of a kind that a part of the kernel lists, over a connection of its own.
pub(crate) fn list(
    protocol: SockProtocol,
    kind: u16,
    body: &[u8],
    what: &str,
) -> Result<Vec<Message>, NetlinkError> {
    Connection::open(protocol)
        .and_then(|mut connection| connection.list(kind, body))
        .map_err(NetlinkError::when(|| format!("list the {what}")))
}

impl Connection {
    pub(crate) fn open(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )?;
        // The kernel chooses our port; connected to its own, the socket takes no message of another process.
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Everything of a kind.
    pub(crate) fn list(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Message>> {
        self.send(|number| encode(kind, REQUEST | DUMP, number, body))?;
        self.answer()
    }

    /// Asks for one thing or changes one; the messages that the kernel answers with before its acknowledgement.
    pub(crate) fn request(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
    ) -> io::Result<Vec<Message>> {
        self.send(|number| encode(kind, REQUEST | ACKNOWLEDGE | flags, number, body))?;
        self.answer()
    }

    /// Sends several requests that take effect together or not at all, between the messages `begin` and `end`.
    pub(crate) fn batch(
        &mut self,
        begin: &Request,
        requests: &[Request],
        end: &Request,
    ) -> io::Result<()> {
        self.send(|number| {
            let mut bytes = encode(begin.kind, REQUEST, number, &begin.body);
            for request in requests {
                let flags = REQUEST | ACKNOWLEDGE | request.flags;
                bytes.extend(encode(request.kind, flags, number, &request.body));
            }
            bytes.extend(encode(end.kind, REQUEST, number, &end.body));
            bytes
        })?;
        // After an error the rest is undone.
        requests.iter().try_for_each(|_| self.answer().map(drop))
    }

    fn send(&mut self, message: impl Fn(u32) -> Vec<u8>) -> io::Result<()> {
        // What is left in the socket of a list that was too long has the number before.
        self.sequence = self.sequence.wrapping_add(1);
        let message = message(self.sequence);
        send(self.socket.as_raw_fd(), &message, MsgFlags::empty())?;
        Ok(())
    }

    fn answer(&self) -> io::Result<Vec<Message>> {
        let mut messages = Vec::new();
        let mut buffer = vec![0; ANSWER_BYTES];
        while messages.len() < MOST_MESSAGES {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let answer = buffer.get(..length).unwrap_or_default();
            match take(answer, self.sequence, &mut messages) {
                Taken::More => {}
                Taken::End => break,
                Taken::Failed(code) => return Err(io::Error::from_raw_os_error(code)),
            }
        }
        Ok(messages)
    }
}

fn encode(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The kernel fills in our port.
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

#[derive(Debug, PartialEq, Eq)]
enum Taken {
    More,
    End,
    Failed(i32),
}

/// Takes the messages with this sequence number out of what one recv(2) returned.
fn take(mut bytes: &[u8], sequence: u32, messages: &mut Vec<Message>) -> Taken {
    while let (Some(length), Some(kind), Some(number)) = (
        u32_at(bytes, 0),
        bytes_at(bytes, 4).map(u16::from_ne_bytes),
        u32_at(bytes, 8),
    ) {
        let length = length as usize;
        let Some(body) = bytes.get(HEADER_BYTES..length) else {
            break;
        };
        if number == sequence {
            match kind {
                // Both begin with an error number, negative; 0 is an acknowledgement.
                ERROR | DONE => {
                    let code = bytes_at(body, 0).map_or(0, i32::from_ne_bytes);
                    return match code {
                        code if code < 0 => Taken::Failed(code.saturating_neg()),
                        _ => Taken::End,
                    };
                }
                kind => messages.push(Message {
                    kind,
                    body: body.to_vec(),
                }),
            }
        }
        bytes = bytes
            .get(length.next_multiple_of(4).max(HEADER_BYTES)..)
            .unwrap_or_default();
    }
    Taken::More
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_taken_until_the_end() {
        let mut bytes = encode(20, 0, 7, b"four");
        bytes.extend(encode(20, 0, 6, b"old!"));
        bytes.extend(encode(21, 0, 7, b"five."));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let mut messages = Vec::new();
        assert_eq!(take(&bytes, 7, &mut messages), Taken::More);
        let bodies: Vec<_> = messages
            .iter()
            .map(|m| (m.kind, m.body.as_slice()))
            .collect();
        assert_eq!(bodies, [(20, &b"four"[..]), (21, b"five.")]);
        let end = encode(DONE, 0, 7, &0_i32.to_ne_bytes());
        assert_eq!(take(&end, 7, &mut messages), Taken::End);
        let error = encode(ERROR, 0, 7, &(-2_i32).to_ne_bytes());
        assert_eq!(take(&error, 7, &mut messages), Taken::Failed(2));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = take(&bytes, 0, &mut Vec::new());
        }
    }
}
