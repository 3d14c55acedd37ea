//! Queues before a line: which packets are admitted, and which leaves next. One file per algorithm.

pub mod cake;
pub mod codel;
pub mod docsis_pie;
pub mod dualpi2;
pub mod fifo;
pub mod fq_codel;
pub mod host_fair;
mod list;
pub mod pie;
pub mod priority;
pub mod red;
#[cfg(test)]
pub(crate) mod sim;
mod single;
mod spec;
mod ticks;

use plumb_model::units::BitRate;

pub use self::spec::QueueSpec;
use crate::backlog::Backlog;
use crate::packet::Packet;
use crate::settings::KindOf;
use crate::tally::Tally;
use crate::time::Time;

/// A queue before a line. Packets come framed, in time order.
pub(crate) trait Queue: Send {
    /// Takes a packet or drops it. `on_line` is what the line holds of the packet that it is
    /// sending: a buffer keeps a packet until its last bit has left.
    fn enqueue(&mut self, now: Time, packet: Packet, on_line: Backlog, tally: &mut Tally);

    /// The packet to send next; the line is free at `now`.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet>;

    fn backlog(&self) -> Backlog;

    /// Whether a packet may be a large segment; most algorithms decide about each packet of the
    /// wire.
    fn takes_large_segments(&self) -> bool {
        false
    }

    /// Gives up what waits, in order of arrival.
    fn drain(&mut self) -> Vec<Packet>;
}

/// A queue with settings of its own.
pub(crate) trait Adjust {
    type Spec;

    /// Takes new settings without disturbing what waits; `false` when it must be built anew.
    fn reconfigure(&mut self, spec: Self::Spec, rate: BitRate) -> bool;
}

/// A queue whose settings are one kind of `K`.
pub(crate) trait AnyQueue<K>: Queue {
    /// Takes new settings without disturbing what waits; `false` when it must be built anew, as
    /// another kind must.
    fn set(&mut self, spec: &K, rate: BitRate) -> bool;
}

impl<K, Q> AnyQueue<K> for Q
where
    Q: Queue + Adjust,
    Q::Spec: KindOf<K>,
{
    fn set(&mut self, spec: &K, rate: BitRate) -> bool {
        Q::Spec::of(spec).is_some_and(|spec| self.reconfigure(spec, rate))
    }
}

/// A list of kinds of queues, all of which it can build. Queues of queues take it as a parameter,
/// because they are on the list themselves.
pub(crate) trait QueueKinds: Send + Sized + 'static {
    /// A queue of this kind, before a line of this rate; `seed` decides whatever is random in it.
    fn build(&self, rate: BitRate, seed: u64) -> Box<dyn AnyQueue<Self>>;
}
