//! A laboratory in virtual time: the same laboratory, inside a Linux that is a process of this machine and whose clock is
//! its own (User Mode Linux, `time-travel=inf-cpu` in `arch/um/kernel/time.c`).
//!
//! Computing takes no time there and waiting passes at once, so that packets are on time whatever the machine does, and
//! the same seed gives the same figures. It needs no root: the user is root inside, with the user's own rights on the
//! machine's files (hostfs).
//!
//! Two sides: `host.rs` starts the kernel and stands between it and the user; `guest.rs` is the first program in it. They
//! talk over a console of that kernel (`frame.rs`).

mod frame;
mod guest;
mod host;
mod kernel;
mod processor;

use plumb_net::clock;

pub use self::guest::boot;
pub use self::host::{Settings, run};
pub use self::kernel::KERNEL_VARIABLE;

/// The console that both sides talk over, in the guest's /dev.
const CONSOLE: &str = "tty1";

/// Whether this process is inside already.
pub fn inside() -> bool {
    clock::is_virtual()
}
