//! What carries the load at the far end: a responder, or a server of others.

use clap::ValueEnum;
use plumb_load::{Client, ClientError, Iperf3};
use plumb_wire::native::spec::{PATIENCE, PORT};

use crate::stderr::say;
use crate::target::{ResponderOptions, Target};

/// A protocol by which a far end carries load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// plumb serve
    Native,
    /// iperf3's server, on the first port from 5201 to 5210 that is not busy
    Iperf3,
}

/// What carries the load.
pub(crate) enum FarEnd {
    Responder(Box<Client>),
    Server(Iperf3),
}

impl FarEnd {
    /// Finds what was asked for; where nothing was, a responder, and else a server of iperf3.
    pub(crate) fn find(
        target: &Target,
        responder: &ResponderOptions,
        protocol: Option<Protocol>,
    ) -> anyhow::Result<Self> {
        // A port that was not typed is that of a responder.
        let port = Some(responder.port).filter(|port| *port != PORT);
        let server = Iperf3::at(&target.name, target.at(port.unwrap_or(0)));
        if protocol == Some(Protocol::Iperf3) {
            return Ok(Self::Server(server));
        }
        let caller = responder.caller(PATIENCE)?;
        match target.connect_as(responder.port, caller) {
            Ok(client) => Ok(Self::Responder(Box::new(client))),
            Err(ClientError::Refused { .. })
                if protocol.is_none() && server.address().port() == 0 && server.is_there() =>
            {
                say(format_args!(
                    "{} runs no plumb serve: measuring with its iperf3 server",
                    target.name
                ));
                Ok(Self::Server(server))
            }
            Err(error) => Err(error.into()),
        }
    }
}
