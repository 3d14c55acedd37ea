//! When a thread gets the processor.

use std::io;

/// Gives the calling thread real-time priority (SCHED_FIFO), so that work due now is done now.
///
/// # Errors
/// Without CAP_SYS_NICE, and always in a user namespace.
pub fn set_realtime(priority: i32) -> io::Result<()> {
    // SAFETY: sched_param is plain data, for which all zeroes is a valid value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: pid 0 is the calling thread, and `parameters` outlives the call. SCHED_RESET_ON_FORK
    // keeps the priority from whatever this thread may start.
    let result = unsafe {
        libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const parameters,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
