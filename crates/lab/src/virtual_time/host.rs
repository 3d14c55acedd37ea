//! Outside: starts the kernel, and stands between what runs in it and the user.

use std::ffi::OsString;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write, stderr, stdin, stdout};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::stat::{Mode, umask};
use nix::sys::statvfs::{FsFlags, statvfs};
use plumb_net::process::{end_with_starter, kill_group};
use plumb_net::terminal::{Raw, size};

use super::frame::{Frame, Incoming, Start};
use super::processor::Processor;
use super::{CONSOLE, kernel};
use crate::error::LabError;
use crate::program::{keep_last_words, with_last_words};
use crate::supervise::{LAB_FAILED, outside_signals};

/// Memory of the guest, of which the host gives what is used: a lab of two hosts takes 100 MB.
const MEMORY_MIB: u64 = 2048;

/// Where that memory lies: a file system in memory from which programs may run (`os-Linux/mem.c` of User Mode Linux).
const MEMORY_FOLDERS: [&str; 3] = ["/dev/shm", "/run/shm", "/tmp"];

/// What must be free there.
const LEAST_FREE_BYTES: u64 = 256 << 20;

/// How long the kernel may take to boot: 1 s of a processor, on a machine that many use.
const BOOTS_WITHIN: Duration = Duration::from_secs(120);

/// How long a program may go on after a signal that ends it, of real time.
const GRACE: Duration = Duration::from_secs(10);

/// What the user may say of a lab in virtual time.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The kernel; `None` for the first that is found.
    pub kernel: Option<PathBuf>,
    /// How long this machine may take over a second of virtual time. The guest reports every second of its own. A program
    /// that computes, or waits awake, keeps that from passing; so do many packets on a slow machine.
    pub patience: Duration,
}

/// What the kernel says before it ends (`start_up.c` and `trap.c` of User Mode Linux), and what that means for the user.
const MEANINGS: [(&str, &str); 2] = [
    (
        "check_ptrace",
        "it may neither trace programs here (ptrace) nor filter their system calls (seccomp), as in some containers and \
         under a hardened kernel; run it outside of them, or leave --virtual out",
    ),
    (
        "likely just ran out of space",
        "the folder in which its memory lies is full; set TMPDIR to one with more room",
    ),
];

/// Runs a command in a kernel whose time is virtual and returns its exit status. Arguments, environment, directory and
/// files are those that it would have here.
///
/// It ends with the command, and with this process, however that comes about.
///
/// # Errors
/// When there is no kernel, it does not boot, or nothing moves in it.
pub fn run(settings: &Settings, command: &[OsString]) -> Result<i32, LabError> {
    let kernel = kernel::find(settings.kernel.as_deref())?;
    // Before any thread, so that all have them blocked and only the descriptor sees them.
    let signals = outside_signals()?;
    let _processor = Processor::take()?;
    let (takes, to_guest) = io::pipe()?;
    let (from_guest, gives) = io::pipe()?;
    let mut machine = Machine::start(&kernel, &takes.into(), &gives.into())?;
    let stdio = UserSide::of_this_process();
    let start = start(command, stdio.terminal)?;
    let status = Session {
        to_guest,
        from_guest,
        stdio,
        start: Some(start),
        patience: settings.patience,
        heard: Instant::now(),
        kill_at: None,
    }
    .run(&signals);
    match status {
        Ok(status) => Ok(status),
        Err(Problem::Lab(error)) => Err(error),
        Err(Problem::Ended) => Err(machine.last_words(&kernel)),
    }
}

/// What the guest is to run.
fn start(command: &[OsString], terminal: Option<(u16, u16)>) -> io::Result<Start> {
    // Reading it sets it (umask(2)).
    let mask = umask(Mode::empty());
    umask(mask);
    let environment = std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()));
    Ok(Start {
        command: command
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        environment: environment.collect(),
        directory: std::env::current_dir()?.into_os_string().into_vec(),
        terminal,
        file_mode_mask: mask.bits(),
    })
}

/// The kernel's process. Ended when dropped, with all that runs in it: its programs are processes that end with it
/// (`PR_SET_PDEATHSIG` in `arch/um/kernel/skas/stub_exe.c`).
struct Machine {
    child: Child,
    words: Receiver<String>,
}

impl Machine {
    fn start(kernel: &Path, takes: &OwnedFd, gives: &OwnedFd) -> Result<Self, LabError> {
        let program = std::env::current_exe()?;
        let program = quoted(&program)?;
        let memory = memory_folder()?;
        for end in [takes, gives] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::empty())).map_err(io::Error::from)?;
        }
        let (words, said) = io::pipe()?;
        let mut command = Command::new(kernel);
        command
            .arg("time-travel=inf-cpu")
            // The clock of today, whose seconds the guest counts on.
            .arg(format!(
                "time-travel-start={}",
                plumb_net::clock::realtime_ns()
            ))
            // The faster of two means to catch the programs' system calls, where this kernel and the host have it.
            .arg("seccomp=auto")
            .arg(format!("mem={MEMORY_MIB}M"))
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"])
            // Without a console of its own, the kernel would add one behind what is for the first program.
            .args([
                "quiet",
                "panic=-1",
                "console=tty0",
                "con=null",
                "con0=null,fd:1",
            ])
            .arg(format!(
                "con{}=fd:{},fd:{}",
                CONSOLE.trim_start_matches("tty"),
                takes.as_raw_fd(),
                gives.as_raw_fd()
            ))
            // Where it would keep files about itself. It runs without them.
            .arg("uml_dir=/proc/plumb-keeps-none/")
            .arg(format!("init={program}"))
            .args(["--", "lab", "boot"])
            .env_clear()
            .env("TMPDIR", memory)
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            // A key on the terminal is for the program inside, which hears of it from here.
            .process_group(0);
        end_with_starter(&mut command);
        let child = command.spawn().map_err(|e| {
            LabError::Virtual(format!(
                "cannot run the lab's kernel {}: {e}",
                kernel.display()
            ))
        })?;
        let words = keep_last_words(words)?;
        Ok(Self { child, words })
    }

    /// Why it ended of its own accord.
    fn last_words(&mut self, kernel: &Path) -> LabError {
        let how = self
            .child
            .wait()
            .map_or_else(|e| e.to_string(), crate::program::describe);
        let problem = format!("the lab's kernel {} ended ({how})", kernel.display());
        let said = with_last_words(&problem, Some(&self.words));
        let meaning = MEANINGS.iter().find(|(words, _)| said.contains(words));
        LabError::Virtual(meaning.map_or(said, |(_, meaning)| format!("{problem}: {meaning}")))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        kill_group(&self.child);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A path as a word of a kernel's command line (`next_arg` in `lib/cmdline.c`).
fn quoted(path: &Path) -> Result<String, LabError> {
    match path.to_str() {
        Some(path) if !path.contains('"') => Ok(format!("\"{path}\"")),
        _ => Err(LabError::Virtual(format!(
            "the path of this program, {}, cannot be given to a kernel: move it where the path is plain text",
            path.display()
        ))),
    }
}

/// Where the guest's memory can lie.
fn memory_folder() -> Result<PathBuf, LabError> {
    let mut obstacles = Vec::new();
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    for folder in MEMORY_FOLDERS.iter().map(PathBuf::from).chain(named) {
        match obstacle(&folder) {
            None => return Ok(folder),
            Some(obstacle) => obstacles.push(format!("{} {obstacle}", folder.display())),
        }
    }
    Err(LabError::Virtual(format!(
        "there is no room for the memory of a lab in virtual time: {}; set TMPDIR to a folder with {} MiB free, from which \
         programs may run",
        obstacles.join(", "),
        LEAST_FREE_BYTES >> 20
    )))
}

/// What keeps the guest's memory out of a folder.
fn obstacle(folder: &Path) -> Option<String> {
    let system = match statvfs(folder) {
        Ok(system) => system,
        Err(e) => return Some(format!("cannot be read ({e})")),
    };
    let free = system.blocks_available() as u64 * system.fragment_size() as u64;
    if system.flags().contains(FsFlags::ST_NOEXEC) {
        Some("allows no programs (noexec)".into())
    } else if free < LEAST_FREE_BYTES {
        Some(format!("has {} MiB free", free >> 20))
    } else {
        None
    }
}

/// What the user's side of the program is.
struct UserSide {
    /// Rows and columns of the terminal that it is to have; `None` where input or output is none.
    terminal: Option<(u16, u16)>,
    /// The terminal, which passes every key on.
    _raw: Option<Raw<io::Stdin>>,
    /// Whether there is input to hand on. A terminal whose output goes elsewhere is left to the program that reads that.
    input: bool,
}

impl UserSide {
    fn of_this_process() -> Self {
        let terminal = size().filter(|_| stdin().is_terminal() && stdout().is_terminal());
        let terminal = terminal.and_then(|(columns, rows)| {
            Some((u16::try_from(rows).ok()?, u16::try_from(columns).ok()?))
        });
        Self {
            terminal,
            _raw: terminal.and_then(|_| Raw::set(stdin()).ok()),
            input: terminal.is_some() || !stdin().is_terminal(),
        }
    }
}

/// Why a session has no status.
enum Problem {
    Lab(LabError),
    /// The kernel went away.
    Ended,
}

impl From<LabError> for Problem {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Lab(LabError::Output(error))
    }
}

/// The conversation with the guest.
struct Session {
    to_guest: PipeWriter,
    from_guest: PipeReader,
    stdio: UserSide,
    /// Until the guest is ready for it.
    start: Option<Start>,
    patience: Duration,
    /// When the guest last said something.
    heard: Instant,
    /// When the guest is given up, after a signal.
    kill_at: Option<Instant>,
}

impl Session {
    /// Until the program has ended.
    fn run(mut self, signals: &SignalFd) -> Result<i32, Problem> {
        let mut incoming = Incoming::default();
        let mut buffer = vec![0; 65_536];
        loop {
            let (heard, typed, signalled) = self.wait(signals)?;
            if signalled {
                self.pass_signals(signals)?;
            }
            if typed {
                self.pass_input(&mut buffer)?;
            }
            if heard {
                let length = match self.from_guest.read(&mut buffer) {
                    Ok(0) | Err(_) => return Err(Problem::Ended),
                    Ok(length) => length,
                };
                self.heard = Instant::now();
                incoming.add(buffer.get(..length).unwrap_or_default());
            }
            while let Some(frame) = incoming
                .take()
                .map_err(|e| LabError::Virtual(e.to_string()))?
            {
                if let Some(status) = self.take(frame)? {
                    return Ok(status);
                }
            }
            self.check()?;
        }
    }

    /// Waits for the guest, input or a signal; which of them there is.
    fn wait(&self, signals: &SignalFd) -> Result<(bool, bool, bool), Problem> {
        let until = self.kill_at.map_or(self.heard + self.patience(), |at| {
            at.min(self.heard + self.patience())
        });
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let input = stdin();
        let wants_input = self.stdio.input && self.start.is_none();
        let mut fds = [
            PollFd::new(self.from_guest.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(input.as_fd(), PollFlags::POLLIN),
        ];
        let used = if wants_input { 3 } else { 2 };
        let fds = fds.get_mut(..used).unwrap_or_default();
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(fds, left) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(io::Error::from(e).into()),
        }
        let ready = |at: usize| fds.get(at).and_then(PollFd::any).unwrap_or(false);
        Ok((ready(0), ready(2), ready(1)))
    }

    /// How long the guest may say nothing.
    fn patience(&self) -> Duration {
        match self.start {
            Some(_) => BOOTS_WITHIN,
            None => self.patience,
        }
    }

    fn check(&self) -> Result<(), Problem> {
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            let why = format!(
                "the command did not end within {} s of the signal, and was killed",
                GRACE.as_secs()
            );
            return Err(LabError::Virtual(why).into());
        }
        if self.heard.elapsed() < self.patience() {
            return Ok(());
        }
        let seconds = self.patience().as_secs();
        let why = match self.start {
            Some(_) => format!("the lab's kernel did not boot within {seconds} s"),
            None => format!(
                "no time passed in the lab for {seconds} s of this machine's: a program in it computes, or waits awake, \
                 and virtual time passes only while programs sleep; the lab was ended (--patience allows it longer)"
            ),
        };
        Err(LabError::Virtual(why).into())
    }

    fn send(&mut self, frame: &Frame) -> Result<(), Problem> {
        self.to_guest
            .write_all(&frame.to_bytes())
            .map_err(|_| Problem::Ended)
    }

    fn pass_signals(&mut self, signals: &SignalFd) -> Result<(), Problem> {
        if let Some(info) = signals.read_signal().map_err(io::Error::from)? {
            match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => {
                    self.kill_at.get_or_insert_with(|| Instant::now() + GRACE);
                    if self.start.is_some() {
                        // Nothing runs yet.
                        self.kill_at = Some(Instant::now());
                    } else {
                        self.send(&Frame::Signal(signal as u32))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn pass_input(&mut self, buffer: &mut [u8]) -> Result<(), Problem> {
        // Its failing is its end.
        let length = nix::unistd::read(stdin(), buffer).unwrap_or(0);
        self.stdio.input = length > 0;
        let bytes = buffer.get(..length).unwrap_or_default().to_vec();
        self.send(&Frame::Input(bytes))
    }

    /// The program's status, once it has ended.
    fn take(&mut self, frame: Frame) -> Result<Option<i32>, Problem> {
        match frame {
            Frame::Ready => {
                if let Some(start) = self.start.take() {
                    self.send(&Frame::Start(Box::new(start)))?;
                }
            }
            Frame::Output(bytes) => {
                let mut out = stdout().lock();
                out.write_all(&bytes).and_then(|()| out.flush())?;
            }
            Frame::Errors(bytes) => stderr().write_all(&bytes)?,
            Frame::Second => {}
            Frame::Ended(status) => return Ok(Some(i32::try_from(status).unwrap_or(LAB_FAILED))),
            Frame::Failed(why) => return Err(LabError::Virtual(why).into()),
            Frame::Start(_) | Frame::Input(_) | Frame::Signal(_) => {
                return Err(
                    LabError::Virtual("the guest sent what only the host does".into()).into(),
                );
            }
        }
        Ok(None)
    }
}
