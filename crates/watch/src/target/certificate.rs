//! How many days a server's certificate is still valid, whatever authority signed it; negative once it ended.

use plumb_net::egress::Outlet;
use plumb_probe::Trust;
use plumb_probe::exchange::{NoConnection, Talk, exchange};

use super::kind::{FarEnd, Kind, Probed, TIMEOUT};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;
use std::time::Duration;

/// Certificates end at a second that was known for months: an hour is soon enough.
const EVERY: Duration = Duration::from_secs(3600);

const SECONDS_A_DAY: f64 = 86_400.0;

#[derive(Debug)]
struct Certificate {
    port: u16,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    Ok(Box::new(Certificate {
        port: settings.port(443)?,
    }))
}

impl Kind for Certificate {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let talk = Talk {
            host: far.host.to_owned(),
            // A certificate that ended, or that is not trusted, has its days too.
            tls: Some(Trust::anyone().map_err(|error| error.to_string())?),
            path: None,
            listen: Duration::ZERO,
            dscp: None,
            outlet: Outlet::default(),
        };
        let probed = Probed::now();
        let seen = match exchange(far.at(self.port), &talk, TIMEOUT) {
            Ok(seen) => seen,
            Err(why) => return no_connection(probed, why),
        };
        let until_s = match (seen.tls, seen.error) {
            (Some(tls), _) => tls.valid_until_s,
            (None, why) => {
                return Ok(probed.lost(why.unwrap_or_else(|| "no TLS began".to_owned())));
            }
        };
        let now_s = probed.sent_us as f64 / 1e6;
        Ok(match until_s {
            Some(until_s) => probed.with((until_s as f64 - now_s) / SECONDS_A_DAY),
            None => probed.lost("its certificate cannot be read"),
        })
    }

    fn unit(&self) -> Unit {
        Unit::Days
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }
}

/// What it means where no connection came about.
pub(super) fn no_connection(probed: Probed, why: NoConnection) -> Result<Probed, String> {
    match why {
        NoConnection::Refused(_) => Ok(probed.lost("the connection is refused")),
        NoConnection::NoAnswer => Ok(probed.lost("no host answers")),
        NoConnection::Unreachable(why) => Ok(probed.lost(why)),
        NoConnection::Local(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::thread;

    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

    use super::*;
    use crate::target::kind::now_us;
    use crate::target::settings::tests::settings;

    fn probe(port: u16) -> Probed {
        let kind = read(&mut settings(&format!("port = {port}"))).unwrap();
        let far = FarEnd {
            host: "localhost",
            address: Ipv4Addr::LOCALHOST.into(),
            trust: None,
            every: EVERY,
        };
        kind.probe(&far).unwrap()
    }

    /// A server of one connection; what it does ends the thread.
    fn served(serve: impl FnOnce(TcpStream) + Send + 'static) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || serve(listener.accept().unwrap().0));
        port
    }

    /// A server with a certificate that ends then.
    fn with_certificate(until: (i32, u8, u8)) -> u16 {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
        let key = rcgen::KeyPair::generate().unwrap();
        let signed = params.self_signed(&key).unwrap();
        let chain = vec![CertificateDer::from(signed.der().to_vec())];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        served(move |mut stream| {
            let mut session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
            while session.is_handshaking() && session.complete_io(&mut stream).is_ok() {}
            let _ = stream.read(&mut [0; 100]);
        })
    }

    #[test]
    fn days_are_those_until_the_certificate_ends() {
        // 2040-01-01 and 2020-01-01, in seconds since 1970.
        for (until, until_s) in [
            ((2040, 1, 1), 2_208_988_800.0),
            ((2020, 1, 1), 1_577_836_800.0),
            // After 2049 dates have four digits of the year.
            ((2060, 1, 1), 2_840_140_800.0),
        ] {
            let days = probe(with_certificate(until)).value.unwrap();
            let expected = (until_s - now_us() as f64 / 1e6) / SECONDS_A_DAY;
            assert!((days - expected).abs() < 0.01, "{days} {expected}");
        }
    }

    #[test]
    fn what_has_no_certificate_is_no_answer() {
        let plain = served(|mut stream| {
            let _ = stream.write_all(b"220 no TLS here\r\n");
            let _ = stream.read(&mut [0; 1000]);
        });
        let probed = probe(plain);
        assert!(probed.value.is_none() && probed.why.unwrap().contains("TLS"),);
        let silent = served(|stream| {
            thread::sleep(Duration::from_secs(
                60 + u64::from(stream.local_addr().is_err()),
            ))
        });
        let begun = std::time::Instant::now();
        assert_eq!(probe(silent).value, None);
        assert!(begun.elapsed() < Duration::from_secs(30));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert_eq!(
            probe(port).why.as_deref(),
            Some("the connection is refused")
        );
    }
}
