//! What becomes of TCP's maximum segment size: routers quote the SYN as it came to them, and the
//! answer announces the far end's.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_wire::tcp_options;

use crate::path::retransmit::Rounds;
use crate::path::{Answer, AnswerKind, HopNetwork, Probe};

/// Hop limit of the SYN to the far end.
const FAR_HOPS: u8 = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What the SYN announced at each hop that quoted it so far: hop, who, bytes.
    pub hops: Vec<(u8, IpAddr, u16)>,
    /// What the far end's answer announced.
    pub answered: Option<u16>,
    /// Whether the far end answered at all, be it that it refuses connections.
    pub reached: bool,
    pub sent: u64,
}

impl Seen {
    /// The last hop that saw the SYN as it was sent, with `sent_bytes`, before a hop saw less; zero where the first hop
    /// known saw less. `None` where no hop saw less.
    pub fn lowered_after(&self, sent_bytes: u16) -> Option<u8> {
        let lowered = self.hops.iter().position(|(_, _, mss)| *mss < sent_bytes)?;
        let before = lowered.checked_sub(1).and_then(|at| self.hops.get(at));
        Some(before.map_or(0, |(ttl, _, _)| *ttl))
    }
}

/// Sends SYNs to the first `routers` hops and to the far end; `network` is one of TCP.
///
/// # Errors
/// Errors of the local kernel; `Interrupted` when it was stopped.
pub fn look(
    network: &mut impl HopNetwork,
    routers: u8,
    tries: u32,
    timeout: Duration,
    stop: &AtomicBool,
) -> io::Result<Seen> {
    let mut rounds = Rounds::new(network, tries.max(1), timeout, stop);
    // A flow each: one connection must not wait for another's end.
    let mut probes = vec![Probe::to(FAR_HOPS)];
    probes.extend((1..=routers).map(|hops| Probe {
        flow: hops.into(),
        ..Probe::to(hops)
    }));
    let answers = rounds.ask(&probes, |_, _| true)?;
    let far = answers.first().and_then(Option::as_ref);
    let quoted = |answer: &Answer| {
        let quote = answer.quoted()?;
        tcp_options::mss(quote.payload())
    };
    let hops = (1..=routers)
        .zip(answers.iter().skip(1))
        .filter_map(|(ttl, answer)| {
            let answer = answer.as_ref()?;
            Some((ttl, answer.from, quoted(answer)?))
        })
        .collect();
    Ok(Seen {
        hops,
        answered: far.and_then(|answer| tcp_options::mss(&answer.segment)),
        reached: far
            .is_some_and(|answer| matches!(answer.kind, AnswerKind::SynAck | AnswerKind::Reset)),
        sent: rounds.sent,
    })
}
