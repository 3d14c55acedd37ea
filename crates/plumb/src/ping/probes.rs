//! What the probes of `plumb ping` are made of, and what cannot be asked of each kind.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use plumb_model::protocol::Protocol;
use plumb_net::privilege;
use plumb_wire::native::spec::PORT;
use plumb_wire::{dns, irtt, stamp};

use super::arguments::Arguments;
use crate::usage::wrong;

/// The port where none is given.
pub(crate) fn usual_port(protocol: Protocol) -> u16 {
    match protocol {
        Protocol::Udp => PORT,
        // RFC 862.
        Protocol::UdpPort => 7,
        Protocol::Tcp | Protocol::Http => 80,
        Protocol::Https => 443,
        Protocol::Dns => dns::PORT,
        Protocol::Stamp => stamp::PORT,
        Protocol::Irtt => irtt::PORT,
        _ => 0,
    }
}

/// What probes are made of, and why where the user did not choose it.
pub(super) struct Probes {
    pub(super) protocol: Protocol,
    /// Why they are not ICMP, and how they could be.
    pub(super) instead: Option<String>,
}

impl Probes {
    /// What the user asked for; else ICMP, or TCP where this user may not send ICMP to all of these.
    pub(super) fn choose(
        arguments: &Arguments,
        targets: impl IntoIterator<Item = SocketAddr>,
    ) -> Self {
        let wanted = arguments.protocol;
        let versions: BTreeSet<bool> = targets.into_iter().map(|to| to.is_ipv4()).collect();
        if wanted.is_some() || versions.into_iter().all(privilege::may_echo) {
            return Self {
                protocol: wanted.unwrap_or(Protocol::Icmp),
                instead: None,
            };
        }
        let usual = usual_port(Protocol::Tcp);
        Self {
            protocol: Protocol::Tcp,
            instead: Some(format!(
                "This user may not send ICMP, so the probes are TCP connections, reset at once, to port {} where no \
                 other is named. To allow ICMP: {}, or {}",
                arguments.port.unwrap_or(usual),
                privilege::allow_raw_sockets(),
                privilege::ALLOW_PING_SOCKETS
            )),
        }
    }

    /// Refuses what was asked of single packets, where connections and the error queue leave it to the kernel.
    pub(super) fn check(&self, arguments: &Arguments, many: bool) -> anyhow::Result<()> {
        match self.contradiction(arguments, many) {
            Some(why) => Err(self.explain(wrong(why))),
            None => Ok(()),
        }
    }

    /// An error, with why the probes are what they are.
    pub(super) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(instead) = &self.instead else {
            return error;
        };
        let told = format!("{error:#}. {instead}");
        // Around it, not instead of it: the exit status goes by what it is.
        error.context(told)
    }

    fn contradiction(&self, arguments: &Arguments, many: bool) -> Option<String> {
        use Protocol::{Dns, Http, Https, Icmp, Tcp, UdpPort};
        let certificates = arguments.trust.is_given();
        if certificates && !matches!(self.protocol, Https) {
            return Some(
                "certificates are looked at over HTTPS alone: leave --ca and --insecure out, or add --protocol https"
                    .to_owned(),
            );
        }
        if arguments.pattern.is_some() && !matches!(self.protocol, Icmp | UdpPort) {
            return Some(
                "a pattern fills ICMP echoes and plain datagrams alone: leave --pattern out, or add --protocol icmp or udp-port"
                    .to_owned(),
            );
        }
        if arguments.ask.is_some() && !matches!(self.protocol, Dns | Http | Https) {
            return Some(
                "names and pages are asked for over DNS and HTTP alone: leave --ask out, or add --protocol dns, http or https"
                    .to_owned(),
            );
        }
        // Where the user chose no protocol, it is the port of the probes that replace ICMP.
        if arguments.port.is_some() && matches!(arguments.protocol, Some(Icmp)) {
            return Some("ICMP has no ports: leave --port out, or choose a --protocol".to_owned());
        }
        if arguments.pps.is_some() && !many {
            return Some(
                "--pps is the rate over several far ends: the time between probes to one is -i"
                    .to_owned(),
            );
        }
        if many && arguments.stamp && arguments.verbose && arguments.fping.is_none() {
            return Some(
                "the lines of several far ends have no times: take --fping or --json-lines instead of -D -v"
                    .to_owned(),
            );
        }
        let sizes = arguments.size.is_some() || arguments.sweep.is_some();
        let fragments = arguments.pmtudisc.is_some();
        let (name, given) = match self.protocol {
            Dns => ("dns", sizes),
            UdpPort => ("udp-port", fragments && !many),
            Tcp | Http | Https => (
                "tcp, http and https",
                sizes || fragments || arguments.ttl.is_some(),
            ),
            _ => return None,
        };
        given.then(|| {
            format!(
                "{name}: the sizes (-s, --sweep) or the treatment of the packets (-M, --ttl) cannot be chosen there: leave \
                 them out"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::message;
    use crate::usage::UsageError;

    #[test]
    fn why_the_probes_are_no_icmp_is_added_to_errors_that_stay_what_they_are() {
        let probes = Probes {
            protocol: Protocol::Tcp,
            instead: Some("No ICMP here".to_owned()),
        };
        let contradiction = probes.explain(wrong("leave -s out"));
        assert_eq!(message(&contradiction), "leave -s out. No ICMP here");
        assert!(contradiction.is::<UsageError>());
        let silence = probes.explain(anyhow::anyhow!("timed out").context("nothing came back"));
        assert_eq!(
            message(&silence),
            "nothing came back: timed out. No ICMP here"
        );
        assert!(!silence.is::<UsageError>());
    }
}
