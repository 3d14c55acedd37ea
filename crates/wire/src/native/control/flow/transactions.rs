//! Transactions: a request, and an answer of a declared size. What netperf calls RR (one after
//! the other on one connection) and CRR (each on a connection of its own).

use std::ops::RangeInclusive;

use plumb_model::protocol::Protocol;
use serde::{Deserialize, Serialize};

use super::super::refusal::Refusal;
use crate::native::echo;

/// One stream of transactions: the next begins when the one before has ended, or, with a rate,
/// not before it is due. The client asks, so its direction is up.
///
/// Over TCP and TLS the requests of one connection go over its data connection. Where each
/// transaction has a connection of its own, the data connection only represents the stream, as over UDP; the others
/// begin like data connections of the same stream, and come while the phase runs. Over UDP the echo answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransactionFlow {
    pub transport: Protocol,
    /// Whether each has a connection of its own.
    #[serde(default)]
    pub connect: bool,
    /// Payload of a request.
    pub request_bytes: u32,
    /// Payload of an answer.
    pub response_bytes: u32,
    /// How many begin each second on this stream; as many as can be when absent.
    pub rate_tps: Option<f64>,
    /// The client begins them when something else in the phase says so; only where each has a
    /// connection of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
}

impl TransactionFlow {
    /// Whether the data connection itself is encrypted.
    pub fn is_tls(&self) -> bool {
        self.transport == Protocol::Tls && !self.connect
    }

    /// What one transaction moves.
    pub fn bytes(&self) -> u64 {
        u64::from(self.request_bytes) + u64::from(self.response_bytes)
    }

    /// Whether there can be such transactions.
    ///
    /// # Errors
    /// Why there cannot.
    pub fn check(&self) -> Result<(), (Refusal, String)> {
        let malformed = |message: String| Err((Refusal::Malformed, message));
        let sizes = match self.transport {
            Protocol::Udp => UDP_BYTES,
            Protocol::Tcp | Protocol::Tls => TCP_BYTES,
            other => return malformed(format!("no transactions go over {other}")),
        };
        for (what, bytes) in [
            ("a request", self.request_bytes),
            ("an answer", self.response_bytes),
        ] {
            if !sizes.contains(&bytes) {
                return malformed(format!(
                    "{what} over {} has {} to {} bytes, not {bytes}",
                    self.transport,
                    sizes.start(),
                    sizes.end()
                ));
            }
        }
        if self.transport == Protocol::Udp && self.connect {
            return malformed("UDP has no connections".to_owned());
        }
        if self.on_demand && (!self.connect || self.rate_tps.is_some()) {
            return malformed(
                "transactions on demand have a connection each, and no rate".to_owned(),
            );
        }
        match self.rate_tps {
            Some(rate) if !RATE_TPS.contains(&rate) => malformed(format!(
                "a rate is {} to {} transactions a second, not {rate}",
                RATE_TPS.start(),
                RATE_TPS.end()
            )),
            _ => Ok(()),
        }
    }
}

/// From netperf's smallest to what one send buffer holds with Linux' stock settings: a
/// larger answer is a download, which is measured as one.
pub const TCP_BYTES: RangeInclusive<u32> = 1..=4 << 20;

/// From the head of the echo's datagram to the largest payload of UDP over IPv4 (RFC 768).
pub const UDP_BYTES: RangeInclusive<u32> = echo::MIN_BYTES as u32..=65_507;

/// From one in a quarter of an hour to one a microsecond, which no connection answers.
pub const RATE_TPS: RangeInclusive<f64> = 0.001..=1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::{Tcp, Tls, Udp};

    fn flow(transport: Protocol, request_bytes: u32, response_bytes: u32) -> TransactionFlow {
        TransactionFlow {
            transport,
            connect: false,
            request_bytes,
            response_bytes,
            rate_tps: None,
            on_demand: false,
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let refusal = |flow: TransactionFlow| flow.check().err().map(|(_, message)| message);
        for possible in [
            flow(Tcp, 1, 1),
            flow(Tls, 100, 4 << 20),
            flow(Udp, 64, 64),
            flow(Udp, 64, 65_507),
        ] {
            assert_eq!(refusal(possible), None);
        }
        let connect = |flow| TransactionFlow {
            connect: true,
            ..flow
        };
        let rate = |rate_tps| TransactionFlow {
            rate_tps: Some(rate_tps),
            ..flow(Tcp, 1, 1)
        };
        assert_eq!(refusal(connect(flow(Tls, 1, 1))), None);
        let on_demand = |flow| TransactionFlow {
            on_demand: true,
            ..flow
        };
        assert_eq!(refusal(on_demand(connect(flow(Tls, 1, 1)))), None);
        for (impossible, why) in [
            (flow(Tcp, 0, 1), "1 to 4194304"),
            (flow(Tls, 1, (4 << 20) + 1), "an answer over tls"),
            (flow(Udp, 1, 1), "64 to 65507"),
            (flow(Udp, 64, 65_508), "64 to 65507"),
            (connect(flow(Udp, 64, 64)), "no connections"),
            (on_demand(flow(Tcp, 1, 1)), "on demand"),
            (rate(0.0), "a second"),
            (rate(-1.0), "a second"),
            (rate(f64::NAN), "a second"),
            (rate(f64::INFINITY), "a second"),
        ] {
            let message = refusal(impossible.clone());
            assert!(
                message.as_ref().is_some_and(|m| m.contains(why)),
                "{impossible:?}: {message:?}"
            );
        }
    }

    #[test]
    fn only_connections_that_carry_requests_are_encrypted() {
        let crr = TransactionFlow {
            connect: true,
            ..flow(Tls, 1, 1)
        };
        assert_eq!(
            [flow(Tcp, 1, 1), flow(Tls, 1, 1), crr].map(|f| f.is_tls()),
            [false, true, false]
        );
    }
}
