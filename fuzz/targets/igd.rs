//! What a gateway answers to a search, as its description, and to a question: nobody is sent to another host.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use plumb_wire::igd::soap::{Answer, Question};
use plumb_wire::igd::{description, ssdp};

const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 1));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(url) = ssdp::description_url(bytes, GATEWAY) {
        assert!(ssdp::is_at(&url, GATEWAY));
    }
    let Ok(url) = "http://192.168.1.1:5000/root.xml".parse() else {
        return;
    };
    if let Ok(found) = description::read(bytes, &url, GATEWAY) {
        for service in found.line.iter().chain(&found.connection) {
            assert!(ssdp::is_at(&service.control, GATEWAY));
        }
    }
    if let Ok(answer) = Answer::read(bytes) {
        let _ = (answer.line(), answer.address());
        let _ = answer.bytes(Question::BytesSent);
    }
});
