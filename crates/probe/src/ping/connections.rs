//! Probes that are TCP connections: the handshake, or a page's head over HTTP or HTTPS. Each has a thread
//! of its own for as long as it takes, at most the timeout, and is reset at its end.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use plumb_model::results::TimestampSource;
use plumb_net::clock::monotonic_ns;

use crate::exchange::{Exchange, NoConnection, Talk, exchange};
use crate::ping::plan::Plan;
use crate::ping::sample::{Answer, Measured, Moment, Phases, Said};
use crate::ping::strategy::{Event, Network};

/// A connection needs no more of a stack than its buffers.
const STACK_BYTES: usize = 256 * 1024;

/// The network of connections to one far end.
pub(crate) struct Connections {
    target: SocketAddr,
    talk: Talk,
    timeout: Duration,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
}

impl Connections {
    pub(crate) fn open(plan: &Plan) -> Self {
        let (sender, events) = mpsc::channel();
        Self {
            target: plan.target,
            talk: Talk::of(plan),
            timeout: plan.timeout,
            sender,
            events,
        }
    }
}

/// Makes a connection in a thread of its own, and hands over its outcome.
pub(crate) fn hold(
    target: SocketAddr,
    talk: Talk,
    timeout: Duration,
    then: impl FnOnce(Result<Exchange, NoConnection>) + Send + 'static,
) -> io::Result<()> {
    let thread = thread::Builder::new().name("connect".into());
    let work = move || then(exchange(target, &talk, timeout));
    thread.stack_size(STACK_BYTES).spawn(work).map(drop)
}

impl Network for Connections {
    fn id(&self) -> u32 {
        0
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        let (sender, asks) = (self.sender.clone(), self.talk.asks());
        hold(
            self.target,
            self.talk.clone(),
            self.timeout,
            move |outcome| {
                // That nothing waits for it any more is no error.
                let _ = sender.send(event(sequence, asks, outcome));
            },
        )
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        match self.events.recv_timeout(left) {
            Ok(event) => Ok(Some(event)),
            // The other end is ours, and stays.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }
}

/// The event of a connection: the time of the handshake, or of the head where it `asks` for one. A refusal by the host
/// is an answer to the handshake, and none to a request.
pub(crate) fn event(sequence: u32, asks: bool, outcome: Result<Exchange, NoConnection>) -> Event {
    let answer = |said, rtt, timestamps, phases| {
        Event::Answered(Answer {
            measured: Some(Measured {
                rtt,
                timestamps,
                phases,
            }),
            said: Some(said),
            ..Answer::at(Moment::now(), sequence)
        })
    };
    match outcome {
        Ok(Exchange {
            head: Some(head),
            first_byte: Some(first_byte),
            connect,
            tls,
            ..
        }) => {
            let phases = Phases {
                connect,
                tls: tls.map(|tls| tls.handshake),
                first_byte,
            };
            let said = Said::Http(head.status);
            answer(said, first_byte, TimestampSource::User, Some(phases))
        }
        Ok(Exchange {
            error: Some(error), ..
        }) => Event::Told(error),
        // The answer to a SYN that was sent again is not that to the probe, which was lost.
        Ok(Exchange {
            syn_again: true, ..
        }) => Event::Told("a SYN or its answer was lost".to_owned()),
        Ok(seen) => answer(Said::SynAck, seen.connect, seen.connect_stamps, None),
        Err(NoConnection::Refused(_)) if asks => {
            Event::Told("the connection was refused: nothing listens at that port".to_owned())
        }
        Err(NoConnection::Refused(time)) => answer(Said::Reset, time, TimestampSource::User, None),
        Err(NoConnection::NoAnswer) => Event::Told("no answer to a SYN".to_owned()),
        Err(NoConnection::Unreachable(why) | NoConnection::Local(why)) => Event::Told(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_answers_a_connection_and_no_request() {
        let refused = || Err(NoConnection::Refused(Duration::from_millis(20)));
        let Event::Answered(answer) = event(3, false, refused()) else {
            panic!("the host answered");
        };
        assert_eq!((answer.sequence, answer.said), (3, Some(Said::Reset)));
        let asked = event(3, true, refused());
        assert!(
            matches!(&asked, Event::Told(why) if why.contains("refused")),
            "{asked:?}"
        );
    }
}
