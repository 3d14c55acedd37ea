//! A process that undoes a change after a while, or when the one that made it is killed.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use crate::output::print;

/// How long it waits for another plumb to be done, before it tries again.
pub(crate) const RETRY: Duration = Duration::from_millis(200);

/// What it says when it stands on its own.
const STANDS: &str = "watching\n";

/// Starts this program with other words, and returns when that process stands on its own: whatever ends this one from then
/// on leaves it alone. With a pipe, it sees this one end by the pipe that this one holds open.
pub(crate) fn start(
    words: impl IntoIterator<Item = String>,
    with_pipe: bool,
) -> anyhow::Result<Child> {
    let failed = "cannot start the process that would undo it: nothing was changed";
    let mut child = Command::new("/proc/self/exe")
        .args(words)
        .stdin(if with_pipe {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context(failed)?;
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut said).context(failed)?;
    }
    anyhow::ensure!(said == STANDS, failed);
    Ok(child)
}

/// Makes this process stand on its own: it has a session of its own, so that it outlives the terminal, and heeds no signal
/// but SIGKILL.
pub(crate) fn stand() -> anyhow::Result<()> {
    plumb_net::process::detach().context("cannot detach")?;
    print(STANDS)?;
    // The one that started it waits for the end of the pipe.
    plumb_net::process::close_stdout()?;
    Ok(())
}

/// Waits until the one that started it ends, or that time is over.
pub(crate) fn wait_for_input_or(time: Duration) {
    let (open, ended) = mpsc::channel::<()>();
    // It ends with the input, or with this process.
    thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(open);
    });
    let _ = ended.recv_timeout(time);
}

/// Ends a watchdog, which heeds nothing else.
pub(crate) fn stop(watchdog: Option<Child>) {
    if let Some(mut watchdog) = watchdog {
        let _ = watchdog.kill();
        let _ = watchdog.wait();
    }
}
