//! What passes between the host and a laboratory in virtual time, over the console of its kernel: a byte for the kind,
//! four for the length (big endian), and the content. Pure.

use serde::{Deserialize, Serialize};

/// Bytes of a frame before its content.
const HEADER_BYTES: usize = 5;

/// The longest content: an environment and a command line, of which Linux takes 2 MiB together (`_STK_LIM / 4 * 3`,
/// execve(2)), as JSON.
const MOST_BYTES: usize = 16 << 20;

/// What is to run inside, as it would have run outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// The program and its arguments; bytes, because Linux does not ask for UTF-8.
    pub(super) command: Vec<Vec<u8>>,
    pub(super) environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) directory: Vec<u8>,
    /// Rows and columns of the terminal; `None` where input and output are none.
    pub(super) terminal: Option<(u16, u16)>,
    pub(super) file_mode_mask: u32,
}

/// What one side says to the other at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// From inside: the kernel is up.
    Ready,
    /// From outside, once: what to run.
    Start(Box<Start>),
    /// From outside: input of the program; empty at its end.
    Input(Vec<u8>),
    /// From outside: a signal for the program.
    Signal(u32),
    /// From inside: standard output.
    Output(Vec<u8>),
    /// From inside: standard error.
    Errors(Vec<u8>),
    /// From inside: a second of virtual time has passed.
    Second,
    /// From inside, the last: the program's exit status, as a shell would show it.
    Ended(u32),
    /// From inside, the last: why nothing could be run.
    Failed(String),
}

/// What is no frame.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the console of the lab's kernel carried what is no message: {0}")]
pub(super) struct NoFrame(String);

impl Frame {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let number = |number: u32| number.to_be_bytes().to_vec();
        let (kind, content) = match self {
            Self::Ready => (b'R', Vec::new()),
            Self::Start(start) => (b'S', serde_json::to_vec(start).unwrap_or_default()),
            Self::Input(bytes) => (b'I', bytes.clone()),
            Self::Signal(signal) => (b'K', number(*signal)),
            Self::Output(bytes) => (b'O', bytes.clone()),
            Self::Errors(bytes) => (b'E', bytes.clone()),
            Self::Second => (b'T', Vec::new()),
            Self::Ended(status) => (b'X', number(*status)),
            Self::Failed(why) => (b'F', why.clone().into_bytes()),
        };
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        [&[kind][..], &length.to_be_bytes(), &content].concat()
    }

    fn of(kind: u8, content: &[u8]) -> Result<Self, NoFrame> {
        let number = || {
            let bytes = content
                .try_into()
                .map_err(|_| NoFrame("a number of another length".into()))?;
            Ok(u32::from_be_bytes(bytes))
        };
        Ok(match kind {
            b'R' => Self::Ready,
            b'S' => {
                let start = serde_json::from_slice(content);
                Self::Start(start.map_err(|e| NoFrame(e.to_string()))?)
            }
            b'I' => Self::Input(content.to_vec()),
            b'K' => Self::Signal(number()?),
            b'O' => Self::Output(content.to_vec()),
            b'E' => Self::Errors(content.to_vec()),
            b'T' => Self::Second,
            b'X' => Self::Ended(number()?),
            b'F' => Self::Failed(String::from_utf8_lossy(content).into_owned()),
            other => return Err(NoFrame(format!("kind {other:#04x}"))),
        })
    }
}

/// Bytes that have come, of which frames are taken.
#[derive(Debug, Default)]
pub(super) struct Incoming(Vec<u8>);

impl Incoming {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next frame; `None` until all of it is there.
    pub(super) fn take(&mut self) -> Result<Option<Frame>, NoFrame> {
        let Some((&[kind, a, b, c, d], rest)) = self.0.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MOST_BYTES {
            return Err(NoFrame(format!("{length} bytes")));
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame::of(kind, content)?;
        self.0.drain(..HEADER_BYTES + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..40);
        let start = (
            prop::collection::vec(bytes(), 0..4),
            prop::collection::vec((bytes(), bytes()), 0..4),
            bytes(),
            any::<Option<(u16, u16)>>(),
            any::<u32>(),
        );
        prop_oneof![
            Just(Frame::Ready),
            start.prop_map(
                |(command, environment, directory, terminal, file_mode_mask)| {
                    Frame::Start(Box::new(Start {
                        command,
                        environment,
                        directory,
                        terminal,
                        file_mode_mask,
                    }))
                }
            ),
            bytes().prop_map(Frame::Input),
            any::<u32>().prop_map(Frame::Signal),
            bytes().prop_map(Frame::Output),
            bytes().prop_map(Frame::Errors),
            Just(Frame::Second),
            any::<u32>().prop_map(Frame::Ended),
            ".*".prop_map(Frame::Failed),
        ]
    }

    proptest! {
        #[test]
        fn frames_arrive_whole_however_they_are_cut(all in prop::collection::vec(frames(), 0..8), piece in 1..50_usize) {
            let sent: Vec<u8> = all.iter().flat_map(Frame::to_bytes).collect();
            let (mut incoming, mut came) = (Incoming::default(), Vec::new());
            for bytes in sent.chunks(piece) {
                incoming.add(bytes);
                while let Some(frame) = incoming.take().unwrap() {
                    came.push(frame);
                }
            }
            prop_assert_eq!(came, all);
        }

        #[test]
        fn anything_is_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut incoming = Incoming::default();
            incoming.add(&bytes);
            while let Ok(Some(_)) = incoming.take() {}
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_an_error_at_once() {
        let mut incoming = Incoming::default();
        incoming.add(b"O\xff\xff\xff\xff");
        assert!(incoming.take().is_err());
    }
}
