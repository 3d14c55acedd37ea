//! What a plan asks of a far end that carries TCP and nothing else.

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
    ) -> Result<Self, ClientError> {
        let cannot = |what| cannot(name, protocol, what);
        let mut flows = plan.flows.iter().map(|flows| match &flows.flow {
            Flow::Tcp(tcp) => Ok(tcp),
            _ => Err(cannot("test of anything but TCP with plumb as its client")),
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
            flow: first.clone(),
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
