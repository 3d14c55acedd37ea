//! `[remote_write]` of the file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use data_encoding::BASE64;
use plumb_model::units::ByteCount;
use plumb_probe::Trust;
use plumb_probe::post::Post;
use plumb_wire::remote_write::{NAME, Version};
use toml::Spanned;

use crate::deliver::trust::{Believed, absolute};
use crate::target::settings::{Entries, Settings, Wrong};

/// How often the metrics are sent where nothing is said: what most files of Prometheus have as `scrape_interval`.
const EVERY: Duration = Duration::from_secs(15);

/// The bounds of that. Prometheus takes a series without a sample for 5 minutes for gone: two of 2 minutes may be lost.
const EVERY_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// The time that one request may take: Prometheus' own (`remote_timeout`).
const WITHIN: Duration = Duration::from_secs(30);

const WITHIN_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// For how long what cannot be sent waits: a night and a day.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// The bounds of that: a week, longer than lines are down.
const KEEP_BOUNDS: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(7 * 24 * 3600));

/// The most that waits: a day of some hundred targets.
const KEEP_BYTES: ByteCount = ByteCount::from_bytes(256_000_000);

/// The least: some requests of 2000 samples.
const LEAST_BYTES: ByteCount = ByteCount::from_bytes(1_000_000);

/// Fields that a request has of its own (Remote-Write 2.0, "Request", and RFC 9110), or that have settings of their own.
const RESERVED: [&str; 10] = [
    "accept",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
    "x-prometheus-remote-write-version",
];

/// Labels that series have of their own.
const OWN_LABELS: [&str; 5] = [NAME, "probe", "quantile", "result", "target"];

/// Where the metrics are sent, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteWrite {
    pub(super) to: Post,
    pub(super) version: Version,
    pub(super) every: Duration,
    pub(super) within: Duration,
    pub(super) keep: Duration,
    pub(super) keep_bytes: ByteCount,
    /// Labels that all series get.
    pub(super) labels: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    login: Login,
    believed: Believed,
}

/// By what a receiver knows who sends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Login {
    None,
    /// A file with a token.
    Bearer(PathBuf),
    /// A user, and a file with the password.
    Basic(String, PathBuf),
}

impl RemoteWrite {
    pub(crate) fn read(entry: &Spanned<Entries>) -> Result<Self, Wrong> {
        let mut settings = Settings::new(entry.span(), entry.get_ref().clone());
        let url: String = settings.need(
            "url",
            "url = \"https://prometheus.example.net/api/v1/write\"",
        )?;
        let to = Post::to(&url).map_err(|why| settings.wrong("url", why))?;
        let version = settings.take::<String>("version")?;
        let version = match version.as_deref() {
            None | Some("1.0") => Version::One,
            Some("2.0") => Version::Two,
            Some(_) => {
                return Err(settings.wrong("version", "version is \"1.0\" or \"2.0\""));
            }
        };
        let keep_bytes = match settings.take::<String>("keep_bytes")? {
            None => KEEP_BYTES,
            Some(text) => text
                .parse()
                .ok()
                .filter(|bytes| *bytes >= LEAST_BYTES)
                .ok_or_else(|| {
                    let why = format!("write bytes with their unit, {LEAST_BYTES} at least");
                    settings.wrong("keep_bytes", why)
                })?,
        };
        let this = Self {
            believed: believed(&mut settings, to.is_https())?,
            login: login(&mut settings)?,
            headers: headers(&mut settings)?,
            labels: labels(&mut settings)?,
            every: settings.time("interval", EVERY_BOUNDS)?.unwrap_or(EVERY),
            within: settings.time("within", WITHIN_BOUNDS)?.unwrap_or(WITHIN),
            keep: settings.time("keep", KEEP_BOUNDS)?.unwrap_or(KEEP),
            keep_bytes,
            to,
            version,
        };
        settings.end_of("[remote_write]")?;
        Ok(this)
    }

    /// What the user should know.
    pub(crate) fn warning(&self) -> Option<String> {
        let secret = match self.login {
            Login::None => return None,
            Login::Bearer(_) => "token",
            Login::Basic(..) => "password",
        };
        (!self.to.is_https()).then(|| {
            format!(
                "remote write: without https the {secret} can be read in any packet on the path"
            )
        })
    }

    /// The fields of a request beside those that all have.
    ///
    /// # Errors
    /// When the file of a secret cannot be read, or has none.
    pub(super) fn fields(&self) -> Result<Vec<(&str, String)>, String> {
        let mut fields: Vec<(&str, String)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        match &self.login {
            Login::None => {}
            Login::Bearer(file) => {
                fields.push(("Authorization", format!("Bearer {}", secret(file)?)));
            }
            Login::Basic(user, file) => {
                let pair = format!("{user}:{}", secret(file)?);
                let pair = BASE64.encode(pair.as_bytes());
                fields.push(("Authorization", format!("Basic {pair}")));
            }
        }
        Ok(fields)
    }

    /// Whose certificate is believed, where there is one.
    pub(super) fn trust(&self) -> Result<Option<Trust>, String> {
        let trust = self.to.is_https().then(|| self.believed.trust());
        trust.transpose()
    }
}

/// What a file says in its first line. It is read for each request, so that a new one counts at once.
fn secret(file: &PathBuf) -> Result<String, String> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let line = text.lines().next().unwrap_or_default().trim();
    match line.is_empty() || line.contains(char::is_control) {
        true => Err(format!("{name} has no secret in its first line")),
        false => Ok(line.to_owned()),
    }
}

fn believed(settings: &mut Settings, is_https: bool) -> Result<Believed, Wrong> {
    let insecure: Option<bool> = settings.take("insecure")?;
    let ca: Option<PathBuf> = settings.take("ca")?;
    for (key, given) in [("insecure", insecure.is_some()), ("ca", ca.is_some())] {
        if given && !is_https {
            return Err(settings.wrong(key, format!("{key} is for https alone: leave it out")));
        }
    }
    Believed::read(ca, insecure.unwrap_or_default()).map_err(|why| settings.wrong("ca", why))
}

fn login(settings: &mut Settings) -> Result<Login, Wrong> {
    let bearer: Option<PathBuf> = settings.take("bearer_file")?;
    let user: Option<String> = settings.take("user")?;
    let password: Option<PathBuf> = settings.take("password_file")?;
    match (bearer, user, password) {
        (None, None, None) => Ok(Login::None),
        (Some(file), None, None) => absolute("bearer_file", file)
            .map(Login::Bearer)
            .map_err(|why| settings.wrong("bearer_file", why)),
        // RFC 7617, section 2: the first colon ends the user.
        (None, Some(user), Some(_)) if user.contains([':', '\0']) || user.is_empty() => {
            Err(settings.wrong("user", "a user has a name, without a colon"))
        }
        (None, Some(user), Some(file)) => absolute("password_file", file)
            .map(|file| Login::Basic(user, file))
            .map_err(|why| settings.wrong("password_file", why)),
        (Some(_), _, _) => Err(settings.wrong(
            "bearer_file",
            "a token and a password exclude each other: leave one of them out",
        )),
        _ => Err(settings.wrong("user", "user and password_file belong together")),
    }
}

fn headers(settings: &mut Settings) -> Result<BTreeMap<String, String>, Wrong> {
    let headers: Option<BTreeMap<String, String>> = settings.take("headers")?;
    let headers = headers.unwrap_or_default();
    // A token of RFC 9110, section 5.6.2.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    for (name, value) in &headers {
        let why = match name.to_ascii_lowercase().as_str() {
            "" => "a header has a name".to_owned(),
            "authorization" => {
                "a secret is in a file of its own: bearer_file, or user and password_file"
                    .to_owned()
            }
            lower if RESERVED.contains(&lower) => {
                format!("every request has a header '{name}' of its own: leave it out")
            }
            lower if !lower.chars().all(is_token) => {
                format!("'{}' is no name of a header", name.escape_debug())
            }
            _ if value.contains(char::is_control) => {
                format!("the header '{name}' has a control character")
            }
            _ => continue,
        };
        return Err(settings.wrong("headers", why));
    }
    Ok(headers)
}

/// What all series get, beside `job` and `instance`, which they would have if they were scraped.
fn labels(settings: &mut Settings) -> Result<BTreeMap<String, String>, Wrong> {
    let said: Option<BTreeMap<String, String>> = settings.take("labels")?;
    let mut labels = BTreeMap::from([("job".to_owned(), "plumb-watch".to_owned())]);
    // What uname(2) reports as the node's name.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    labels.insert("instance".to_owned(), host.trim().to_owned());
    for (name, value) in said.unwrap_or_default() {
        let mut letters = name.chars();
        let begins = letters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let is_name = begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || name.starts_with("__") {
            let why = format!(
                "'{}' is no name of a label: letters, digits and _, of which no digit is the first, and no __",
                name.escape_debug()
            );
            return Err(settings.wrong("labels", why));
        }
        if OWN_LABELS.contains(&name.as_str()) {
            let why = format!("series have a label '{name}' of their own: leave it out");
            return Err(settings.wrong("labels", why));
        }
        labels.insert(name, value);
    }
    // A label without a value is none (Remote-Write 1.0, "Labels").
    labels.retain(|_, value| !value.is_empty());
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RemoteWrite, String> {
        let file: BTreeMap<String, Spanned<Entries>> =
            toml::from_str(&format!("[remote_write]\n{text}")).unwrap();
        RemoteWrite::read(&file["remote_write"]).map_err(|(_, why)| why)
    }

    #[test]
    fn a_login_is_read_for_each_request() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let url = "url = \"http://h/write\"\nheaders = { X-Scope-OrgID = \"a\" }";
        let of = |more: &str| read(&format!("{url}\n{more}")).unwrap();
        let bearer = of(&format!("bearer_file = \"{}\"", file.display()));
        let why = bearer.fields().unwrap_err();
        assert!(why.contains("cannot read"), "{why}");
        std::fs::write(&file, "open sesame\nand more").unwrap();
        let fields = [
            ("X-Scope-OrgID", "a"),
            ("Authorization", "Bearer open sesame"),
        ];
        let fields = fields.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(bearer.fields().unwrap(), fields);
        // The example of RFC 7617, section 2.
        std::fs::write(&file, "open sesame").unwrap();
        let basic = format!("user = \"Aladdin\"\npassword_file = \"{}\"", file.display());
        assert_eq!(
            of(&basic).fields().unwrap()[1].1,
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        assert!(
            of(&basic)
                .warning()
                .unwrap()
                .contains("the password can be read")
        );
        assert_eq!(of("").warning(), None);
        std::fs::write(&file, "\n").unwrap();
        assert!(of(&basic).fields().is_err());
    }

    #[test]
    fn labels_are_those_of_a_scrape_and_of_the_file() {
        let of = |more: &str| {
            read(&format!("url = \"http://h/\"\n{more}"))
                .unwrap()
                .labels
        };
        assert_eq!(of("")["job"], "plumb-watch");
        let own = of("labels = { site = \"home\", instance = \"a\", job = \"\" }");
        let own: Vec<_> = own
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(own, [("instance", "a"), ("site", "home")]);
    }

    #[test]
    fn what_is_wrong_is_refused_in_words() {
        for (text, words) in [
            ("", "it lacks url = "),
            ("url = \"prometheus:9090\"", ""),
            ("url = \"ftp://h/\"", "only http and https"),
            ("url = \"http://h/\"\nversion = \"3\"", "\"1.0\" or \"2.0\""),
            (
                "url = \"http://h/\"\ntoken = \"x\"",
                "unknown field `token`",
            ),
            (
                "url = \"http://h/\"\ninterval = \"5m\"",
                "between 1 s and 120 s",
            ),
            (
                "url = \"http://h/\"\nkeep_bytes = \"1kB\"",
                "1.00 MB at least",
            ),
            ("url = \"http://h/\"\nca = \"/f\"", "for https alone"),
            ("url = \"https://h/\"\nca = \"f\"", "the whole path"),
            ("url = \"http://h/\"\nuser = \"a\"", "belong together"),
            (
                "url = \"http://h/\"\nuser = \"a:b\"\npassword_file = \"/f\"",
                "without a colon",
            ),
            (
                "url = \"http://h/\"\nuser = \"a\"\npassword_file = \"/f\"\nbearer_file = \"/g\"",
                "exclude each other",
            ),
            (
                "url = \"http://h/\"\nheaders = { Content-Type = \"a\" }",
                "of its own",
            ),
            (
                "url = \"http://h/\"\nheaders = { Authorization = \"a\" }",
                "in a file",
            ),
            (
                "url = \"http://h/\"\nheaders = { \"a\\r\\nb\" = \"c\" }",
                "no name of a header",
            ),
            (
                "url = \"http://h/\"\nheaders = { a = \"b\\r\\nc: d\" }",
                "control character",
            ),
            ("url = \"http://h/\"\nlabels = { 1a = \"x\" }", "no name"),
            ("url = \"http://h/\"\nlabels = { __a = \"x\" }", "no name"),
            (
                "url = \"http://h/\"\nlabels = { target = \"x\" }",
                "of their own",
            ),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
