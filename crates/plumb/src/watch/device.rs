//! `plumb watch device`: what a device has, once.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plumb_watch::target::device::{Login, LookError, look};
use plumb_wire::snmp::PORT;
use plumb_wire::snmp::usm::authentication::Authentication;
use plumb_wire::snmp::usm::privacy::Privacy;

use crate::output::{print, print_json};
use crate::target::Target;
use crate::usage::wrong;
use crate::words;

/// Examples, and what it cannot do.
pub(super) const LIMITS: &str = "\
Examples:
  plumb watch device 192.168.1.2 --community-file community
  plumb watch device sw1 --user reader --authentication-file a --privacy-file p

Limits: it reads, and sets nothing. Secrets are read from files, because other users of this machine can read a command line. The \
use of a port is measured over one second; where the agent updates its counters less often, it is unknown.";

#[derive(Args)]
#[command(after_long_help = LIMITS)]
pub(crate) struct Arguments {
    /// The device: a name or an address
    host: String,
    /// UDP port of its agent
    #[arg(short, long, default_value_t = PORT)]
    port: u16,
    /// Version 2c, by the community in it
    #[arg(long, value_name = "FILE", required_unless_present = "user")]
    community_file: Option<PathBuf>,
    /// Version 3, as this user
    #[arg(long, value_name = "NAME", conflicts_with = "community_file")]
    user: Option<String>,
    /// Hash of authentication
    #[arg(long, value_name = "HASH", value_parser = words::any::<Authentication>(), default_value = "sha256", hide_possible_values = true)]
    authentication: Authentication,
    /// Its password [default: none]
    #[arg(long, value_name = "FILE", requires = "user")]
    authentication_file: Option<PathBuf>,
    /// Cipher of privacy
    #[arg(long, value_name = "CIPHER", value_parser = words::any::<Privacy>(), default_value = "aes128", hide_possible_values = true)]
    privacy: Privacy,
    /// Its password [default: none]
    #[arg(long, value_name = "FILE", requires = "authentication_file")]
    privacy_file: Option<PathBuf>,
    /// Only ports such as 'eth*' [default: all]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    ports: Vec<String>,
    /// Print an object of JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let login = arguments.login()?;
    let target = Target::resolve(&arguments.host)?;
    let mut to = target.address;
    to.set_port(arguments.port);
    let found = look(to, &login, &arguments.ports).map_err(|error| match error {
        LookError::Secret(why) => wrong(why),
        LookError::Ask(why) => anyhow::anyhow!("{}: {why}", target.name),
    })?;
    match arguments.json {
        true => print_json(&found)?,
        false => print(&found.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn login(&self) -> anyhow::Result<Login> {
        let Some(name) = &self.user else {
            let file = self.community_file.clone();
            let file = file.ok_or_else(|| {
                wrong("give --community-file FILE (version 2c) or --user NAME (version 3)")
            })?;
            return Ok(Login::CommunityFile(file));
        };
        let authentication = self.authentication_file.clone();
        let privacy = self.privacy_file.clone();
        if privacy.is_some() && self.authentication.key_bytes() < self.privacy.key_bytes() {
            return Err(wrong(
                "--privacy aes256 takes --authentication sha256 or longer, whose keys are long enough",
            ));
        }
        Ok(Login::User {
            name: name.clone(),
            authentication: authentication.map(|file| (self.authentication, file)),
            privacy: privacy.map(|file| (self.privacy, file)),
        })
    }
}
