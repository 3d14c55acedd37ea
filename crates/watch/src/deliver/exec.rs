//! A command that gets the message on its standard input. No shell is between.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::delivery::{Delivery, NotTaken, within};

/// How often it is looked whether the command ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    command: Vec<String>,
    within: Option<String>,
}

#[derive(Debug)]
struct Exec {
    program: String,
    arguments: Vec<String>,
    within: Duration,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Delivery>, String> {
    let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
    let mut words = settings.command.into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    Ok(Box::new(Exec {
        program: program
            .ok_or("the command is empty: write command = [\"/path/to/program\", \"argument\"]")?,
        arguments: words.collect(),
        within: within(settings.within.as_deref())?,
    }))
}

impl Delivery for Exec {
    fn send(&self, message: &str) -> Result<(), NotTaken> {
        Ok(self.run(message)?)
    }
}

impl Exec {
    fn run(&self, message: &str) -> Result<(), String> {
        let started = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child =
            started.map_err(|error| format!("{} cannot be run: {error}", self.program))?;
        if let Some(mut stdin) = child.stdin.take() {
            let message = message.to_owned();
            // It ends when all is read, or with the last process that could read it; a command need not read.
            let write = move || drop(stdin.write_all(message.as_bytes()));
            let writer = thread::Builder::new().name("message".into()).spawn(write);
            writer.map_err(|error| error.to_string())?;
        }
        let deadline = Instant::now() + self.within;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("{} ended with {status}", self.program)),
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_EVERY),
                Ok(None) => {
                    // That it ended just now is no error.
                    let _ = child.kill();
                    let _ = child.wait();
                    let within_s = self.within.as_secs();
                    return Err(format!(
                        "{} did not end within {within_s} s, and was killed",
                        self.program
                    ));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Box<dyn Delivery> {
        let mut settings = toml::Table::new();
        settings.insert("command".into(), words.to_vec().into());
        settings.insert("within".into(), "1s".into());
        read(settings).unwrap()
    }

    #[test]
    fn a_command_gets_the_message_and_its_status_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen");
        let script = format!("cat > '{}'", file.display());
        // More than a pipe holds.
        let message = "m".repeat(200_000);
        command(&["sh", "-c", &script]).send(&message).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), message);
        let failed = command(&["sh", "-c", "exit 3"])
            .send(&message)
            .unwrap_err()
            .why;
        assert!(failed.contains("exit status: 3"), "{failed}");
        assert!(
            command(&["/nonexistent/program"])
                .send("")
                .unwrap_err()
                .why
                .contains("cannot be run")
        );
        // One that reads nothing is no failure.
        command(&["true"]).send(&message).unwrap();
    }

    #[test]
    fn a_command_that_does_not_end_is_killed() {
        let begun = Instant::now();
        let why = command(&["sleep", "60"]).send("{}").unwrap_err().why;
        assert!(why.contains("was killed"), "{why}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
