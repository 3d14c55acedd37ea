//! A command that prints a number. It runs without a shell unless the file asks for one, in a process group of its own, which
//! is killed with it.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_net::process::kill_group;

use super::kind::{FarEnd, Kind, Probed};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// How long a command may take unless the file says otherwise, and at most.
const WITHIN: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

/// A command a minute.
const EVERY: Duration = Duration::from_secs(60);

/// More output than this is no number, in bytes.
const MOST_OUTPUT: u64 = 4096;

/// Larger numbers do not fit the history, which keeps them in units of a ten-millionth in 64 bits.
const LARGEST: f64 = 1e11;

/// How often it is looked whether the command ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is left of a group that was killed ends within this.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Command {
    program: String,
    arguments: Vec<String>,
    within: Duration,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let shell: bool = settings.take("shell")?.unwrap_or_default();
    let words = match shell {
        true => {
            let line: String = settings.need("command", "command = \"what the shell runs\"")?;
            vec!["/bin/sh".to_owned(), "-c".to_owned(), line]
        }
        false => settings.need::<Vec<String>>(
            "command",
            "command = [\"/path/to/program\", \"argument\"]; for a line of a shell add shell = true",
        )?,
    };
    let mut words = words.into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    Ok(Box::new(Command {
        program: program.ok_or_else(|| settings.wrong("command", "the command is empty"))?,
        arguments: words.collect(),
        within: settings
            .time("within", (Duration::from_millis(100), LONGEST))?
            .unwrap_or(WITHIN),
    }))
}

impl Kind for Command {
    fn probe(&self, _far: &FarEnd<'_>) -> Result<Probed, String> {
        let probed = Probed::now();
        let started = Process::new(&self.program)
            .args(&self.arguments)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let child = started.map_err(|error| format!("{} cannot be run: {error}", self.program))?;
        let (status, printed) = self.ended(child)?;
        Ok(match (status, printed) {
            (Err(why), _) => probed.lost(why),
            (Ok(status), _) if !status.success() => {
                probed.lost(format!("{} ended with {status}", self.program))
            }
            (Ok(_), printed) => match number(&printed) {
                Ok(value) => probed.with(value),
                Err(why) => probed.lost(format!("{} {why}", self.program)),
            },
        })
    }

    fn unit(&self) -> Unit {
        Unit::Number
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn is_remote(&self) -> bool {
        false
    }
}

impl Command {
    /// How it ended, or why it was killed, and what it printed until then. Nothing of its group is left.
    fn ended(&self, mut child: Child) -> Result<(Result<ExitStatus, String>, Vec<u8>), String> {
        let (to, printed) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            // It ends when enough is read, or with the last process that could write.
            let read = move || {
                let mut bytes = Vec::new();
                let _ = stdout.take(MOST_OUTPUT + 1).read_to_end(&mut bytes);
                drop(to.send(bytes));
            };
            let reader = thread::Builder::new().name("output".into()).spawn(read);
            if let Err(error) = reader {
                kill_group(&child);
                let _ = child.wait();
                return Err(error.to_string());
            }
        }
        let deadline = Instant::now() + self.within;
        let mut bytes = None;
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) if Instant::now() >= deadline => {
                    let within_s = self.within.as_secs_f64();
                    break Err(format!(
                        "{} did not end within {within_s} s, and was killed",
                        self.program
                    ));
                }
                Ok(None) => {}
                Err(error) => break Err(error.to_string()),
            }
            match printed.recv_timeout(LOOK_EVERY) {
                Ok(found) if found.len() as u64 > MOST_OUTPUT => {
                    break Err(format!(
                        "{} prints more than {MOST_OUTPUT} bytes, and was killed",
                        self.program
                    ));
                }
                Ok(found) => bytes = Some(found),
                Err(RecvTimeoutError::Timeout) => {}
                // All is printed, and the command still runs.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
            }
        };
        // Also what it left behind, which could hold its output open.
        kill_group(&child);
        if ended.is_err() {
            let _ = child.wait();
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => printed.recv_timeout(LAST_WORDS).unwrap_or_default(),
        };
        Ok((ended, bytes))
    }
}

/// The number that was printed, alone or with words behind it.
fn number(printed: &[u8]) -> Result<f64, String> {
    let text = String::from_utf8_lossy(printed);
    let Some(word) = text.split_whitespace().next() else {
        return Err("prints nothing".to_owned());
    };
    let shown: String = word.chars().filter(|c| !c.is_control()).take(40).collect();
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() && value.abs() <= LARGEST => Ok(value),
        Ok(_) => Err(format!("prints '{shown}', which is beyond {LARGEST:e}")),
        Err(_) => Err(format!("prints '{shown}', which is no number")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::target::settings::tests::settings;

    fn run(text: &str) -> Result<Probed, String> {
        let far = FarEnd {
            host: "",
            address: Ipv4Addr::UNSPECIFIED.into(),
            trust: None,
            every: EVERY,
        };
        read(&mut settings(text)).unwrap().probe(&far)
    }

    fn shell(line: &str) -> Probed {
        run(&format!(
            "shell = true\nwithin = \"1s\"\ncommand = '{line}'"
        ))
        .unwrap()
    }

    #[test]
    fn the_first_word_is_the_number() {
        let printed = run("command = [\"echo\", \"-12.5 degrees\"]").unwrap();
        assert_eq!(printed.value, Some(-12.5));
        // No shell is between.
        let printed = run("command = [\"echo\", \"$((1+2))\"]").unwrap();
        assert_eq!(
            printed.why.unwrap(),
            "echo prints '$((1+2))', which is no number"
        );
        assert_eq!(shell("echo $((1+2))").value, Some(3.0));
    }

    #[test]
    fn what_is_no_number_is_no_answer() {
        for (line, words) in [
            ("echo 1e300", "prints '1e300', which is beyond"),
            ("echo inf", "beyond"),
            ("echo NaN", "beyond"),
            ("echo soon", "no number"),
            ("true", "prints nothing"),
            ("echo 5; exit 3", "ended with exit status: 3"),
            ("yes", "prints more than 4096 bytes"),
        ] {
            let printed = shell(line);
            let why = printed.why.unwrap_or_default();
            assert!(
                printed.value.is_none() && why.contains(words),
                "{line}: {why}"
            );
        }
        let why = run("command = [\"/nonexistent/program\"]").unwrap_err();
        assert!(why.contains("cannot be run"), "{why}");
    }

    #[test]
    fn one_that_hangs_is_killed_with_all_that_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alive");
        let begun = Instant::now();
        let late = shell(&format!("(sleep 2.5; touch {}) & sleep 60", file.display()));
        assert!(
            late.why
                .unwrap()
                .contains("did not end within 1 s, and was killed")
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
        // What is left behind by one that ends neither holds it up nor lives on.
        let begun = Instant::now();
        let left = shell(&format!(
            "(sleep 2.5; touch {}; sleep 60) & echo 7",
            file.display()
        ));
        assert_eq!(left.value, Some(7.0));
        assert!(begun.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_secs(4));
        assert!(!file.exists());
    }

    proptest! {
        #[test]
        fn any_output_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(value) = number(&bytes) {
                prop_assert!(value.abs() <= LARGEST);
            }
        }
    }
}
