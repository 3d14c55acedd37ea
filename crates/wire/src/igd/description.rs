//! What a gateway offers: the part of its description that says where its line is asked about
//! (UPnP Device Architecture 1.1, section 2.3).

use std::net::IpAddr;

use plumb_model::printable;

use super::ssdp::is_at;
use super::xml::{Leaf, XmlError, leaves};
use crate::url::Url;

/// What a service's type begins with, whatever its version.
const COMMON: &str = "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:";
const CONNECTIONS: [&str; 2] = [
    "urn:schemas-upnp-org:service:WANIPConnection:",
    "urn:schemas-upnp-org:service:WANPPPConnection:",
];

/// The longest name of a model that is kept, in characters.
const MAX_MODEL_CHARS: usize = 80;

/// A service of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its type with its version, as each request names it.
    pub kind: String,
    /// Where questions to it are posted, at the gateway's own address.
    pub control: Url,
}

/// What of a gateway's description is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Maker and model, as far as they are there.
    pub model: Option<String>,
    /// The line itself: its rates and counters.
    pub line: Option<Service>,
    /// The connection over it: its address.
    pub connection: Option<Service>,
}

/// Reads the description that came from that URL. Services elsewhere than at the gateway's own address are left out.
///
/// # Errors
/// When it is no XML within bounds.
pub fn read(document: &[u8], from: &Url, gateway: IpAddr) -> Result<Description, XmlError> {
    let leaves = leaves(document)?;
    let first = |name: &str| {
        let mut named = leaves.iter().filter(|leaf| leaf.name == name);
        named.next().map(|leaf| leaf.text.as_str())
    };
    // Version 1.0 may name another base; it is believed where it is the gateway's own.
    let base = first("URLBase").and_then(|base| base.parse().ok());
    let base = base.filter(|base| is_at(base, gateway));
    let base = base.unwrap_or_else(|| from.clone());
    let service = |kinds: &[&str]| {
        let of_kind = |leaf: &&Leaf| {
            leaf.name == "serviceType" && kinds.iter().any(|kind| leaf.text.starts_with(kind))
        };
        leaves.iter().filter(of_kind).find_map(|kind| {
            let mut beside = leaves.iter().filter(|leaf| leaf.within == kind.within);
            let control = beside.find(|leaf| leaf.name == "controlURL")?;
            let control = base.join(&control.text).ok()?;
            (is_at(&control, gateway) && is_plain(&kind.text)).then(|| Service {
                kind: kind.text.clone(),
                control,
            })
        })
    };
    let names = ["manufacturer", "modelName"].map(|name| first(name).unwrap_or_default());
    let model = names.join(" ");
    let model = printable::clipped(model.trim(), MAX_MODEL_CHARS).into_owned();
    Ok(Description {
        model: (!model.is_empty()).then_some(model),
        line: service(&[COMMON]),
        connection: service(&CONNECTIONS),
    })
}

/// Whether a type can be written to a header and to XML without escapes.
fn is_plain(kind: &str) -> bool {
    kind.len() <= 128
        && kind
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b":-._".contains(&b))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const GATEWAY: [u8; 4] = [192, 168, 1, 1];

    fn described(services: &str) -> Description {
        let document = format!(
            "<?xml version=\"1.0\"?>\r\n<root xmlns=\"urn:schemas-upnp-org:device-1-0\"><device>\
             <manufacturer>Acme</manufacturer><modelName>Box \u{202e}7</modelName><deviceList><device><serviceList>\
             {services}</serviceList></device></deviceList></device></root>"
        );
        let from: Url = "http://192.168.1.1:5000/desc/root.xml".parse().unwrap();
        read(document.as_bytes(), &from, GATEWAY.into()).unwrap()
    }

    fn service(kind: &str, control: &str) -> String {
        format!(
            "<service><serviceType>urn:schemas-upnp-org:service:{kind}</serviceType><serviceId>x</serviceId>\
             <controlURL>{control}</controlURL></service>"
        )
    }

    #[test]
    fn the_line_and_the_connection_are_found() {
        let all = [
            service("Layer3Forwarding:1", "/l3f"),
            service("WANCommonInterfaceConfig:1", "/ctl/common"),
            service("WANPPPConnection:1", "ppp"),
        ];
        let found = described(&all.concat());
        assert_eq!(found.model.as_deref(), Some("Acme Box \u{fffd}7"));
        let (line, connection) = (found.line.unwrap(), found.connection.unwrap());
        assert_eq!(
            line.kind,
            "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1"
        );
        assert_eq!(
            line.control.to_string(),
            "http://192.168.1.1:5000/ctl/common"
        );
        assert_eq!(connection.control.target, "/desc/ppp");
    }

    #[test]
    fn nobody_is_sent_elsewhere() {
        for elsewhere in [
            "http://192.168.1.9/ctl",
            "//192.168.1.9/ctl",
            "https://192.168.1.1/ctl",
            "http://user@192.168.1.1/ctl",
        ] {
            let found = described(&service("WANCommonInterfaceConfig:1", elsewhere));
            assert_eq!(found.line, None, "{elsewhere}");
        }
        let injected = service("WANCommonInterfaceConfig:1\r\nX: y", "/ctl");
        assert_eq!(described(&injected).line, None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_no_panic(document in prop::collection::vec(any::<u8>(), 0..300)) {
            let from: Url = "http://192.168.1.1/".parse().unwrap();
            let _ = read(&document, &from, GATEWAY.into());
        }
    }
}
