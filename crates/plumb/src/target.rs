//! Far ends: their names, addresses and responders.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_load::{Caller, Client, ClientError, Waiting};
use plumb_measure::conductor::Conductor;
use plumb_measure::record::Judgement;
use plumb_measure::step::Step;
use plumb_model::run::kept;
use plumb_net::egress::Outlet;
use plumb_probe::path::Target as PathTarget;
use plumb_wire::native::spec::{PATIENCE, PORT};

use crate::exit::{Ends, stop_flag};
use crate::output::Begun;
use crate::progress::Line;
use crate::stderr::say;
use crate::usage::wrong;

/// How long a responder may take to answer: a lost SYN is retransmitted after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A far end as the user named it, and the address used for it.
pub(crate) struct Target {
    /// Name or address as the user typed it.
    pub(crate) name: String,
    /// The first address that the name resolves to, with the scope of a link-local one (RFC 4007), and
    /// the port that was typed or 0.
    pub(crate) address: SocketAddr,
    /// An address of the other version of IP, where the name has one.
    pub(crate) other_version: Option<SocketAddr>,
}

/// Version of IP that the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Whichever the resolver puts first (RFC 6724).
    Any,
    V4,
    V6,
}

impl Family {
    /// Whether IPv6 is wanted; `None` where either will do.
    pub(crate) fn ipv6(self) -> Option<bool> {
        match self {
            Self::Any => None,
            Self::V4 => Some(false),
            Self::V6 => Some(true),
        }
    }
}

/// The options that choose a version of IP.
#[derive(Args)]
pub(crate) struct FamilyOptions {
    /// Use IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "v6")]
    v4: bool,
    /// Use IPv6
    #[arg(short = '6', long = "ipv6")]
    v6: bool,
}

impl FamilyOptions {
    pub(crate) fn chosen(&self) -> Family {
        match (self.v4, self.v6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }
}

/// How a responder is asked.
#[derive(Args)]
pub(crate) struct ResponderOptions {
    /// Port of the responder; HOST:PORT does the same
    #[arg(short, long, default_value_t = PORT)]
    pub(crate) port: u16,
    /// Key of the responder, or @FILE that holds it [default: $PLUMB_KEY]
    ///
    /// `plumb serve` prints it. Clients of private networks need none.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl ResponderOptions {
    /// How this host presents itself, where others may be served first for so long at most.
    pub(crate) fn caller(&self, longest: Duration) -> anyhow::Result<Caller> {
        let text = self.key.clone().or_else(|| std::env::var("PLUMB_KEY").ok());
        let key = text.as_deref().map(crate::key::of_responder);
        Ok(Caller {
            longest,
            told: say_waiting,
            key: key.transpose()?,
        })
    }
}

/// The options that choose how packets get to a far end.
#[derive(Args)]
pub(crate) struct PathOptions {
    #[command(flatten)]
    family: FamilyOptions,
    /// Interface to send by, or address to send from
    #[arg(short = 'I', long, value_name = "IF|ADDR")]
    pub(crate) from: Option<Outlet>,
}

impl PathOptions {
    pub(crate) fn ipv6(&self) -> Option<bool> {
        self.family.chosen().ipv6()
    }

    /// Looks a name up, and finds the interface towards it.
    pub(crate) fn towards(&self, host: &str) -> anyhow::Result<(Target, Outlet)> {
        if let Some(from) = self.from.as_ref().filter(|from| from.source.is_none()) {
            // Before a name is looked up, which may take long; an address is compared with what was found.
            let checked = from.check(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
            checked.context("cannot send as --from asks")?;
        }
        let target = Target::resolve_as(host, self.family.chosen())?;
        let outlet = outlet_towards(&target.name, target.address, self.from.as_ref())?;
        Ok((target, outlet))
    }

    /// The same, for what explores the path.
    pub(crate) fn path_towards(&self, host: &str) -> anyhow::Result<PathTarget> {
        let (Target { name, address, .. }, outlet) = self.towards(host)?;
        Ok(PathTarget {
            name,
            address,
            outlet,
        })
    }
}

/// Measures one thing towards a far end, while a line on the terminal says how it goes, and shows what it found.
pub(crate) fn measure_towards(
    name: &str,
    address: SocketAddr,
    step: &mut dyn Step,
    judgement: Judgement,
    output: Begun<'_>,
) -> anyhow::Result<ExitCode> {
    let stop = stop_flag(Ends::ByItself)?;
    let line = Line::new();
    let conductor = Conductor::towards(command_line(), name, address.ip(), &line, &stop);
    let run = conductor.only(step, judgement)?.run;
    drop(line);
    output.emit(run)?;
    Ok(ExitCode::SUCCESS)
}

/// Why a name leads nowhere, and what to do; the resolver's own words only where they add to it.
fn not_found(host: &str, error: std::io::Error) -> anyhow::Error {
    /// How the C libraries (glibc, musl) say that there is no such name.
    const NO_SUCH_NAME: [&str; 2] = ["Name or service not known", "Name does not resolve"];
    let what = match host.split_once('%') {
        Some((_, scope)) => {
            format!("cannot find '{host}': check that there is an interface {scope} (ip link)")
        }
        None => format!("cannot find '{host}': check the spelling, or give an address"),
    };
    let said = error.to_string();
    match NO_SUCH_NAME.iter().any(|words| said.contains(words)) {
        true => anyhow::anyhow!(what),
        false => anyhow::Error::new(error).context(what),
    }
}

impl Target {
    /// One whose address is known.
    pub(crate) fn of(name: &str, address: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            address,
            other_version: None,
        }
    }

    /// Looks a name up; an address needs no lookup.
    pub(crate) fn resolve(name: &str) -> anyhow::Result<Self> {
        Self::resolve_as(name, Family::Any)
    }

    /// The same with an address of one version of IP.
    pub(crate) fn resolve_as(name: &str, family: Family) -> anyhow::Result<Self> {
        let (host, port) = split(name)?;
        let mut addresses = (host, port.unwrap_or(0))
            .to_socket_addrs()
            .map_err(|error| not_found(host, error))?
            .peekable();
        if host_of_url(name).is_some() {
            say(format_args!("{name} is taken for its host, {host}"));
        }
        anyhow::ensure!(addresses.peek().is_some(), "'{name}' has no address");
        let addresses: Vec<SocketAddr> = addresses.collect();
        let (v4, v6) = (
            addresses.iter().find(|address| address.is_ipv4()),
            addresses.iter().find(|address| address.is_ipv6()),
        );
        let address = *match family {
            Family::Any => addresses.first(),
            Family::V4 => v4,
            Family::V6 => v6,
        }
        .ok_or_else(|| {
            let (asked, other) = match family {
                Family::V4 => ("IPv4", "IPv6: leave out -4"),
                _ => ("IPv6", "IPv4: leave out -6"),
            };
            let why = format!("'{name}' has no address of {asked}, only of {other}");
            match host.parse::<IpAddr>() {
                Ok(_) => wrong(why),
                // What a name has is the resolver's to say.
                Err(_) => anyhow::Error::msg(why),
            }
        })?;
        if let SocketAddr::V6(v6) = address
            && v6.ip().is_unicast_link_local()
            && v6.scope_id() == 0
        {
            let ip = v6.ip();
            return Err(wrong(format!(
                "'{name}' is a link-local address, which every link may have: write which interface leads there, as in {ip}%eth0"
            )));
        }
        Ok(Self {
            name: match host_of_url(name) {
                Some((host, _)) => host.to_owned(),
                None => name.to_owned(),
            },
            address,
            other_version: addresses
                .iter()
                .find(|other| other.is_ipv4() != address.is_ipv4())
                .copied(),
        })
    }

    /// The name or address without a port.
    pub(crate) fn host(&self) -> &str {
        split(&self.name).map_or(&self.name, |(host, _)| host)
    }

    /// The note for a name that has addresses of both versions, where the user chose neither.
    pub(crate) fn families_note(&self, asked: Family) -> Option<String> {
        (self.other_version.is_some() && asked == Family::Any).then(|| {
            format!(
                "{} has addresses of IPv4 and of IPv6, of which the resolver prefers {}; -4 and -6 choose.",
                self.name,
                self.address.ip()
            )
        })
    }

    /// Its address, with this port unless the user typed another.
    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        let mut address = self.address;
        if address.port() == 0 {
            address.set_port(port);
        }
        address
    }

    /// Its address of the other version of IP with the same port.
    pub(crate) fn other_at(&self, port: u16) -> Option<SocketAddr> {
        let mut other = self.other_version?;
        if other.port() == 0 {
            other.set_port(port);
        }
        Some(other)
    }

    /// Connects to the responder there.
    pub(crate) fn connect(&self, responder: &ResponderOptions) -> anyhow::Result<Client> {
        let caller = responder.caller(PATIENCE)?;
        Ok(self.connect_as(responder.port, caller)?)
    }

    /// The same by another port and as another caller.
    pub(crate) fn connect_as(&self, port: u16, caller: Caller) -> Result<Client, ClientError> {
        let timeout = CONNECT_TIMEOUT.min(caller.longest);
        let address = self.at(port);
        Client::connect_in_turn(&Outlet::default(), &self.name, address, timeout, caller)
    }
}

/// Says why nothing happens for a while.
fn say_waiting(name: &str, Waiting { ahead, after }: Waiting) {
    let before = match ahead {
        0 => "another client".to_owned(),
        ahead => format!("{} other clients", ahead.saturating_add(1)),
    };
    let after = after.map_or(String::new(), |after| {
        format!(", for about {} s", after.as_secs() + 1)
    });
    say(format_args!("{name} serves {before} first: waiting{after}"));
}

/// The interface or address towards a far end that the user chose (`--from`), where there is one.
pub(crate) fn outlet_towards(
    name: &str,
    address: SocketAddr,
    from: Option<&Outlet>,
) -> anyhow::Result<Outlet> {
    let Some(outlet) = from else {
        return Ok(Outlet::default());
    };
    let checked = outlet.check(address);
    checked.with_context(|| format!("cannot send to {name} as --from asks"))?;
    Ok(outlet.clone())
}

/// Name or address, and the port behind it: `HOST:PORT`, or `[ADDRESS]:PORT` where the address has
/// colons of its own (RFC 3986 section 3.2.2).
fn split(text: &str) -> anyhow::Result<(&str, Option<u16>)> {
    if let Some((host, port)) = host_of_url(text) {
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        return match port.is_none_or(is_port) {
            true => Ok((host, None)),
            false => Err(no_port(text)),
        };
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or_default())),
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            // Several: an address in IPv6.
            _ => (text, None),
        },
    };
    if host.trim().is_empty() {
        let typed = match text.trim() {
            "" => "the name of the host is empty".to_owned(),
            text => format!("'{text}' names no host"),
        };
        return Err(wrong(format!(
            "{typed}: write HOST, HOST:PORT or [ADDRESS]:PORT"
        )));
    }
    let port = match port.map(str::parse) {
        None => None,
        // What is left of a URL without a host.
        Some(_) if port.is_some_and(|port| port.starts_with('/')) => {
            return Err(wrong(format!(
                "'{text}' names no host: write HOST, HOST:PORT, [ADDRESS]:PORT or http://HOST/"
            )));
        }
        Some(Ok(port)) if port != 0 => Some(port),
        Some(_) => {
            return Err(no_port(text));
        }
    };
    Ok((host, port))
}

fn no_port(text: &str) -> anyhow::Error {
    wrong(format!(
        "'{text}' has no port from 1 to 65535 behind the host"
    ))
}

/// The host of what was copied from a browser, `https://server:8443/page`, and the text of its port. It is the port
/// of the web server, and not the port that a verb asks for.
fn host_of_url(text: &str) -> Option<(&str, Option<&str>)> {
    let (scheme, rest) = text.split_once("://")?;
    let word = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if scheme.is_empty() || !word(scheme) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, behind) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or((rest, "")),
        None => {
            let colon = authority.find(':').unwrap_or(authority.len());
            authority.split_at(colon)
        }
    };
    let port = behind.strip_prefix(':').filter(|port| !port.is_empty());
    (!host.is_empty()).then_some((host, port))
}

/// What the Run keeps of the command that was typed.
pub(crate) fn command_line() -> Vec<String> {
    let typed = std::env::args_os().skip(1);
    kept::command(typed.map(|argument| argument.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::usage::UsageError;

    #[test]
    fn a_name_that_is_not_there_is_said_once() {
        let no_name = std::io::Error::other(
            "failed to lookup address information: Name or service not known",
        );
        let said = format!("{:#}", not_found("sever", no_name));
        assert_eq!(
            said,
            "cannot find 'sever': check the spelling, or give an address"
        );
        let other = std::io::Error::other("Temporary failure in name resolution");
        let said = format!("{:#}", not_found("server", other));
        assert!(said.contains("Temporary failure"), "{said}");
    }

    #[test]
    fn a_host_may_bring_its_port() {
        for (text, host, port) in [
            ("server", "server", None),
            ("server:80", "server", Some(80)),
            ("192.0.2.1", "192.0.2.1", None),
            ("192.0.2.1:65535", "192.0.2.1", Some(65535)),
            ("2001:db8::1", "2001:db8::1", None),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("[2001:db8::1]:80", "2001:db8::1", Some(80)),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[fe80::1%eth0]:80", "fe80::1%eth0", Some(80)),
            ("::1", "::1", None),
            ("http://example.com", "example.com", None),
            ("https://me@example.com:8443/a?b#c", "example.com", None),
            ("http://[2001:db8::1]:80/", "2001:db8::1", None),
        ] {
            assert_eq!(split(text).unwrap(), (host, port), "{text}");
        }
        for wrong in [
            "",
            ":80",
            "[]:80",
            "server:",
            "server:http",
            "server:0",
            "[::1]80",
            "a:65536",
            " ",
            "http://",
            "http://server:99999/",
            "http://server:http",
        ] {
            let error = split(wrong).unwrap_err();
            assert!(error.is::<UsageError>(), "{wrong}");
            assert!(!error.to_string().contains("''"), "{wrong}: {error}");
        }
    }

    #[test]
    fn one_family_can_be_asked_for() {
        assert!(Target::resolve_as("127.0.0.1", Family::V4).is_ok());
        let says = format!("{:#}", Target::resolve_as("::1", Family::V4).err().unwrap());
        assert!(
            says.contains("no address of IPv4") && says.contains("-4"),
            "{says}"
        );
    }

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        // The loopback has this name and number on every Linux.
        let target = Target::resolve("[fe80::1%lo]:80").unwrap();
        let SocketAddr::V6(address) = target.at(7586) else {
            panic!()
        };
        assert_eq!((address.scope_id(), address.port()), (1, 80));
        assert_eq!(Target::resolve("fe80::1%lo").unwrap().at(7586).port(), 7586);
        let says = |text: &str| format!("{:#}", Target::resolve(text).err().unwrap());
        assert!(says("fe80::1").contains("fe80::1%eth0"));
        assert!(says("fe80::1%no-such0").contains("interface no-such0"));
        assert!(says("server:http").contains("port from 1 to 65535"));
    }
}
