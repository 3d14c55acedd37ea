//! The frames of a WebSocket that a client sends (RFC 6455, section 5.2), whose payload is counted as it comes and kept nowhere:
//! a message may be of 16 MiB, and a server has many clients. Pure.

/// The largest payload of a control frame (section 5.5).
const CONTROL_BYTES: u64 = 125;

/// What came of some bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Bytes of payload in binary messages.
    pub payload: u64,
    /// The last ping among them, which is to be answered with the same (section 5.5.3).
    pub ping: Option<Vec<u8>>,
    /// Whether the client closes.
    pub closes: bool,
}

/// A client that violates the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client breaks the WebSocket protocol: {0}")]
pub struct Broken(&'static str);

/// The frames of a connection, from its first byte.
#[derive(Debug)]
pub struct Frames {
    most_bytes: u64,
    /// The head of the next frame, as far as it came.
    head: Vec<u8>,
    frame: Option<Frame>,
    /// The message whose fragments come.
    message: Option<Message>,
}

#[derive(Debug, Clone, Copy)]
struct Message {
    is_binary: bool,
    bytes: u64,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    is_last: bool,
    left: u64,
    mask: [u8; 4],
    /// Of a control frame.
    payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Close,
    Ping,
    Pong,
}

impl Frames {
    /// Of messages of at most so many bytes.
    pub fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            head: Vec::new(),
            frame: None,
            message: None,
        }
    }

    /// Takes what has come. Nothing is to be taken after an error, or after the client closed.
    ///
    /// # Errors
    /// When it is no frame of a client, or its message is too long.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Taken, Broken> {
        let mut taken = Taken::default();
        while !taken.closes {
            let Some(frame) = &mut self.frame else {
                let Some((byte, rest)) = bytes.split_first() else {
                    break;
                };
                bytes = rest;
                self.head.push(*byte);
                self.begin()?;
                continue;
            };
            let count =
                usize::try_from(frame.left).map_or(bytes.len(), |left| left.min(bytes.len()));
            let (these, rest) = bytes.split_at(count);
            bytes = rest;
            frame.left -= count as u64;
            match frame.kind {
                Kind::Data if self.message.is_some_and(|message| message.is_binary) => {
                    taken.payload += count as u64;
                }
                Kind::Data => {}
                Kind::Close | Kind::Ping | Kind::Pong => {
                    let begun = frame.payload.len();
                    let masks = frame.mask.iter().cycle().skip(begun % 4);
                    let unmasked = these.iter().zip(masks).map(|(byte, mask)| byte ^ mask);
                    frame.payload.extend(unmasked);
                }
            }
            if frame.left > 0 {
                break;
            }
            if let Some(frame) = self.frame.take() {
                match frame.kind {
                    Kind::Data if frame.is_last => self.message = None,
                    Kind::Data | Kind::Pong => {}
                    Kind::Ping => taken.ping = Some(frame.payload),
                    Kind::Close => taken.closes = true,
                }
            }
        }
        Ok(taken)
    }

    /// Begins a frame, if its head is whole.
    fn begin(&mut self) -> Result<(), Broken> {
        let Some(([first, second], rest)) = self.head.split_first_chunk() else {
            return Ok(());
        };
        if first & 0x70 != 0 {
            return Err(Broken("a reserved bit is set"));
        }
        if second & 0x80 == 0 {
            return Err(Broken("a frame is not masked"));
        }
        let (length, rest) = match second & 0x7f {
            126 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
                None => return Ok(()),
            },
            127 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return Ok(()),
            },
            short => (u64::from(short), rest),
        };
        let Some(mask) = rest.first_chunk() else {
            return Ok(());
        };
        let is_shortest = match second & 0x7f {
            126 => length > CONTROL_BYTES,
            127 => length > u64::from(u16::MAX),
            _ => true,
        };
        if !is_shortest {
            return Err(Broken("a length is longer than it need be"));
        }
        let (is_last, mask) = (first & 0x80 != 0, *mask);
        let kind = match first & 0x0f {
            opcode @ 0..=2 => {
                self.message = Some(self.goes_on(opcode, length)?);
                Kind::Data
            }
            8 => Kind::Close,
            9 => Kind::Ping,
            10 => Kind::Pong,
            _ => return Err(Broken("an opcode is unknown")),
        };
        if kind != Kind::Data && (!is_last || length > CONTROL_BYTES) {
            return Err(Broken("a control frame is too long, or in pieces"));
        }
        self.head.clear();
        self.frame = Some(Frame {
            kind,
            is_last,
            left: length,
            mask,
            payload: Vec::new(),
        });
        Ok(())
    }

    /// The message with one frame more.
    fn goes_on(&self, opcode: u8, length: u64) -> Result<Message, Broken> {
        let message = match (opcode, self.message) {
            (0, Some(message)) => message,
            (0, None) => return Err(Broken("a message has no beginning")),
            (_, Some(_)) => return Err(Broken("a message begins in another")),
            (opcode, None) => Message {
                is_binary: opcode == 2,
                bytes: 0,
            },
        };
        let bytes = message.bytes.saturating_add(length);
        match bytes <= self.most_bytes {
            true => Ok(Message { bytes, ..message }),
            false => Err(Broken("a message is too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const MOST: u64 = 1 << 24;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let length = payload.len();
        let head = match length {
            0..=125 => vec![first, 0x80 | length as u8],
            126..=0xffff => [&[first, 0xfe], &(length as u16).to_be_bytes()[..]].concat(),
            _ => [&[first, 0xff], &(length as u64).to_be_bytes()[..]].concat(),
        };
        let mask = [1, 2, 3, 4];
        let masked = payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m);
        [head, mask.to_vec(), masked.collect()].concat()
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        for (bytes, why) in [
            (vec![0x82, 0x05, 1, 2, 3, 4, 5], "not masked"),
            (vec![0xf2, 0x80, 1, 2, 3, 4], "reserved"),
            (vec![0x83, 0x80, 1, 2, 3, 4], "opcode"),
            (frame(0x80, b"x"), "no beginning"),
            (
                [frame(0x02, b"x"), frame(0x82, b"x")].concat(),
                "in another",
            ),
            (frame(0x09, b"x"), "control"),
            (frame(0x89, &[0; 126]), "control"),
            (vec![0x82, 0xfe, 0, 5, 1, 2, 3, 4], "longer than it need"),
            (
                vec![0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4],
                "too long",
            ),
            (
                vec![
                    0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4,
                ],
                "too long",
            ),
        ] {
            let error = Frames::new(MOST).take(&bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}: {why}");
        }
        // Fragments count together.
        let mut frames = Frames::new(10);
        frames.take(&frame(0x02, &[0; 6])).unwrap();
        assert!(frames.take(&frame(0x00, &[0; 6])).is_err());
    }

    #[test]
    fn a_close_ends_it_and_a_ping_between_fragments_is_heard() {
        let mut frames = Frames::new(MOST);
        let bytes = [
            frame(0x02, b"abc"),
            frame(0x89, b"heard?"),
            frame(0x80, b"de"),
            frame(0x81, b"a report"),
            frame(0x88, b""),
            frame(0x82, b"never taken"),
        ];
        let taken = frames.take(&bytes.concat()).unwrap();
        let ping = Some(b"heard?".to_vec());
        assert_eq!(
            taken,
            Taken {
                payload: 5,
                ping,
                closes: true
            }
        );
    }

    proptest! {
        #[test]
        fn bytes_may_come_in_any_pieces(
            messages in proptest::collection::vec((0usize..70_000, any::<bool>()), 1..6),
            pieces in proptest::collection::vec(1usize..9000, 1..40),
        ) {
            let bytes = messages.iter().flat_map(|(length, has_ping)| {
                let ping = if *has_ping { frame(0x89, b"p") } else { Vec::new() };
                [frame(0x82, &vec![7; *length]), ping].concat()
            });
            let bytes: Vec<u8> = bytes.collect();
            let (mut frames, mut payload, mut at) = (Frames::new(MOST), 0, 0);
            for piece in pieces.iter().cycle() {
                let end = (at + piece).min(bytes.len());
                payload += frames.take(&bytes[at..end]).unwrap().payload;
                prop_assert!(frames.head.len() <= 14);
                at = end;
                if at == bytes.len() {
                    break;
                }
            }
            let sent: usize = messages.iter().map(|(length, _)| length).sum();
            prop_assert_eq!(payload, sent as u64);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Frames::new(MOST).take(&bytes);
        }
    }
}
