//! What a phase is made of: groups of equal streams. Streams are numbered from 0 in each
//! direction, group after group.

use serde::{Deserialize, Serialize};

use super::Refusal;
use super::frame::Role;
use crate::native::spec::{DEFAULT_CONGESTION_CONTROL, MAX_CC_NAME_BYTES};

/// A number of equal streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flows {
    /// How many.
    pub count: u32,
    /// Which way their data goes.
    pub role: Role,
    /// What each of them is.
    #[serde(flatten)]
    pub flow: Flow,
}

/// One stream, as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
pub enum Flow {
    /// As much as TCP takes.
    Tcp(TcpFlow),
}

/// A TCP connection that carries as much as it can.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpFlow {
    /// Congestion control of the sender; CUBIC when absent.
    pub cc: Option<String>,
    /// DSCP of both ends' packets, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// Whether it is encrypted (TLS 1.3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

impl Flow {
    /// Whether its data connection is to be encrypted.
    pub fn is_tls(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.tls,
        }
    }
}

impl Flows {
    /// So many TCP connections.
    pub fn tcp(count: u32, role: Role, flow: TcpFlow) -> Self {
        Self {
            count,
            role,
            flow: Flow::Tcp(flow),
        }
    }

    /// Whether a far end may be asked for it.
    ///
    /// # Errors
    /// What a client is told that asks for something that cannot be.
    pub fn check(&self) -> Result<(), (Refusal, String)> {
        match &self.flow {
            Flow::Tcp(flow) => flow.check(),
        }
    }
}

impl TcpFlow {
    /// The congestion control that is asked for.
    pub fn congestion_control(&self) -> &str {
        self.cc.as_deref().unwrap_or(DEFAULT_CONGESTION_CONTROL)
    }

    fn check(&self) -> Result<(), (Refusal, String)> {
        let is_a_name = |cc: &str| {
            (1..=MAX_CC_NAME_BYTES).contains(&cc.len())
                && cc
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        if !self.cc.as_deref().is_none_or(is_a_name) {
            return Err((
                Refusal::Malformed,
                "no congestion control can have the name that was asked for".into(),
            ));
        }
        if self.dscp.is_some_and(|dscp| dscp > MAX_DSCP) {
            return Err((Refusal::Malformed, format!("a DSCP is 0 to {MAX_DSCP}")));
        }
        Ok(())
    }
}

/// Six bits (RFC 2474, section 3).
const MAX_DSCP: u8 = 63;

/// The streams of one direction with their numbers.
pub fn streams(flows: &[Flows], role: Role) -> impl Iterator<Item = (u32, &Flow)> {
    flows
        .iter()
        .filter(move |flows| flows.role == role)
        .flat_map(|flows| (0..flows.count).map(|_| &flows.flow))
        .zip(0..)
        .map(|(flow, number)| (number, flow))
}

/// How many streams there are in one direction.
pub fn count(flows: &[Flows], role: Role) -> u64 {
    flows
        .iter()
        .filter(|flows| flows.role == role)
        .map(|flows| u64::from(flows.count))
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn streams_are_numbered_in_each_direction_group_after_group() {
        let cc = |name: &str| TcpFlow {
            cc: Some(name.into()),
            ..TcpFlow::default()
        };
        let flows = [
            Flows::tcp(2, Role::Up, cc("cubic")),
            Flows::tcp(1, Role::Down, cc("bbr")),
            Flows::tcp(1, Role::Up, cc("reno")),
        ];
        let up: Vec<_> = streams(&flows, Role::Up).collect();
        let [a, b, c] = up.as_slice() else {
            panic!("{up:?}")
        };
        assert_eq!((a.0, b.0, c.0), (0, 1, 2));
        assert_eq!((a.1, b.1), (c_of(&flows, 0), c_of(&flows, 0)));
        assert_eq!(c.1, c_of(&flows, 2));
        assert_eq!((count(&flows, Role::Up), count(&flows, Role::Down)), (3, 1));
    }

    fn c_of(flows: &[Flows], group: usize) -> &Flow {
        &flows.get(group).unwrap().flow
    }

    #[test]
    fn flows_look_as_specified() {
        let flows = Flows::tcp(2, Role::Down, TcpFlow::default());
        assert_eq!(
            serde_json::to_string(&flows).unwrap(),
            r#"{"count":2,"role":"down","protocol":"tcp","cc":null,"dscp":null}"#
        );
        let short = r#"{"count":2,"role":"down","protocol":"tcp"}"#;
        assert_eq!(serde_json::from_str::<Flows>(short).unwrap(), flows);
    }
}
