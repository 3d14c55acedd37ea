//! What a plan asks of a far end that carries TCP and nothing else.

use std::time::Duration;

use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow::{Flow, TcpFlow, count};

use crate::control_client::ClientError;
use crate::phase_plan::PhasePlan;

/// So many streams down and up, and what each of them is.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) down: u32,
    pub(crate) up: u32,
    pub(crate) flow: TcpFlow,
    /// When the load of each stream of its direction begins, where requests are to be made beside it.
    pub(crate) probed: Option<Vec<Duration>>,
}

/// What a protocol has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Has {
    /// Loads, and nothing beside them.
    Loads,
    /// Requests beside loads, too, on the loaded connections and on others, all of them with TLS.
    Requests,
}

impl Asked {
    /// What a plan asks a far end of that name and protocol for.
    ///
    /// # Errors
    /// When it is something else than streams of TCP that are all alike.
    pub(crate) fn of(
        plan: &PhasePlan,
        name: &str,
        protocol: &'static str,
        has: Has,
    ) -> Result<Self, ClientError> {
        let cannot = |what| cannot(name, protocol, what);
        // In the name of that stream connections are made, which each protocol has a way of its own for.
        let is_foreign = |flow: &Flow| matches!(flow, Flow::Transactions(flow) if flow.on_demand);
        let loads = plan
            .flows
            .iter()
            .filter(|flows| has == Has::Loads || !is_foreign(&flows.flow));
        let starts = loads.clone().map(|flows| {
            let probed = flows.flow.tcp()?.probed.as_ref()?;
            let starts = Duration::try_from_secs_f64(probed.starts_after_s).ok()?;
            Some(std::iter::repeat_n(starts, flows.count as usize))
        });
        let probed: Option<Vec<_>> = starts.collect();
        let probed = probed.filter(|_| has == Has::Requests);
        let mut flows = loads.map(|flows| match &flows.flow {
            Flow::Tcp(tcp) => Ok(match probed {
                None => tcp.clone(),
                Some(_) => TcpFlow {
                    probed: None,
                    tls: false,
                    ..tcp.clone()
                },
            }),
            other if other.udp().is_some() => Err(cannot("test with datagrams")),
            _ => Err(cannot("test of this kind with plumb as its client")),
        });
        let first = flows.next().unwrap_or(Err(cannot("test without a load")))?;
        for flow in flows {
            if flow? != first {
                return Err(cannot("streams that differ"));
            }
        }
        for (is_asked, what) in [
            (first.tls, "choice of TLS"),
            (first.far_disk, "files at the far end"),
            (first.fast_open, "TCP Fast Open"),
            (first.mptcp, "Multipath TCP with plumb as its client"),
            (first.background, "LEDBAT++"),
            (first.probed.is_some(), "probes on loaded connections"),
        ] {
            if is_asked {
                return Err(cannot(what));
            }
        }
        let [down, up] = [OneDirection::Down, OneDirection::Up]
            .map(|role| u32::try_from(count(&plan.flows, role)).unwrap_or(u32::MAX));
        Ok(Self {
            down,
            up,
            flow: first,
            probed: probed.map(|starts| starts.into_iter().flatten().collect()),
        })
    }
}

/// That a protocol has no such thing.
pub(crate) fn cannot(name: &str, protocol: &'static str, what: &'static str) -> ClientError {
    ClientError::NotInProtocol {
        name: name.to_owned(),
        protocol,
        what,
    }
}
