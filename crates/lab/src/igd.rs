//! A gateway that reports its line by UPnP IGD, as a service of a scenario: the little of it that
//! `plumb check --ask-gateway` reads. It reports the counters of an interface of its node, cut to 32 bits as the
//! standard has them.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use plumb_model::units::BitRate;
use plumb_wire::igd::ssdp;

/// Where the description and the services are (miniupnpd's usual port).
const PORT: u16 = 5000;

/// The longest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 4096;

/// How long the bytes of a request may keep it waiting, each time.
const REQUEST: Duration = Duration::from_secs(1);

const LINE: &str = "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1";

/// A gateway, and what it reports of its line.
#[derive(Debug, Clone)]
pub struct Igd {
    /// The interface that is its line.
    pub line: String,
    /// What the line carries, as it says.
    pub down: BitRate,
    pub up: BitRate,
}

impl Igd {
    /// Answers until the process ends.
    ///
    /// # Errors
    /// When its ports cannot be had.
    pub fn run(self) -> io::Result<()> {
        let searches = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, ssdp::PORT))?;
        let requests = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
        // It ends with the process.
        thread::spawn(move || answer_searches(&searches));
        for stream in requests.incoming() {
            // A malformed request gets no answer, and the others are served.
            let _ = stream.and_then(|stream| self.answer(stream));
        }
        Ok(())
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(REQUEST))?;
        let request = request(&mut stream)?;
        let asks = |what: &str| request.contains(what);
        let body = if asks("GET /root.xml ") {
            description()
        } else if asks("#GetCommonLinkProperties") {
            let (down, up) = (self.down.bps(), self.up.bps());
            values(&[
                ("NewWANAccessType", "Cable".to_owned()),
                ("NewLayer1UpstreamMaxBitRate", up.to_string()),
                ("NewLayer1DownstreamMaxBitRate", down.to_string()),
                ("NewPhysicalLinkStatus", "Up".to_owned()),
            ])
        } else if asks("#GetTotalBytesSent") {
            values(&[("NewTotalBytesSent", self.counted("tx_bytes")?)])
        } else if asks("#GetTotalBytesReceived") {
            values(&[("NewTotalBytesReceived", self.counted("rx_bytes")?)])
        } else {
            values(&[("errorCode", "401".to_owned())])
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes())
    }

    /// A counter of the line, as a number of 32 bits.
    fn counted(&self, name: &str) -> io::Result<String> {
        let folder = Path::new("/sys/class/net").join(&self.line);
        let text = std::fs::read_to_string(folder.join("statistics").join(name))?;
        let count: u64 = text.trim().parse().map_err(io::Error::other)?;
        Ok((count % (1 << 32)).to_string())
    }
}

/// Reads a request as far as its head goes; what follows says nothing more.
fn request(stream: &mut TcpStream) -> io::Result<String> {
    let mut request = Vec::new();
    let mut bytes = [0; 1024];
    while request.len() < MAX_REQUEST_BYTES {
        let count = stream.read(&mut bytes)?;
        request.extend_from_slice(bytes.get(..count).unwrap_or_default());
        let text = String::from_utf8_lossy(&request);
        // What asks with a body ends with its envelope.
        if count == 0 || text.contains("Envelope>") || text.starts_with("GET ") {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

fn answer_searches(searches: &UdpSocket) {
    let mut bytes = [0; 1500];
    while let Ok((count, from)) = searches.recv_from(&mut bytes) {
        let search = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default());
        if search.starts_with("M-SEARCH ")
            && let Ok(own) = towards(from)
        {
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\n\
                 ST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nEXT:\r\n\
                 LOCATION: http://{own}:{PORT}/root.xml\r\n\r\n"
            );
            let _ = searches.send_to(answer.as_bytes(), from);
        }
    }
}

/// The address at which a client of that source reaches this host.
fn towards(from: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(from)?;
    Ok(socket.local_addr()?.ip())
}

fn description() -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<root xmlns=\"urn:schemas-upnp-org:device-1-0\"><device><manufacturer>plumb</manufacturer>\
         <modelName>laboratory</modelName><serviceList><service><serviceType>{LINE}</serviceType>\
         <controlURL>/ctl</controlURL></service></serviceList></device></root>\n"
    )
}

fn values(values: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (name, value) in values {
        let _ = write!(text, "<{name}>{value}</{name}>");
    }
    format!(
        "<?xml version=\"1.0\"?>\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>\
         <u:Response xmlns:u=\"{LINE}\">{text}</u:Response></s:Body></s:Envelope>\n"
    )
}
