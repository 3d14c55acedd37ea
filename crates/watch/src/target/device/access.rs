//! As whom a device is asked, and for which ports: its settings.

use std::path::{Path, PathBuf};

use plumb_wire::snmp::PORT;
use plumb_wire::snmp::session::Credentials;
use plumb_wire::snmp::usm::authentication::Authentication;
use plumb_wire::snmp::usm::privacy::Privacy;
use plumb_wire::snmp::usm::{LEAST_PASSWORD, User};

use crate::target::settings::{Settings, Wrong};

/// Longer passwords and communities than this are a file of something else, in bytes.
const MOST_SECRET: usize = 1024;

/// How a device is asked.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) port: u16,
    /// Patterns of names; empty for all that are up.
    pub(super) ports: Vec<String>,
    login: Login,
}

/// As whom a device is asked.
#[derive(Debug, Clone)]
pub enum Login {
    /// By version 2c, with this community.
    Community(String),
    /// By version 2c, with the community in this file.
    CommunityFile(PathBuf),
    /// By version 3, with passwords in these files.
    User {
        name: String,
        authentication: Option<(Authentication, PathBuf)>,
        privacy: Option<(Privacy, PathBuf)>,
    },
}

impl Access {
    pub(super) fn read(settings: &mut Settings) -> Result<Self, Wrong> {
        let port = settings.port(PORT)?;
        let ports: Option<Vec<String>> = settings.take("ports")?;
        let ports = ports.unwrap_or_default();
        if ports.iter().any(|pattern| pattern.trim().is_empty()) {
            return Err(settings.wrong("ports", "a pattern of ports is empty"));
        }
        let community: Option<String> = settings.take("community")?;
        let community_file = file(settings, "community_file")?;
        let user: Option<String> = settings.take("user")?;
        let login = match (community, community_file, user) {
            (Some(community), None, None) if !community.is_empty() => Login::Community(community),
            (None, Some(file), None) => Login::CommunityFile(file),
            (None, None, Some(name)) if !name.is_empty() && name.len() <= 32 => {
                user_login(name, settings)?
            }
            (None, None, None) => {
                return Err(settings.missing(
                    "it lacks who asks: community_file = \"/FILE\" of version 2c, or user = \"NAME\" of version 3",
                ));
            }
            _ => {
                let why = "write one of community_file, community and user, which is not empty; a user has 32 bytes at most";
                return Err(settings.wrong("user", why));
            }
        };
        Ok(Self { port, ports, login })
    }

    pub(super) fn warning(&self) -> Option<&'static str> {
        match self.login {
            Login::Community(_) => Some(
                "its community stands in the file, for all who read that: community_file keeps it in another",
            ),
            _ => None,
        }
    }

    /// With the current secrets.
    pub(super) fn credentials(&self) -> Result<Credentials, String> {
        self.login.credentials()
    }
}

impl Login {
    /// With the current secrets.
    pub(super) fn credentials(&self) -> Result<Credentials, String> {
        match self {
            Self::Community(community) => Ok(Credentials::Community(community.clone())),
            Self::CommunityFile(file) => secret(file, 1).map(Credentials::Community),
            Self::User {
                name,
                authentication,
                privacy,
            } => Ok(Credentials::User(User {
                name: name.clone(),
                authentication: match authentication {
                    Some((by, file)) => Some((*by, secret(file, LEAST_PASSWORD)?)),
                    None => None,
                },
                privacy: match privacy {
                    Some((by, file)) => Some((*by, secret(file, LEAST_PASSWORD)?)),
                    None => None,
                },
            })),
        }
    }
}

/// A user of version 3: with no more than a name, or authentication, or privacy too.
fn user_login(name: String, settings: &mut Settings) -> Result<Login, Wrong> {
    let by: Option<Authentication> = settings.take("authentication")?;
    let by_file = file(settings, "authentication_password_file")?;
    let cipher: Option<Privacy> = settings.take("privacy")?;
    let cipher_file = file(settings, "privacy_password_file")?;
    let authentication = match (by, by_file) {
        (None, None) => None,
        (by, Some(file)) => Some((by.unwrap_or(Authentication::Sha256), file)),
        (Some(_), None) => {
            let why = "authentication takes authentication_password_file = \"/FILE\"";
            return Err(settings.wrong("authentication", why));
        }
    };
    let privacy = match (cipher, cipher_file) {
        (None, None) => None,
        (cipher, Some(file)) => Some((cipher.unwrap_or(Privacy::Aes128), file)),
        (Some(_), None) => {
            let why = "privacy takes privacy_password_file = \"/FILE\"";
            return Err(settings.wrong("privacy", why));
        }
    };
    match (&authentication, &privacy) {
        (None, Some(_)) => {
            let why = "there is no privacy without authentication";
            Err(settings.wrong("privacy_password_file", why))
        }
        (Some((by, _)), Some((cipher, _))) if by.key_bytes() < cipher.key_bytes() => {
            let why = "aes256 takes authentication by sha256 or longer, whose keys are long enough";
            Err(settings.wrong("privacy", why))
        }
        _ => Ok(Login::User {
            name,
            authentication,
            privacy,
        }),
    }
}

/// The file of a secret, which does not depend on where plumb was begun.
fn file(settings: &mut Settings, key: &'static str) -> Result<Option<PathBuf>, Wrong> {
    match settings.take::<PathBuf>(key)? {
        Some(file) if !file.is_absolute() => {
            let why = format!("{key} is the whole path of a file, such as \"/etc/plumb/{key}\"");
            Err(settings.wrong(key, why))
        }
        file => Ok(file),
    }
}

/// A secret from its file, of so many bytes at least.
fn secret(file: &Path, least: usize) -> Result<String, String> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    match secret.len() {
        length if length < least => Err(format!("{name} has fewer than {least} characters")),
        length if length > MOST_SECRET => Err(format!("{name} has more than {MOST_SECRET} bytes")),
        _ => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::settings::tests::settings;

    fn read(text: &str) -> Result<Access, String> {
        let mut settings = settings(text);
        let access = Access::read(&mut settings).map_err(|(_, why)| why)?;
        settings.end("device").map_err(|(_, why)| why)?;
        Ok(access)
    }

    #[test]
    fn a_community_or_a_user_asks() {
        let plain = read("community = \"public\"").unwrap();
        assert_eq!((plain.port, plain.warning().is_some()), (161, true));
        let of_file =
            read("community_file = \"/etc/plumb/c\"\nports = [\"eth*\"]\nport = 1161").unwrap();
        assert_eq!((of_file.port, of_file.warning()), (1161, None));
        read("user = \"reader\"").unwrap();
        read("user = \"reader\"\nauthentication_password_file = \"/a\"\nprivacy_password_file = \"/p\"").unwrap();
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, words) in [
            ("", "it lacks who asks"),
            ("community = \"\"", "write one of"),
            ("community = \"a\"\nuser = \"b\"", "write one of"),
            ("comunity = \"a\"", "unknown field `comunity`"),
            ("community_file = \"c\"", "the whole path of a file"),
            ("user = \"a\"\nauthentication = \"md5\"", "unknown variant"),
            (
                "user = \"a\"\nauthentication = \"sha1\"",
                "takes authentication_password_file",
            ),
            (
                "user = \"a\"\nprivacy_password_file = \"/p\"",
                "no privacy without authentication",
            ),
            (
                "user = \"a\"\nauthentication = \"sha1\"\nauthentication_password_file = \"/a\"\nprivacy = \"aes256\"\n\
                 privacy_password_file = \"/p\"",
                "sha256 or longer",
            ),
            ("community = \"a\"\nports = [\"\"]", "empty"),
            (
                "community = \"a\"\nprivacy = \"aes128\"",
                "unknown field `privacy`",
            ),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
