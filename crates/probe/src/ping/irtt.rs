//! Probes by irtt's protocol, answered by `irtt server` and by `plumb serve`.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use plumb_wire::irtt::{Agreed, Client, Echoed};

use crate::ping::channel::Channel;
use crate::ping::greeting::greet;
use crate::ping::plan::{Key, Plan, ProbeError, Sizes};
use crate::ping::sample::{Answer, FarEnd};
use crate::ping::socket::random_u32;
use crate::ping::strategy::{Event, Network};

/// How long the answers to the open packets are waited for (`DefaultOpenTimeouts` begins so): 3.5 s in all, above the fullest
/// queue that is met in homes.
const OPEN_WAITS_NS: [u64; 3] = [500_000_000, 1_000_000_000, 2_000_000_000];

/// What is asked for where the probes have no end.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// One session with an irtt server.
pub(crate) struct IrttEcho {
    channel: Channel,
    client: Client,
    id: u32,
    sizes: Sizes,
}

impl IrttEcho {
    /// Opens the socket, and the session.
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let key = match &plan.key {
            Some(Key::Irtt(key)) => Some(key.clone()),
            _ => None,
        };
        let wanted = Agreed {
            duration: plan.takes().unwrap_or(LONGEST),
            interval: plan.interval,
        };
        let mut this = Self {
            channel: Channel::udp(plan)?,
            client: Client::new(key, wanted, plan.sizes.largest(), plan.dscp),
            id: random_u32(&plan.far_end())?,
            sizes: plan.sizes,
        };
        let refuses = |why| ProbeError::IrttRefuses {
            far_end: plan.far_end(),
            why,
        };
        let agreed = Cell::new(None);
        greet(
            &mut this,
            plan,
            &OPEN_WAITS_NS,
            |this, _| this.channel.send(None, &this.client.open()),
            |this, _, until_ns| {
                let Self {
                    channel, client, ..
                } = this;
                let event = channel.receive_datagram(until_ns, |packet, _| {
                    if let Some(answer) = client.opened(packet) {
                        agreed.set(Some(answer));
                    }
                    None
                })?;
                Ok((agreed.get().is_some(), event))
            },
            |why, _| ProbeError::NoIrtt {
                far_end: plan.far_end(),
                why,
            },
        )?;
        match agreed.get() {
            Some(Ok(agreed)) => allows(agreed, wanted).map_err(refuses)?,
            Some(Err(refusal)) => return Err(refuses(refusal.to_string())),
            None => {}
        }
        Ok(this)
    }
}

/// Whether what the server grants is what the probes need; what to ask for where it is not.
fn allows(granted: Agreed, wanted: Agreed) -> Result<(), String> {
    if granted.interval > wanted.interval {
        return Err(format!(
            "it takes one packet every {:?} at most (-i)",
            granted.interval
        ));
    }
    if granted.duration < wanted.duration {
        return Err(format!(
            "it ends sessions after {:?}: ask for fewer packets (-c)",
            granted.duration
        ));
    }
    Ok(())
}

impl Drop for IrttEcho {
    fn drop(&mut self) {
        // Where it is lost, the server ends the session by itself.
        if let Some(packet) = self.client.close() {
            let _ = self.channel.send(None, &packet);
        }
    }
}

impl Network for IrttEcho {
    fn id(&self) -> u32 {
        self.id
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        let packet = self.client.echo(sequence, self.sizes.of(sequence));
        let packet = packet.ok_or_else(|| io::Error::other("the irtt session is not open"))?;
        self.channel.send(Some(sequence), &packet)
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let Self {
            channel, client, ..
        } = self;
        channel.receive_datagram(until_ns, |packet, at| {
            let Echoed {
                sequence,
                received,
                received_ns,
                sent_ns,
                ..
            } = client.reply(packet)?;
            Some(Answer {
                far_end: Some(FarEnd {
                    received_ns,
                    sent_ns,
                    // The server counts this one too.
                    count: received.checked_sub(1),
                    hop_limit: None,
                }),
                ..Answer::at(at, sequence)
            })
        })
    }
}
