//! Far ends that were not typed: servers that the user's own list names, and public ones that the user agreed to.

use std::io::IsTerminal as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use plumb_model::units::ByteCount;
use plumb_net::terminal;
use serde::Deserialize;

use super::consent::{Consents, Question};
use super::{Protocol, web};
use crate::stderr::say;
use crate::target::Target;
use crate::usage::wrong;

/// Public servers, with what each does with what it learns.
const PUBLIC: &str = include_str!("servers.toml");

/// The list of a user or of a machine, in [`folders`].
const FILE: &str = "servers.toml";

/// How long a server may take to answer a connection: a lost SYN is retransmitted after 1 s.
const ANSWERING: Duration = Duration::from_secs(3);

/// A server that can be measured with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    /// Name, address or URL.
    pub(crate) host: String,
    /// What it learns and makes public, where that is for the user to agree to.
    pub(crate) publishes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    server: Vec<Server>,
}

impl Server {
    /// What the Run says of the choice.
    pub(crate) fn note(&self) -> String {
        let Self { name, host, .. } = self;
        match self.publishes {
            None => format!(
                "The far end is '{name}' ({host}), the first of your servers that answered."
            ),
            Some(_) => format!(
                "The far end is the public server '{name}' ({host}), the first that you agreed to and that answered."
            ),
        }
    }

    /// Whether something listens there.
    fn answers(&self) -> bool {
        let host = web::authority(&self.host);
        let Ok(target) = Target::resolve(host.as_deref().unwrap_or(&self.host)) else {
            return false;
        };
        let typed = web::port(&self.host);
        let ports = typed
            .as_ref()
            .map_or(self.protocol.ports(), std::slice::from_ref);
        let answers = |port: &u16| TcpStream::connect_timeout(&target.at(*port), ANSWERING).is_ok();
        ports.iter().any(answers)
    }
}

/// The server of that name; where none is named, the first that may be measured with and answers, if one does. A check transfers
/// at most so many bytes.
pub(crate) fn choose(named: Option<&str>, most: ByteCount) -> anyhow::Result<Option<Server>> {
    let folders = folders();
    let servers = listed(&folders)?;
    let mut consents = Consents::of(folders.first().map(PathBuf::as_path))?;
    let open = |consents: &Consents| -> Vec<String> {
        let open = servers.iter().filter(|s| is_open(s, consents));
        open.map(|server| server.name.clone()).collect()
    };
    let ask = |server: &Server, consents: &mut Consents| -> anyhow::Result<bool> {
        let public = open(consents);
        let public: Vec<&str> = public.iter().map(String::as_str).collect();
        let is_heard = std::io::stdin().is_terminal() && terminal::error_columns().is_some();
        let question = Question {
            server: &server.name,
            publishes: server.publishes.as_deref().unwrap_or_default(),
            public: &public,
            most,
        };
        Ok(is_heard && consents.ask(&question)?)
    };
    if let Some(name) = named {
        let known = || {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            wrong(format!(
                "there is no server '{name}': {} are known",
                names.join(", ")
            ))
        };
        let server = servers
            .iter()
            .find(|server| server.name == name)
            .ok_or_else(known)?;
        anyhow::ensure!(
            is_allowed(server, &consents) || ask(server, &mut consents)?,
            "'{name}' is a public server that is not used without consent. {}: to agree, add the line  {name} = true  to {}",
            server.publishes.as_deref().unwrap_or_default(),
            consents.place()
        );
        return Ok(Some(server.clone()));
    }
    for server in servers.iter().filter(|s| is_allowed(s, &consents)) {
        if server.answers() {
            return Ok(Some(server.clone()));
        }
        say(format_args!(
            "'{}' ({}) does not answer",
            server.name, server.host
        ));
    }
    // One question, of the first of those that nothing was said of.
    let first = servers.iter().find(|server| is_open(server, &consents));
    match first {
        Some(server) if ask(server, &mut consents)? => Ok(Some(server.clone())),
        _ => Ok(None),
    }
}

/// Whether it is the user's own, or one that the user agreed to.
fn is_allowed(server: &Server, consents: &Consents) -> bool {
    server.publishes.is_none() || consents.given(&server.name) == Some(true)
}

/// Whether it is public, and the user neither agreed nor refused.
fn is_open(server: &Server, consents: &Consents) -> bool {
    server.publishes.is_some() && consents.given(&server.name).is_none()
}

/// All servers: the user's, the machine's, and the public ones. The first of a name counts.
fn listed(folders: &[PathBuf]) -> anyhow::Result<Vec<Server>> {
    let mut servers: Vec<Server> = Vec::new();
    let files = folders.iter().map(|folder| folder.join(FILE));
    let own = files.filter(|file| file.exists()).map(|file| {
        let text = std::fs::read_to_string(&file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        parse(&text).with_context(|| format!("{} is no list of servers", file.display()))
    });
    for list in own.chain([parse(PUBLIC)]) {
        for server in list? {
            if servers.iter().all(|known| known.name != server.name) {
                servers.push(server);
            }
        }
    }
    Ok(servers)
}

fn parse(text: &str) -> anyhow::Result<Vec<Server>> {
    let List { server } = toml::from_str(text)?;
    Ok(server)
}

/// Where plumb's settings are: the user's (XDG base directories), and the machine's.
fn folders() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = match variable("XDG_CONFIG_HOME") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => variable("HOME").map(|home| Path::new(&home).join(".config")),
    };
    let own = own.filter(|folder| folder.is_absolute());
    let own = own.into_iter().chain([PathBuf::from("/etc")]);
    own.map(|folder| folder.join("plumb")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_public_server_says_what_it_learns() {
        let servers = parse(PUBLIC).unwrap();
        assert!(!servers.is_empty());
        for server in servers {
            assert!(server.publishes.is_some(), "{}", server.name);
            assert!(web::authority(&server.host).is_some(), "{}", server.host);
        }
    }

    #[test]
    fn the_list_of_the_user_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let list = "[[server]]\nname = 'office'\nprotocol = 'native'\nhost = '192.0.2.7'\n\
                    [[server]]\nname = 'm-lab'\nprotocol = 'ndt7'\nhost = 'https://mirror.example'\n";
        std::fs::write(&file, list).unwrap();
        let servers = listed(&[folder.path().to_owned()]).unwrap();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["office", "m-lab", "apple", "cloudflare"]);
        assert_eq!(servers[1].host, "https://mirror.example");

        std::fs::write(&file, "[[server]]\nname = 'office'\n").unwrap();
        let says = format!("{:#}", listed(&[folder.path().to_owned()]).unwrap_err());
        assert!(
            says.contains("servers.toml is no list") && says.contains("protocol"),
            "{says}"
        );
    }
}
