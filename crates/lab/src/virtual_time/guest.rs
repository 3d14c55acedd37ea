//! Inside: the first program of the kernel. It furnishes the machine, runs one program and passes on what that reads and
//! prints.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::libc::O_NOCTTY;
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid, sync};
use plumb_net::namespace::{mount_devices, mount_kernel_fs};
use plumb_net::netlink::{Netlink, interface_index};
use plumb_net::terminal::{Raw, start_on_new};

use super::CONSOLE;
use super::frame::{Frame, Incoming, Start};
use crate::error::LabError;
use crate::supervise::exit_code;

/// How long the machine is up before anything runs in it, of time that costs nothing. Programs take a clock of 0 s since
/// the start for one that was never read: ping (iputils) sends everything at once.
const SETTLED: Duration = Duration::from_secs(60);

/// How often outside learns that time passes.
const SECOND: Duration = Duration::from_secs(1);

/// How long what the program printed is waited for once it has ended: a program that it left running may hold its
/// output open.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Runs what outside asks for, and ends the machine.
///
/// # Errors
/// When this is not the first program of a kernel whose time is virtual; everything later is said outside.
pub fn boot() -> Result<(), LabError> {
    if getpid() != Pid::from_raw(1) {
        let why = "this is what the kernel of a lab in virtual time runs first: plumb lab run --virtual starts it";
        return Err(LabError::Virtual(why.into()));
    }
    furnish()?;
    let console = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(O_NOCTTY)
        .open(Path::new("/dev").join(CONSOLE))?;
    let raw = Raw::set(console.as_fd())?;
    let outside = Outside(Arc::new(Mutex::new(console.try_clone()?)));
    outside.send(&Frame::Ready)?;
    let last = match run(console.try_clone()?, &outside) {
        Ok(status) => Frame::Ended(status),
        Err(e) => Frame::Failed(e.to_string()),
    };
    // What was written is on the host's disk before it hears of the end, because it takes the machine away then.
    sync();
    outside.send(&last)?;
    drop(raw);
    reboot(RebootMode::RB_POWER_OFF).map_err(io::Error::from)?;
    Ok(())
}

/// What a machine has before its first program: the kernel's own file systems, and a loopback interface that is up.
fn furnish() -> Result<(), LabError> {
    mount_kernel_fs("proc", Path::new("/proc"))?;
    mount_kernel_fs("sysfs", Path::new("/sys"))?;
    // The host's devices stand in /dev until the kernel's own do.
    if !Path::new("/dev").join(CONSOLE).exists() {
        mount_devices("devtmpfs", Path::new("/dev"))?;
    }
    for folder in ["/dev/pts", "/dev/shm"] {
        std::fs::create_dir_all(folder)?;
    }
    mount_devices("devpts", Path::new("/dev/pts"))?;
    for place in ["/dev/shm", "/run"] {
        mount_kernel_fs("tmpfs", Path::new(place))?;
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        symlink(to, Path::new("/dev").join(name))?;
    }
    thread::sleep(SETTLED);
    // Nodes may choose whatever this kernel has, which no other machine sees.
    let control = Path::new("/proc/sys/net/ipv4");
    let available = std::fs::read(control.join("tcp_available_congestion_control"))?;
    std::fs::write(control.join("tcp_allowed_congestion_control"), available)?;
    Netlink::open()?.set_up(interface_index("lo")?, None)?;
    Ok(())
}

/// The other end of the console, for several threads.
#[derive(Clone)]
struct Outside(Arc<Mutex<File>>);

impl Outside {
    fn send(&self, frame: &Frame) -> io::Result<()> {
        let mut console = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        console.write_all(&frame.to_bytes())
    }
}

/// Runs the program; its status, as a shell would show it.
fn run(mut console: File, outside: &Outside) -> Result<u32, LabError> {
    let mut incoming = Incoming::default();
    let start = match next(&mut console, &mut incoming)? {
        Frame::Start(start) => start,
        other => return Err(LabError::Virtual(format!("{other:?} came first"))),
    };
    let terminal = start.terminal;
    let mut command = command(*start)?;
    let (ended, ends) = mpsc::channel();
    let (input, readers) = match terminal {
        Some(size) => {
            let master = start_on_new(&mut command, size)?;
            let output = master.try_clone()?;
            let relay = (output, Frame::Output as fn(Vec<u8>) -> Frame);
            (Input::Terminal(File::from(master)), vec![relay])
        }
        None => {
            let (reads, input) = io::pipe()?;
            let (output, prints) = io::pipe()?;
            let (errors, complains) = io::pipe()?;
            command.stdin(reads).stdout(prints).stderr(complains);
            let relays = vec![
                (OwnedFd::from(output), Frame::Output as fn(Vec<u8>) -> Frame),
                (OwnedFd::from(errors), Frame::Errors),
            ];
            (Input::Pipe(Some(File::from(OwnedFd::from(input)))), relays)
        }
    };
    let program = command.get_program().display().to_string();
    let child = command
        .spawn()
        .map_err(|e| LabError::Virtual(format!("cannot run {program}: {e}")))?;
    // Its ends of the pipes are the program's alone now.
    drop(command);
    let pid = Pid::from_raw(child.id() as i32);
    let relays = readers.len();
    for (output, kind) in readers {
        relay("output", output, kind, outside.clone(), ended.clone())?;
    }
    seconds(outside.clone())?;
    listen(console, incoming, input, pid)?;
    // The first program of a machine inherits every orphan.
    let status = loop {
        let status = waitpid(None, None).map_err(io::Error::from)?;
        if status.pid() == Some(pid) {
            break exit_code(status);
        }
    };
    all_printed(&ends, relays);
    Ok(u32::try_from(status).unwrap_or_default())
}

/// The program as it was asked for.
fn command(start: Start) -> Result<Command, LabError> {
    let text = OsString::from_vec;
    let mut words = start.command.into_iter().map(text);
    let program = words
        .next()
        .ok_or_else(|| LabError::Virtual("there is no command to run".into()))?;
    umask(Mode::from_bits_truncate(start.file_mode_mask));
    let mut command = Command::new(program);
    command
        .args(words)
        .env_clear()
        .envs(
            start
                .environment
                .into_iter()
                .map(|(name, value)| (text(name), text(value))),
        )
        .current_dir(PathBuf::from(text(start.directory)));
    Ok(command)
}

/// The program's side of what the user types or pipes in.
enum Input {
    /// Closed, and gone, at the end of the input.
    Pipe(Option<File>),
    Terminal(File),
}

impl Input {
    /// A program that reads no more is none of ours.
    fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::Pipe(pipe) if bytes.is_empty() => *pipe = None,
            Self::Pipe(Some(file)) | Self::Terminal(file) => {
                let _ = file.write_all(bytes);
            }
            Self::Pipe(None) => {}
        }
    }
}

/// Passes on what a descriptor has to read. The thread ends with the last program that can write to it.
fn relay(
    name: &str,
    from: OwnedFd,
    kind: fn(Vec<u8>) -> Frame,
    outside: Outside,
    ended: Sender<()>,
) -> io::Result<()> {
    let mut from = File::from(from);
    thread::Builder::new().name(name.into()).spawn(move || {
        let mut buffer = vec![0; 65_536];
        // A terminal that no program has open any more fails (EIO).
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if outside.send(&kind(bytes)).is_err() {
                break;
            }
        }
        let _ = ended.send(());
    })?;
    Ok(())
}

/// Says outside that time passes. The thread ends with the machine.
fn seconds(outside: Outside) -> io::Result<()> {
    thread::Builder::new()
        .name("seconds".into())
        .spawn(move || {
            while outside.send(&Frame::Second).is_ok() {
                thread::sleep(SECOND);
            }
        })?;
    Ok(())
}

/// Hands on input and signals. The thread ends with the machine.
fn listen(
    mut console: File,
    mut incoming: Incoming,
    mut input: Input,
    program: Pid,
) -> io::Result<()> {
    thread::Builder::new().name("input".into()).spawn(move || {
        loop {
            match next(&mut console, &mut incoming) {
                Ok(Frame::Input(bytes)) => input.write(&bytes),
                Ok(Frame::Signal(number)) => {
                    let signal = Signal::try_from(i32::try_from(number).unwrap_or_default());
                    // It may have ended just now.
                    let _ = signal.map(|signal| kill(program, signal));
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(())
}

/// The next frame from outside.
fn next(console: &mut File, incoming: &mut Incoming) -> Result<Frame, LabError> {
    let mut buffer = [0; 4096];
    loop {
        match incoming.take() {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => {}
            Err(e) => return Err(LabError::Virtual(e.to_string())),
        }
        let length = console.read(&mut buffer)?;
        if length == 0 {
            return Err(LabError::Virtual("the console has ended".into()));
        }
        incoming.add(buffer.get(..length).unwrap_or_default());
    }
}

/// Waits until as many relays have ended, or the time for it is over.
fn all_printed(ends: &Receiver<()>, relays: usize) {
    for _ in 0..relays {
        if ends.recv_timeout(LAST_OUTPUT).is_err() {
            return;
        }
    }
}
