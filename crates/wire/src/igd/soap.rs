//! What a gateway is asked, and its answers (UPnP Device Architecture 1.1, section 3; SOAP 1.1). All that is asked here
//! only reads.

use std::net::Ipv4Addr;

use super::xml::{Leaf, XmlError, leaves};

/// A question without arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Rates and state of the line (WANCommonInterfaceConfig:1, 2.4.3).
    Line,
    /// Bytes that it has sent and received, as numbers of 32 bits (2.4.5, 2.4.6).
    BytesSent,
    BytesReceived,
    /// The address that the gateway has on the line (WANIPConnection:1, 2.4.18).
    Address,
}

impl Question {
    fn action(self) -> &'static str {
        match self {
            Self::Line => "GetCommonLinkProperties",
            Self::BytesSent => "GetTotalBytesSent",
            Self::BytesReceived => "GetTotalBytesReceived",
            Self::Address => "GetExternalIPAddress",
        }
    }

    /// The header field SOAPACTION of it, of a service of that type.
    pub fn soap_action(self, service: &str) -> String {
        format!("\"{service}#{}\"", self.action())
    }

    /// The body of the request.
    pub fn body(self, service: &str) -> String {
        let action = self.action();
        format!(
            "<?xml version=\"1.0\"?>\r\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><s:Body><u:{action} xmlns:u=\"{service}\">\
             </u:{action}></s:Body></s:Envelope>\r\n"
        )
    }
}

/// Why there is no answer in what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SoapError {
    #[error("its answer cannot be read: {0}")]
    Xml(#[from] XmlError),
    /// 401 is "invalid action", 501 "action failed" (UPnP Device Architecture 1.1, table 3-3).
    #[error("it refuses (UPnP error {0})")]
    Refused(u16),
    #[error("its answer lacks {0}")]
    Lacks(&'static str),
}

/// The values of an answer.
pub struct Answer(Vec<Leaf>);

impl Answer {
    /// # Errors
    /// When it cannot be read, or refuses.
    pub fn read(document: &[u8]) -> Result<Self, SoapError> {
        let this = Self(leaves(document)?);
        match this.text("errorCode") {
            Some(code) => Err(SoapError::Refused(code.parse().unwrap_or(0))),
            None => Ok(this),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let mut leaves = self.0.iter();
        let leaf = leaves.find(|leaf| leaf.name == name)?;
        Some(&leaf.text)
    }

    /// The counter of an answer to [`Question::BytesSent`] or [`Question::BytesReceived`].
    ///
    /// # Errors
    /// When there is none.
    pub fn bytes(&self, question: Question) -> Result<u64, SoapError> {
        let name = match question {
            Question::BytesSent => "NewTotalBytesSent",
            _ => "NewTotalBytesReceived",
        };
        let number = self.text(name).and_then(|text| text.parse().ok());
        number.ok_or(SoapError::Lacks(name))
    }

    /// The answer to [`Question::Line`].
    pub fn line(&self) -> Line {
        // Zero is what gateways report that do not know.
        let rate = |name| {
            let number: Option<u64> = self.text(name).and_then(|text| text.parse().ok());
            number.filter(|bps| *bps > 0).map(|bps| bps as f64)
        };
        Line {
            access: self.text("NewWANAccessType").and_then(|text| {
                let mut known = ["DSL", "Cable", "Ethernet", "POTS"].into_iter();
                known.find(|known| known.eq_ignore_ascii_case(text))
            }),
            up: self
                .text("NewPhysicalLinkStatus")
                .map(|text| text.eq_ignore_ascii_case("Up")),
            up_bps: rate("NewLayer1UpstreamMaxBitRate"),
            down_bps: rate("NewLayer1DownstreamMaxBitRate"),
        }
    }

    /// The answer to [`Question::Address`].
    pub fn address(&self) -> Option<Ipv4Addr> {
        let address: Ipv4Addr = self.text("NewExternalIPAddress")?.parse().ok()?;
        (!address.is_unspecified()).then_some(address)
    }
}

/// What a gateway reports of its line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Line {
    /// What kind of line it is, where it is one that the standard names.
    pub access: Option<&'static str>,
    /// Whether it is connected.
    pub up: Option<bool>,
    /// What it carries at most, in bit/s.
    pub up_bps: Option<f64>,
    pub down_bps: Option<f64>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const SERVICE: &str = "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1";

    fn answer(values: &str) -> Result<Answer, SoapError> {
        let document = format!(
            "<?xml version=\"1.0\"?><s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>\
             <u:Response xmlns:u=\"{SERVICE}\">{values}</u:Response></s:Body></s:Envelope>"
        );
        Answer::read(document.as_bytes())
    }

    #[test]
    fn a_question_names_its_service_and_its_action() {
        assert_eq!(
            Question::Line.soap_action(SERVICE),
            format!("\"{SERVICE}#GetCommonLinkProperties\"")
        );
        let body = Question::BytesSent.body(SERVICE);
        assert!(body.contains(&format!("<u:GetTotalBytesSent xmlns:u=\"{SERVICE}\">")));
        assert!(leaves(body.as_bytes()).is_ok());
    }

    #[test]
    fn a_line_is_read_as_far_as_it_is_known() {
        let line = answer(
            "<NewWANAccessType>dsl</NewWANAccessType><NewLayer1UpstreamMaxBitRate>10000000</NewLayer1UpstreamMaxBitRate>\
             <NewLayer1DownstreamMaxBitRate>0</NewLayer1DownstreamMaxBitRate>\
             <NewPhysicalLinkStatus>Up</NewPhysicalLinkStatus>",
        );
        let expected = Line {
            access: Some("DSL"),
            up: Some(true),
            up_bps: Some(1e7),
            down_bps: None,
        };
        assert_eq!(line.unwrap().line(), expected);
        assert_eq!(answer("").unwrap().line(), Line::default());
    }

    #[test]
    fn counters_are_numbers_or_nothing() {
        let sent = |text: &str| {
            let answer = answer(&format!("<NewTotalBytesSent>{text}</NewTotalBytesSent>"));
            answer.unwrap().bytes(Question::BytesSent)
        };
        assert_eq!(sent("4294967295"), Ok(4_294_967_295));
        let lacks = Err(SoapError::Lacks("NewTotalBytesSent"));
        for wrong in ["", "-1", "1e9", "99999999999999999999"] {
            assert_eq!(sent(wrong), lacks, "{wrong}");
        }
    }

    #[test]
    fn a_refusal_and_no_address_are_known() {
        let fault = "<detail><UPnPError><errorCode>401</errorCode></UPnPError></detail>";
        assert_eq!(answer(fault).err(), Some(SoapError::Refused(401)));
        let address = |text: &str| {
            let answer = answer(&format!(
                "<NewExternalIPAddress>{text}</NewExternalIPAddress>"
            ));
            answer.unwrap().address()
        };
        assert_eq!(address("203.0.113.7"), Some(Ipv4Addr::new(203, 0, 113, 7)));
        assert_eq!((address("0.0.0.0"), address("")), (None, None));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_no_panic(document in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(answer) = Answer::read(&document) {
                let _ = (answer.line(), answer.address(), answer.bytes(Question::BytesReceived));
            }
        }
    }
}
