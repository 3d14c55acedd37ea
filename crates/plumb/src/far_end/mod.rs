//! What carries the load at the far end: a responder, or a server of others.

mod consent;
pub(crate) mod servers;
mod sought;
mod web;

use clap::ValueEnum;
use plumb_load::web::Site;
use plumb_load::{Client, ClientError, Iperf3, Peer};
use plumb_measure::far_end::FarEnd;
use plumb_wire::iperf3;
use plumb_wire::native::spec::PORT;
use serde::Deserialize;

use crate::stderr::say;
pub(crate) use sought::Sought;
pub(crate) use web::authority;

/// A protocol by which a far end carries load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    /// plumb serve
    Native,
    /// iperf3's server, on the first port from 5201 to 5210 that is not busy
    Iperf3,
    /// NDT7's server, on port 443 or 4043
    Ndt7,
    /// A server of networkQuality, on port 443 or 4043
    Nq,
    /// A web server: the file at a URL, or /__down and /__up
    Http,
}

impl Protocol {
    /// Whether its servers are named by URLs.
    pub(crate) fn takes_urls(self) -> bool {
        matches!(self, Self::Ndt7 | Self::Nq | Self::Http)
    }

    /// The ports on which its servers are looked for where none is typed.
    fn ports(self) -> &'static [u16] {
        match self {
            Self::Native => &[PORT],
            Self::Iperf3 => &[iperf3::PORT],
            Self::Ndt7 | Self::Nq | Self::Http => &web::PORTS,
        }
    }
}

/// Finds what was asked for; where nothing was, a responder, and else a server of iperf3 or networkQuality.
pub(crate) fn find(sought: Sought<'_>, protocol: Option<Protocol>) -> anyhow::Result<FarEnd> {
    Ok(match protocol {
        None => return whatever(sought),
        Some(Protocol::Native) => FarEnd::Responder(responder(sought)??),
        Some(Protocol::Iperf3) => of_iperf3(iperf3_at(sought)),
        Some(Protocol::Ndt7) => {
            let server = web::ndt7(sought)?;
            of_web(sought, &server.site.clone(), server)
        }
        Some(Protocol::Nq) => {
            let server = web::network_quality(sought)?;
            of_web(sought, &server.site.clone(), server)
        }
        Some(Protocol::Http) => {
            let server = web::http(sought)?;
            of_web(sought, &server.site.clone(), server)
        }
    })
}

fn of_iperf3(server: Iperf3) -> FarEnd {
    FarEnd::Server {
        address: server.address(),
        named: None,
        peer: Box::new(server),
    }
}

fn of_web(sought: Sought<'_>, site: &Site, peer: impl Peer + 'static) -> FarEnd {
    let typed = sought.target.address.ip();
    FarEnd::Server {
        address: site.address,
        named: (site.address.ip() != typed).then(|| site.authority.clone()),
        peer: Box::new(peer),
    }
}

fn whatever(sought: Sought<'_>) -> anyhow::Result<FarEnd> {
    let refused = match responder(sought)? {
        Ok(client) => return Ok(FarEnd::Responder(client)),
        Err(error @ ClientError::Refused { .. }) if sought.port().is_none() => error,
        Err(error) => return Err(error.into()),
    };
    let name = &sought.target.name;
    let found = |what| {
        say(format_args!(
            "{name} runs no plumb serve: measuring with its {what}"
        ));
    };
    let server = iperf3_at(sought);
    if server.is_there() {
        found("iperf3 server");
        return Ok(of_iperf3(server));
    }
    if let Ok(server) = web::network_quality(sought) {
        found("networkQuality server");
        return Ok(of_web(sought, &server.site.clone(), server));
    }
    Err(refused.into())
}

fn responder(sought: Sought<'_>) -> anyhow::Result<Result<Box<Client>, ClientError>> {
    let caller = sought.responder.caller(sought.patience)?;
    let client = sought.target.connect_as(sought.responder.port, caller);
    Ok(client.map(Box::new))
}

fn iperf3_at(sought: Sought<'_>) -> Iperf3 {
    let port = sought.port().unwrap_or(0);
    Iperf3::at(&sought.target.name, sought.target.at(port))
}
