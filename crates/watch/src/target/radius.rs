//! A RADIUS server: how long its answer takes to whether it is there (Status-Server), or to a user's password
//! (Access-Request). The secret that both share authenticates the answer.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_wire::radius::{Answer, MOST_BYTES, MOST_PASSWORD, MOST_USER, NoAnswer, PORT, Question};

use super::kind::{FarEnd, Kind, Probed, Seen, TIMEOUT};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// The name of its series where a user is asked for: 1 where that one was rejected, else 0.
const REJECTED: &str = "rejected";

/// Datagrams that are looked at for one answer; more are a flood.
const MOST_DATAGRAMS: u32 = 100;

/// A question a minute is what operators ask their servers.
const EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Radius {
    port: u16,
    secret_file: PathBuf,
    /// A user, and the file with the password.
    user: Option<(String, PathBuf)>,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let secret_file = settings.need("secret_file", "secret_file = \"/etc/plumb/radius\"")?;
    let user: Option<String> = settings.take("user")?;
    let user = match (user, settings.take("password_file")?) {
        (None, None) => None,
        (Some(user), Some(_)) if !(1..=MOST_USER).contains(&user.len()) => {
            return Err(settings.wrong("user", format!("a user has 1 to {MOST_USER} bytes")));
        }
        (Some(user), Some(file)) => Some((user, file)),
        _ => return Err(settings.missing("user and password_file belong together")),
    };
    Ok(Box::new(Radius {
        port: settings.port(PORT)?,
        secret_file,
        user,
    }))
}

impl Radius {
    fn question(&self) -> Result<Question, String> {
        let secret = secret(&self.secret_file)?;
        let mut authenticator = [0; 16];
        getrandom::fill(&mut authenticator).map_err(|error| error.to_string())?;
        let identifier = getrandom::u32().map_err(|error| error.to_string())? as u8;
        Ok(match &self.user {
            None => Question::status(&secret, identifier, authenticator),
            Some((user, file)) => {
                let password = self::secret(file)?;
                if password.len() > MOST_PASSWORD {
                    return Err(format!(
                        "the password in {} has more than {MOST_PASSWORD} bytes",
                        file.display()
                    ));
                }
                let user = (user.as_bytes(), password.as_slice());
                Question::access(&secret, identifier, authenticator, user)
            }
        })
    }

    /// What an answer after that time shows.
    fn answered(&self, mut probed: Probed, answer: Answer, rtt: Duration) -> Probed {
        if self.user.is_some() {
            let word = match answer {
                Answer::Accepted => "accepted",
                Answer::Rejected => "rejected",
                Answer::Challenged => "challenged",
            };
            probed.state = Some(word.to_owned());
            let rejected = f64::from(u8::from(answer == Answer::Rejected));
            probed.series = vec![Seen::of(REJECTED, Ok(rejected))];
        }
        probed.with(rtt.as_secs_f64())
    }
}

/// The first line of a file. It is read each time, so that a new one counts at once.
fn secret(file: &Path) -> Result<Vec<u8>, String> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    match line.trim_ascii() {
        [] => Err(format!("{name} has no secret in its first line")),
        secret => Ok(secret.to_vec()),
    }
}

impl Kind for Radius {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let to = far.at(self.port);
        let local = |error: std::io::Error| error.to_string();
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let question = self.question()?;
        let socket = UdpSocket::bind(any).map_err(local)?;
        let probed = Probed::now();
        let begun = Instant::now();
        // A line that is down has no route.
        let sent = socket
            .connect(to)
            .and_then(|()| socket.send(question.packet()));
        if let Err(error) = sent {
            return Ok(probed.lost(error.to_string()));
        }
        // A server is silent to clients that it does not know, and where the secret is another.
        let mut why =
            "no answer: it is not there, does not know this host, or has another secret".to_owned();
        for _ in 0..MOST_DATAGRAMS {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(probed.lost(why));
            }
            socket.set_read_timeout(Some(left)).map_err(local)?;
            let mut packet = [0; MOST_BYTES];
            let read = match socket.recv(&mut packet) {
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    return Ok(probed.lost("nothing listens at its port"));
                }
                Err(_) => return Ok(probed.lost(why)),
            };
            let rtt = begun.elapsed();
            match question.answer(packet.get(..read).unwrap_or_default()) {
                Ok(answer) => return Ok(self.answered(probed, answer, rtt)),
                Err(NoAnswer::Foreign) => {}
                // The right one may be still to come.
                Err(NoAnswer::Forged) => why = NoAnswer::Forged.to_string(),
            }
        }
        Ok(probed.lost("a flood of datagrams, and no answer among them"))
    }

    fn has_series(&self) -> bool {
        self.user.is_some()
    }

    fn series(&self, name: &str) -> Option<Unit> {
        (self.user.is_some() && name == REJECTED).then_some(Unit::Number)
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use md5::{Digest as _, Md5};

    use super::*;
    use crate::target::settings::tests::settings;

    const SECRET: &[u8] = b"testing123";

    /// Probes a server that answers with these codes, one datagram each, by that secret; and what it was asked.
    fn asked(user: &str, codes: &'static [(u8, &'static [u8])]) -> (Probed, Vec<u8>) {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let answering = thread::spawn(move || {
            let mut packet = [0; MOST_BYTES];
            let (read, from) = server.recv_from(&mut packet).unwrap();
            // What others send is passed over.
            server.send_to(b"noise", from).unwrap();
            for (code, secret) in codes {
                let begin = [*code, packet[1], 0, 20];
                let parts = [begin.as_slice(), &packet[4..20], secret].concat();
                let own = Md5::digest(parts);
                server
                    .send_to(&[begin.as_slice(), &own].concat(), from)
                    .unwrap();
            }
            packet[..read].to_vec()
        });
        let folder = tempfile::tempdir().unwrap();
        let [secret, password] = ["secret", "password"].map(|name| folder.path().join(name));
        std::fs::write(&secret, b"testing123\n").unwrap();
        std::fs::write(&password, "hello\n").unwrap();
        let user = user.replace("FILE", &password.display().to_string());
        let text = format!(
            "port = {port}\nsecret_file = \"{}\"\n{user}",
            secret.display()
        );
        let kind = read(&mut settings(&text)).unwrap();
        let far = FarEnd {
            host: "localhost",
            address: Ipv4Addr::LOCALHOST.into(),
            trust: None,
            every: EVERY,
        };
        (kind.probe(&far).unwrap(), answering.join().unwrap())
    }

    const USER: &str = "user = \"bob\"\npassword_file = \"FILE\"";

    #[test]
    fn a_server_is_there_or_says_what_it_thinks_of_a_user() {
        let (there, packet) = asked("", &[(2, SECRET)]);
        assert!(there.value.unwrap() > 0.0, "{there:?}");
        assert_eq!((there.state, there.series, packet[0]), (None, vec![], 12));
        for (code, word, rejected) in [
            (2, "accepted", 0.0),
            (3, "rejected", 1.0),
            (11, "challenged", 0.0),
        ] {
            let codes: &[_] = Vec::leak(vec![(code, SECRET)]);
            let (seen, packet) = asked(USER, codes);
            assert!(seen.value.is_some() && seen.why.is_none(), "{seen:?}");
            assert_eq!(seen.state.as_deref(), Some(word));
            assert_eq!(seen.series, [Seen::of("rejected", Ok(rejected))]);
            assert_eq!(packet[0], 1);
            assert!(!packet.windows(5).any(|part| part == b"hello"));
        }
    }

    #[test]
    fn an_answer_by_another_secret_is_none() {
        // One that is forged does not keep the right one out.
        let (seen, _) = asked(USER, &[(2, b"other"), (3, SECRET)]);
        assert_eq!(seen.state.as_deref(), Some("rejected"));
        let (forged, _) = asked(USER, &[(2, b"other")]);
        assert_eq!((forged.value, forged.series), (None, vec![]));
        let why = forged.why.unwrap();
        assert!(why.contains("does not authenticate"), "{why}");
    }

    #[test]
    fn settings_that_are_wrong_are_refused_in_words() {
        for (text, words) in [
            ("port = 1", "it lacks secret_file"),
            ("secret_file = \"/f\"\nuser = \"a\"", "belong together"),
            (
                "secret_file = \"/f\"\npassword_file = \"/f\"",
                "belong together",
            ),
            (
                "secret_file = \"/f\"\nuser = \"\"\npassword_file = \"/f\"",
                "1 to 253 bytes",
            ),
        ] {
            let (_, why) = read(&mut settings(text)).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        let kind = read(&mut settings("secret_file = \"/nowhere\"")).unwrap();
        let far = FarEnd {
            host: "localhost",
            address: Ipv4Addr::LOCALHOST.into(),
            trust: None,
            every: EVERY,
        };
        assert!(
            kind.probe(&far)
                .unwrap_err()
                .contains("cannot read /nowhere")
        );
    }
}
