//! Handing a letter to a server, as a state machine: a reply in, what to do next out (RFC 5321; STARTTLS of RFC 3207; AUTH of
//! RFC 4954 with PLAIN, RFC 4616, and LOGIN).

use std::collections::VecDeque;
use std::fmt;

use data_encoding::BASE64;

use super::address::Address;
use super::reply::Reply;

/// When a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// By STARTTLS where the server offers it.
    WhereOffered,
    /// By STARTTLS; without it nothing is sent.
    Required,
    /// From its beginning (RFC 8314, section 3.3).
    Wrapped,
    Never,
}

/// By what a client logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

/// The password is for the server alone.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// What is handed over, and how.
#[derive(Debug, Clone)]
pub struct Submission {
    /// How the client names itself: a name, or its address as `[192.0.2.1]`.
    pub client: String,
    pub security: Security,
    pub login: Option<Login>,
    pub from: Address,
    pub to: Vec<Address>,
    /// With its end, as [`super::letter::Letter::bytes`] has it.
    pub letter: Vec<u8>,
}

/// A recipient for whom the server did not take the letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub to: Address,
    pub reply: Reply,
}

/// What is to be done after a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Send this, and wait for the reply.
    Send(Vec<u8>),
    /// Begin TLS, and then call [`Session::encrypted`].
    BeginTls,
    /// The server has the letter for all recipients but these.
    Taken(Vec<Refusal>),
    /// The server took the letter for no recipient; the reason in words.
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeted,
    Hello,
    StartTls,
    Plain,
    LoginUser,
    LoginPassword,
    LoggedIn,
    From,
    To,
    Data,
    Letter,
}

/// A conversation with a server.
#[derive(Debug)]
pub struct Session {
    submission: Submission,
    state: State,
    is_encrypted: bool,
    /// Recipients that were not named yet.
    left: VecDeque<Address>,
    /// The one that is being named.
    named: Option<Address>,
    refused: Vec<Refusal>,
}

impl Session {
    /// One that begins with the server's greeting, over TLS where the submission is wrapped in it.
    pub fn new(submission: Submission) -> Self {
        Self {
            state: State::Greeted,
            is_encrypted: submission.security == Security::Wrapped,
            left: submission.to.iter().cloned().collect(),
            named: None,
            refused: Vec::new(),
            submission,
        }
    }

    /// What to send when TLS has begun: all that was known of the server is asked for again (RFC 3207, section 4.2).
    pub fn encrypted(&mut self) -> Next {
        self.is_encrypted = true;
        self.hello()
    }

    /// What to do after that reply.
    pub fn step(&mut self, reply: &Reply) -> Next {
        let login = self.submission.login.clone();
        match (self.state, reply.code) {
            (State::Greeted, 220) => self.hello(),
            (State::Hello, 250) => self.offered(reply),
            (State::StartTls, 220) => Next::BeginTls,
            (State::LoginUser, 334) => {
                let user = login.map(|login| BASE64.encode(login.user.as_bytes()));
                self.send(State::LoginPassword, &user.unwrap_or_default())
            }
            (State::LoginPassword, 334) => {
                let password = login.map(|login| BASE64.encode(login.password.as_bytes()));
                self.send(State::LoggedIn, &password.unwrap_or_default())
            }
            (State::Plain | State::LoggedIn, 235) => self.begin(),
            (State::From, 250) => self.name_next(),
            (State::To, code) if code != 421 => {
                if let Some(to) = self.named.take().filter(|_| !reply.is_good()) {
                    let reply = reply.clone();
                    self.refused.push(Refusal { to, reply });
                }
                self.name_next()
            }
            (State::Data, 354) => {
                self.state = State::Letter;
                Next::Send(std::mem::take(&mut self.submission.letter))
            }
            (State::Letter, 250) => Next::Taken(std::mem::take(&mut self.refused)),
            (state, _) => Next::Failed(format!("{} {reply}", state.words())),
        }
    }

    fn send(&mut self, state: State, line: &str) -> Next {
        self.state = state;
        Next::Send(format!("{line}\r\n").into_bytes())
    }

    fn hello(&mut self) -> Next {
        let line = format!("EHLO {}", self.submission.client);
        self.send(State::Hello, &line)
    }

    /// Continues with what the server offers. The first line of its reply is its name.
    fn offered(&mut self, reply: &Reply) -> Next {
        let words = |line: &String| -> Vec<String> {
            // Some write AUTH=PLAIN, as a draft had it.
            let line = line.to_ascii_uppercase().replace('=', " ");
            line.split_ascii_whitespace().map(str::to_owned).collect()
        };
        let offers: Vec<Vec<String>> = reply.lines.iter().skip(1).map(words).collect();
        let offers = |what: &str, kind: Option<&str>| {
            offers.iter().any(|words| {
                words.first().is_some_and(|word| word == what)
                    && kind.is_none_or(|kind| words.iter().skip(1).any(|word| word == kind))
            })
        };
        if !self.is_encrypted && self.submission.security != Security::Never {
            match (offers("STARTTLS", None), self.submission.security) {
                (true, _) => return self.send(State::StartTls, "STARTTLS"),
                (false, Security::Required) => {
                    return Next::Failed(
                        "offers no STARTTLS, and nothing is sent without it".to_owned(),
                    );
                }
                (false, _) => {}
            }
        }
        let Some(login) = self.submission.login.clone() else {
            return self.begin();
        };
        if !self.is_encrypted {
            return Next::Failed(
                "offers no STARTTLS, and no password is sent without it".to_owned(),
            );
        }
        if offers("AUTH", Some("PLAIN")) {
            let secret = format!("\0{}\0{}", login.user, login.password);
            let line = format!("AUTH PLAIN {}", BASE64.encode(secret.as_bytes()));
            return self.send(State::Plain, &line);
        }
        match offers("AUTH", Some("LOGIN")) {
            true => self.send(State::LoginUser, "AUTH LOGIN"),
            false => Next::Failed("offers no login by PLAIN or LOGIN".to_owned()),
        }
    }

    fn begin(&mut self) -> Next {
        let line = format!("MAIL FROM:<{}>", self.submission.from);
        self.send(State::From, &line)
    }

    fn name_next(&mut self) -> Next {
        if let Some(to) = self.left.pop_front() {
            let line = format!("RCPT TO:<{to}>");
            self.named = Some(to);
            return self.send(State::To, &line);
        }
        match self.refused.first() {
            Some(first) if self.refused.len() == self.submission.to.len() => Next::Failed(format!(
                "answers the recipient {} with {}",
                first.to, first.reply
            )),
            _ => self.send(State::Data, "DATA"),
        }
    }
}

impl State {
    /// What the server did in it, before its reply.
    fn words(self) -> &'static str {
        match self {
            Self::Greeted => "greets with",
            Self::Hello => "answers EHLO with",
            Self::StartTls => "answers STARTTLS with",
            Self::Plain | Self::LoginUser | Self::LoginPassword | Self::LoggedIn => {
                "answers the login with"
            }
            Self::From => "answers the sender with",
            Self::To => "answers a recipient with",
            Self::Data | Self::Letter => "answers the letter with",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session(security: Security, login: bool) -> Session {
        Session::new(Submission {
            client: "[192.0.2.1]".to_owned(),
            security,
            login: login.then(|| Login {
                user: "u".to_owned(),
                password: "p".to_owned(),
            }),
            from: "plumb@example.net".parse().unwrap(),
            to: vec![
                "a@example.net".parse().unwrap(),
                "b@example.net".parse().unwrap(),
            ],
            letter: b"letter\r\n.\r\n".to_vec(),
        })
    }

    fn reply(text: &str) -> Reply {
        let (code, lines) = text.split_once(' ').unwrap();
        Reply {
            code: code.parse().unwrap(),
            lines: lines.split('|').map(str::to_owned).collect(),
        }
    }

    /// What a session sends, with `TLS` where that begins, until its end.
    fn said(session: &mut Session, replies: &[&str]) -> (Vec<String>, Next) {
        let mut sent = Vec::new();
        for text in replies {
            let mut next = session.step(&reply(text));
            if next == Next::BeginTls {
                sent.push("TLS".to_owned());
                next = session.encrypted();
            }
            match next {
                Next::Send(bytes) => {
                    let text = String::from_utf8(bytes).unwrap();
                    sent.push(text.trim_end_matches("\r\n").to_owned());
                }
                end => return (sent, end),
            }
        }
        panic!("no end: {sent:?}");
    }

    #[test]
    fn a_letter_is_handed_over_by_tls_where_it_is_offered() {
        let (sent, end) = said(
            &mut session(Security::WhereOffered, true),
            &[
                "220 hello",
                "250 mail|STARTTLS|AUTH LOGIN",
                "220 go",
                "250 mail|auth login plain",
                "235 in",
                "250 ok",
                "250 ok",
                "550 no such user",
                "354 go",
                "250 queued",
            ],
        );
        assert_eq!(
            sent,
            [
                "EHLO [192.0.2.1]",
                "STARTTLS",
                "TLS",
                "EHLO [192.0.2.1]",
                "AUTH PLAIN AHUAcA==",
                "MAIL FROM:<plumb@example.net>",
                "RCPT TO:<a@example.net>",
                "RCPT TO:<b@example.net>",
                "DATA",
                "letter\r\n."
            ]
        );
        let Next::Taken(refused) = end else {
            panic!("{end:?}");
        };
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].to.to_string(), "b@example.net");
    }

    #[test]
    fn a_login_in_two_steps_and_a_session_without_one() {
        let (sent, _) = said(
            &mut session(Security::Wrapped, true),
            &[
                "220 hello",
                "250 mail|AUTH=LOGIN",
                "334 VXNlcm5hbWU6",
                "334 UGFzc3dvcmQ6",
                "535 wrong",
            ],
        );
        assert_eq!(sent[1..], ["AUTH LOGIN", "dQ==", "cA=="]);
        let (sent, end) = said(
            &mut session(Security::Never, false),
            &[
                "220 hello",
                "250 mail|STARTTLS",
                "250 ok",
                "250 ok",
                "251 ok",
                "354 go",
                "250 queued",
            ],
        );
        assert_eq!(sent[1], "MAIL FROM:<plumb@example.net>");
        assert_eq!(end, Next::Taken(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let why = |security, login, replies: &[&str]| {
            let (sent, end) = said(&mut session(security, login), replies);
            // A password never leaves without TLS.
            assert!(
                !sent
                    .iter()
                    .any(|line| line.contains("AUTH") && !sent.contains(&"TLS".to_owned()))
            );
            match end {
                Next::Failed(why) => why,
                end => panic!("{end:?}"),
            }
        };
        let (offered, required) = (Security::WhereOffered, Security::Required);
        for (security, login, replies, words) in [
            (
                offered,
                false,
                &["554 go away"][..],
                "greets with 554 go away",
            ),
            (
                offered,
                false,
                &["220 hi", "502 what"],
                "answers EHLO with 502 what",
            ),
            (
                required,
                false,
                &["220 hi", "250 mail|PIPELINING"],
                "offers no STARTTLS, and nothing",
            ),
            (
                offered,
                true,
                &["220 hi", "250 mail|AUTH PLAIN"],
                "offers no STARTTLS, and no password",
            ),
            (
                offered,
                false,
                &["220 hi", "250 mail|STARTTLS", "454 later"],
                "answers STARTTLS with 454",
            ),
            (
                required,
                true,
                &[
                    "220 hi",
                    "250 mail|STARTTLS",
                    "220 go",
                    "250 mail|AUTH CRAM-MD5",
                ],
                "no login by PLAIN or LOGIN",
            ),
            (
                offered,
                false,
                &["220 hi", "250 mail", "451 grey"],
                "answers the sender with 451 grey",
            ),
            (
                offered,
                false,
                &["220 hi", "250 mail", "250 ok", "550 no", "450 later"],
                "answers the recipient a@example.net with 550 no",
            ),
            (
                offered,
                false,
                &["220 hi", "250 mail", "250 ok", "421 bye"],
                "answers a recipient with 421 bye",
            ),
            (
                offered,
                false,
                &[
                    "220 hi",
                    "250 mail",
                    "250 ok",
                    "250 ok",
                    "250 ok",
                    "354 go",
                    "552 too much",
                ],
                "answers the letter with 552 too much",
            ),
        ] {
            let said = why(security, login, replies);
            assert!(said.contains(words), "{said}");
        }
    }

    proptest! {
        /// Whatever a server answers, the session ends, and the letter goes only where it was asked for.
        #[test]
        fn any_replies_come_to_an_end(codes in proptest::collection::vec(prop_oneof![
            Just(220u16), Just(250), Just(235), Just(334), Just(354), Just(550), any::<u16>()], 1..40)) {
            let mut session = session(Security::WhereOffered, true);
            for (at, code) in codes.iter().enumerate() {
                let reply = Reply { code: *code, lines: vec!["x".into(), "STARTTLS".into(), "AUTH LOGIN".into()] };
                match session.step(&reply) {
                    Next::Send(bytes) => prop_assert!(*code == 354 || !bytes.starts_with(b"letter")),
                    Next::BeginTls => { session.encrypted(); }
                    Next::Taken(_) | Next::Failed(_) => return Ok(()),
                }
                prop_assert!(at < 20);
            }
        }
    }
}
