//! Sending many probes at once, and those without an answer again.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::probe::{Answer, HopNetwork, Probe, ProbeId};

/// From one probe of a round to the next: a round of sixteen full packets passes a line of 6 Mbit/s at the pace at
/// which it is sent, and the queue of a slower one holds it.
const GAP_NS: u64 = 2_000_000;

/// Answers that take longer than twice the longest round trip and this are not waited for.
const SLACK_NS: u64 = 150_000_000;

/// How often the request to stop is looked at while answers are waited for.
pub(crate) const LOOK_NS: u64 = 100_000_000;

/// Sends rounds of probes.
#[derive(Debug)]
pub(crate) struct Rounds<'a, N> {
    network: &'a mut N,
    stop: &'a AtomicBool,
    /// Times that a probe is sent before it counts as lost (RFC 8899, section 5.1.2: MAX_PROBES).
    tries: u32,
    /// Longest wait for an answer.
    timeout_ns: u64,
    longest_rtt: Option<Duration>,
    pub(crate) sent: u64,
}

impl<'a, N: HopNetwork> Rounds<'a, N> {
    pub(crate) fn new(
        network: &'a mut N,
        tries: u32,
        timeout: Duration,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            network,
            stop,
            tries,
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            longest_rtt: None,
            sent: 0,
        }
    }

    /// Sends each probe until it is answered, or has been tried as often as there are tries.
    /// Before each round `wanted` says, by what was answered so far, whether a probe is still of
    /// interest.
    ///
    /// # Errors
    /// Errors of the kernel; `Interrupted` when it is to stop, so that silence is not taken for a loss.
    pub(crate) fn ask(
        &mut self,
        probes: &[Probe],
        wanted: impl Fn(usize, &[Option<Answer>]) -> bool,
    ) -> io::Result<Vec<Option<Answer>>> {
        let mut answers: Vec<Option<Answer>> = vec![None; probes.len()];
        let mut left = self.tries;
        while left > 0 {
            left -= 1;
            let open: Vec<(usize, &Probe)> = probes
                .iter()
                .enumerate()
                .filter(|(index, _)| {
                    answers.get(*index).is_some_and(Option::is_none) && wanted(*index, &answers)
                })
                .collect();
            if open.is_empty() {
                break;
            }
            self.round(&open, &mut answers, &wanted)?;
        }
        Ok(answers)
    }

    fn round(
        &mut self,
        probes: &[(usize, &Probe)],
        answers: &mut [Option<Answer>],
        wanted: &impl Fn(usize, &[Option<Answer>]) -> bool,
    ) -> io::Result<()> {
        let mut waiting: BTreeMap<ProbeId, usize> = BTreeMap::new();
        for (index, probe) in probes {
            match self.network.send(probe) {
                Ok(id) => {
                    self.sent += 1;
                    waiting.insert(id, *index);
                }
                // Larger than our own interface takes, our own queue full, an interface that
                // comes and goes: lost, and tried again.
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(error),
            }
            self.go_on()?;
            let until_ns = self.network.now_ns().saturating_add(GAP_NS);
            self.listen(until_ns, &mut waiting, answers, wanted)?;
        }
        let until_ns = self.network.now_ns().saturating_add(self.wait_ns());
        self.listen(until_ns, &mut waiting, answers, wanted)
    }

    /// Takes answers until that time, or until none is of interest any more.
    fn listen(
        &mut self,
        until_ns: u64,
        waiting: &mut BTreeMap<ProbeId, usize>,
        answers: &mut [Option<Answer>],
        wanted: &impl Fn(usize, &[Option<Answer>]) -> bool,
    ) -> io::Result<()> {
        while waiting.values().any(|index| wanted(*index, answers)) {
            self.go_on()?;
            let look_ns = self.network.now_ns().saturating_add(LOOK_NS);
            let Some(answered) = self.network.receive(until_ns.min(look_ns))? else {
                if self.network.now_ns() >= until_ns {
                    break;
                }
                continue;
            };
            let Some(index) = waiting.remove(&answered.id) else {
                continue;
            };
            self.longest_rtt = self.longest_rtt.max(Some(answered.rtt));
            if let Some(answer) = answers.get_mut(index) {
                answer.get_or_insert(answered.answer);
            }
        }
        Ok(())
    }

    /// Unless it is to stop.
    fn go_on(&self) -> io::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }

    /// How long to wait for the answers of a round.
    fn wait_ns(&self) -> u64 {
        let expected = self.longest_rtt.map(|rtt| {
            let rtt_ns = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
            rtt_ns.saturating_mul(2).saturating_add(SLACK_NS)
        });
        expected.unwrap_or(u64::MAX).min(self.timeout_ns)
    }
}

/// Whether a failure to send is like a loss: the packet was too large, or there was no buffer or no
/// route, which may be over the next time.
pub(crate) fn is_loss(error: &io::Error) -> bool {
    /// errno(3).
    const EMSGSIZE: i32 = 90;
    const ENETDOWN: i32 = 100;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(EMSGSIZE | ENETDOWN | ENOBUFS))
        || matches!(
            error.kind(),
            io::ErrorKind::WouldBlock
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::ConnectionRefused
        )
}
