//! How a gateway is found (UPnP Device Architecture 1.1, section 1.3): a search by UDP, and what answers it.

use std::net::{IpAddr, Ipv4Addr};

use crate::http_head::Head;
use crate::url::{Scheme, Url};

/// The group that devices listen to, and the port (section 1.3.2).
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);
pub const PORT: u16 = 1900;

/// How many networks a search may cross (section 1.3.2 asks for 2).
pub const TIME_TO_LIVE: u32 = 2;

/// Devices spread their answers over so many seconds (MX, 1 to 5).
pub const SPREAD_S: u64 = 1;

/// The longest answer in bytes: a datagram that no network splits.
pub const MAX_ANSWER_BYTES: usize = 1500;

/// A search for a gateway; one of version 2 answers it, too (section 1.3.2).
pub fn search() -> Vec<u8> {
    format!(
        "M-SEARCH * HTTP/1.1\r\nHOST: {GROUP}:{PORT}\r\nMAN: \"ssdp:discover\"\r\nMX: {SPREAD_S}\r\n\
         ST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\n\r\n"
    )
    .into_bytes()
}

/// The URL of the description of the device that answered from that address. `None` where it is no answer to the
/// search, or where the URL is at another host: a datagram must not direct requests to third parties.
pub fn description_url(answer: &[u8], from: IpAddr) -> Option<Url> {
    let answer = answer.get(..MAX_ANSWER_BYTES).unwrap_or(answer);
    let head = Head::parse(answer).filter(|head| head.status == 200)?;
    let is_gateway = head
        .field("st")
        .is_some_and(|target| target.contains("InternetGatewayDevice"));
    let url: Url = head
        .field("location")
        .filter(|_| is_gateway)?
        .parse()
        .ok()?;
    is_at(&url, from).then_some(url)
}

/// Whether a URL is of plain HTTP at that address.
pub fn is_at(url: &Url, address: IpAddr) -> bool {
    url.origin.scheme == Scheme::Http && url.origin.host.parse() == Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 1));

    fn answered(location: &str, target: &str) -> Option<String> {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nST: urn:schemas-upnp-org:device:{target}\r\nEXT:\r\n\
             Location: {location}\r\n\r\n"
        );
        description_url(answer.as_bytes(), GATEWAY).map(|url| url.target)
    }

    #[test]
    fn only_a_gateway_that_points_to_itself_is_followed() {
        let gateway = "InternetGatewayDevice:1";
        let own = "http://192.168.1.1:5000/rootDesc.xml";
        assert_eq!(answered(own, gateway).as_deref(), Some("/rootDesc.xml"));
        assert_eq!(
            answered(own, "InternetGatewayDevice:2").as_deref(),
            Some("/rootDesc.xml")
        );
        assert_eq!(answered(own, "MediaServer:1"), None);
        for elsewhere in [
            "http://192.168.1.2:5000/rootDesc.xml",
            "http://router.example/rootDesc.xml",
            "https://192.168.1.1/rootDesc.xml",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(answered(elsewhere, gateway), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_search_is_a_request_of_its_own_kind() {
        let search = String::from_utf8_lossy(&search()).into_owned();
        assert!(search.starts_with("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n"));
        assert!(search.ends_with("\r\n\r\n"));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_no_panic(answer in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = description_url(&answer, GATEWAY);
        }
    }
}
