//! Which processor a laboratory in virtual time runs on. Its kernel and the programs in it take turns, so that they need
//! one: on two, each system call costs an interrupt of the other.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Abstract Unix sockets, one for each processor: the lab that has bound it runs there. The kernel frees it with its process.
const NAME: &str = "plumb-virtual-lab-processor";

/// A processor of one's own, for as long as this lives.
#[derive(Debug)]
pub(super) struct Processor {
    _taken: Option<UnixListener>,
}

impl Processor {
    /// Keeps this process, and what it starts from now on, on a processor on which no other laboratory in virtual time
    /// runs; on any where all have one.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub(super) fn take() -> io::Result<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        let numbers: Vec<usize> = (0..CpuSet::count())
            .filter(|number| allowed.is_set(*number).unwrap_or(false))
            .collect();
        let taken = numbers.iter().find_map(|number| {
            let address = SocketAddr::from_abstract_name(format!("{NAME}-{number}")).ok()?;
            Some((*number, UnixListener::bind_addr(&address).ok()?))
        });
        let (number, taken) = match taken {
            Some((number, socket)) => (Some(number), Some(socket)),
            // The results are the same, and it takes longer.
            None => {
                let any = std::process::id() as usize % numbers.len().max(1);
                (numbers.get(any).copied(), None)
            }
        };
        if let Some(number) = number {
            let mut one = CpuSet::new();
            one.set(number)?;
            sched_setaffinity(Pid::from_raw(0), &one)?;
        }
        Ok(Self { _taken: taken })
    }
}
