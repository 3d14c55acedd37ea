//! Questions to the kernel that are answered with a list (netlink(7), NLM_F_DUMP).

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr};

use super::NetlinkError;
use super::attribute::{bytes_at, u32_at};

/// Length of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

/// `NLMSG_ERROR` and `NLMSG_DONE` of `linux/netlink.h`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// The kernel puts no more than 32 KiB into one answer of a list (`netlink_dump`,
/// `net/netlink/af_netlink.c`).
const ANSWER_BYTES: usize = 64 * 1024;

/// Most messages that a list may have; a kernel with more sockets than this is not asked further.
const MOST_MESSAGES: usize = 200_000;

/// A message of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its type.
    pub(crate) kind: u16,
    /// What follows the header.
    pub(crate) body: Vec<u8>,
}

/// A connection to one part of the kernel, in the network namespace of the thread that opened it.
pub(crate) struct Inquiry {
    socket: Socket,
    what: &'static str,
    sequence: u32,
}

impl Inquiry {
    /// Connects to the part of the kernel with the number `protocol` (`NETLINK_ROUTE` …). `what`
    /// stands in errors behind "cannot list the".
    pub(crate) fn open(protocol: isize, what: &'static str) -> Result<Self, NetlinkError> {
        let connect = || {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = connect().map_err(|source| failed(what, source))?;
        Ok(Self {
            socket,
            what,
            sequence: 0,
        })
    }

    /// Everything of a kind.
    pub(crate) fn list(&mut self, kind: u16, body: &[u8]) -> Result<Vec<Message>, NetlinkError> {
        self.ask(kind, NLM_F_REQUEST | NLM_F_DUMP, body)
    }

    /// One thing.
    pub(crate) fn one(&mut self, kind: u16, body: &[u8]) -> Result<Vec<Message>, NetlinkError> {
        self.ask(kind, NLM_F_REQUEST | NLM_F_ACK, body)
    }

    fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> Result<Vec<Message>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let what = self.what;
        let request = encode(kind, flags, self.sequence, body);
        self.socket.send(&request, 0).map_err(|e| failed(what, e))?;
        let mut messages = Vec::new();
        let mut answer = Vec::with_capacity(ANSWER_BYTES);
        while messages.len() < MOST_MESSAGES {
            answer.clear();
            self.socket
                .recv(&mut answer, 0)
                .map_err(|e| failed(what, e))?;
            match take(&answer, self.sequence, &mut messages) {
                Taken::More => {}
                Taken::End => return Ok(messages),
                Taken::Failed(code) => {
                    return Err(failed(what, io::Error::from_raw_os_error(code)));
                }
            }
        }
        // What is left in the socket belongs to this question, and would answer the next.
        self.sequence = self.sequence.wrapping_add(1);
        Ok(messages)
    }
}

fn failed(what: &str, source: io::Error) -> NetlinkError {
    NetlinkError {
        what: format!("list the {what}"),
        source,
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
