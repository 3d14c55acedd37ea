//! A direction of a link as the kernel's own queueing disciplines: the arguments of `tc` (iproute2). Pure: it renders,
//! and the caller runs it.
//!
//! The tree at a device, from the outside: netem(8) for delay and loss ([`Netem`]), inside it tbf(8)
//! for the rate ([`Line`]), inside that the queue ([`Queue`]); or tc-cake(8), which is both. The
//! kernel knows no other order: only netem hands packets on to another discipline when it is done
//! with them (`netem_dequeue`, `net/sched/sch_netem.c`), the rest decide when a packet *leaves* the
//! tree. A constant delay before a rate is the same as one behind it; where the order shows, the
//! rendering says so.
//!
//! What differs from plumb's own links: a packet that meets a free line leaves at once and not
//! after its own time on the line, and after an idle time the line may run ahead by
//! `line::BURST_TIME`.

mod line;
pub(crate) mod links;
mod netem;
mod queue;
#[cfg(test)]
mod tests;
mod words;

use plumb_link::spec::{CellSpec, ChainSpec, NamedCell};

pub use self::line::Line;
pub use self::netem::{Loss, Netem};
pub use self::queue::Queue;
use self::words::words;

/// What the kernel cannot do of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel cannot be the cell '{cell}': {reason}; use --backend emulated (the default)")]
pub struct KernelError {
    pub cell: String,
    pub reason: String,
}

/// What a device is given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    pub netem: Netem,
    /// Rate and queue, behind them.
    pub line: Option<Line>,
    /// In what the kernel deviates from the chain.
    pub notes: Vec<String>,
}

impl Tree {
    /// The tree that does what a chain does.
    ///
    /// # Errors
    /// When the kernel cannot; the error names the cell.
    pub fn render(chain: &ChainSpec) -> Result<Self, KernelError> {
        let mut tree = Self::default();
        for NamedCell { name, cell } in &chain.0 {
            tree.add(name, cell).map_err(|reason| KernelError {
                cell: name.clone(),
                reason,
            })?;
        }
        Ok(tree)
    }

    /// Another cell behind those that it has.
    fn add(&mut self, name: &str, cell: &CellSpec) -> Result<(), String> {
        match cell {
            CellSpec::Shaper(spec) => {
                if self.line.is_some() {
                    return Err(
                        "a device of the kernel has one rate, and this is the second".to_owned(),
                    );
                }
                self.line = Some(Line::of(spec)?);
            }
            CellSpec::Delay(spec) => {
                self.netem.add_delay(spec)?;
                if self.line.is_some() && !self.netem.jitter.is_zero() {
                    self.notes.push(format!(
                        "the kernel varies the delay ('{name}') before the rate and not behind it"
                    ));
                }
            }
            CellSpec::Bernoulli(_) | CellSpec::GilbertElliott(_) | CellSpec::Markov4(_) => {
                self.netem.add_loss(cell)?;
                if self.line.is_some() {
                    self.notes.push(format!(
                        "the kernel loses packets ('{name}') before the rate and not behind it, so that lost packets take none of it"
                    ));
                }
            }
            CellSpec::Duplicate(spec) => {
                self.netem.add_duplicates(spec)?;
                if self.line.is_some() {
                    self.notes.push(format!(
                        "the kernel duplicates packets ('{name}') before the rate and not behind it, so that copies take some of it"
                    ));
                }
            }
            CellSpec::Corrupt(spec) => {
                self.netem.add_corruption(spec)?;
                self.notes.push(format!(
                    "the kernel turns bits ('{name}') in headers too, of Ethernet and IP"
                ));
            }
            _ => return Err("it has nothing of the kind".to_owned()),
        }
        Ok(())
    }

    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.netem.is_nothing() && self.line.is_none()
    }

    /// The commands that install it on `device`, whose largest packet has `mtu_bytes`. Handles
    /// are numbered from `handle`, the root's.
    pub fn commands(&self, device: &str, mtu_bytes: u32, handle: u16) -> Vec<Vec<String>> {
        let mut commands: Vec<Vec<String>> = Vec::new();
        let mut handle = handle;
        let mut add = |stab: Option<i64>, what: Vec<String>| {
            let at = if commands.is_empty() {
                words("root")
            } else {
                words(&format!("parent {:x}:1", handle - 1))
            };
            let mut command = words(&format!("qdisc add dev {device}"));
            command.extend(at);
            command.extend(words(&format!("handle {handle:x}:")));
            if let Some(overhead) = stab.filter(|overhead| commands.is_empty() && *overhead != 0) {
                command.extend(words(&format!("stab overhead {overhead}")));
            }
            command.extend(what);
            commands.push(command);
            handle = handle.wrapping_add(1);
        };
        // A size table at the root holds for all inside (`qdisc_calculate_pkt_len`): with it the
        // tree counts IP bytes, as plumb's own queues do.
        let stab = self.line.as_ref().map(Line::stab_overhead);
        if !self.netem.is_nothing() {
            add(
                stab,
                self.netem.arguments(self.netem.limit(self.line.as_ref())),
            );
        }
        if let Some(line) = &self.line {
            add(stab, line.arguments(mtu_bytes));
            if let Queue::Leaf { options, .. } = &line.queue {
                add(None, options.clone());
            }
        }
        commands
    }
}
