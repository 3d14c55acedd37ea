//! How long a mail server takes from the SYN to the first byte of its greeting (RFC 5321, section 3.1).

use std::time::Duration;

use plumb_net::egress::Outlet;
use plumb_probe::exchange::{Talk, exchange};

use super::certificate::no_connection;
use super::kind::{FarEnd, Kind, Probed};
use super::settings::{Settings, Wrong};

/// Servers let strangers wait for their greeting on purpose, against spam; five minutes are allowed (RFC 5321, section
/// 4.5.3.2.1), and one is longer than any that is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection a minute bothers no mail server.
const EVERY: Duration = Duration::from_secs(60);

/// The reply with which a server greets.
const READY: &str = "220";

#[derive(Debug)]
struct Smtp {
    port: u16,
    within: Duration,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let within = settings.time("within", (Duration::from_secs(1), PATIENCE))?;
    Ok(Box::new(Smtp {
        port: settings.port(25)?,
        within: within.unwrap_or(Duration::from_secs(10)),
    }))
}

impl Kind for Smtp {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let talk = Talk {
            host: far.host.to_owned(),
            tls: None,
            path: None,
            listen: self.within,
            dscp: None,
            outlet: Outlet::default(),
        };
        let probed = Probed::now();
        let seen = match exchange(far.at(self.port), &talk, self.within) {
            Ok(seen) => seen,
            Err(why) => return no_connection(probed, why),
        };
        let Some(first_byte) = seen.first_byte else {
            let why = seen.error.unwrap_or_else(|| "it does not greet".to_owned());
            return Ok(probed.lost(why));
        };
        let banner = seen.banner.unwrap_or_default();
        let banner = banner.lines().next().unwrap_or_default().trim();
        match banner.starts_with(READY) {
            true => Ok(probed.with((seen.connect + first_byte).as_secs_f64())),
            false => {
                let banner: String = banner.chars().take(80).collect();
                Ok(probed.lost(format!("it greets with '{banner}'")))
            }
        }
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::target::settings::tests::settings;

    /// Probes a server that says that after so long.
    fn greeted(greeting: &'static [u8], after: Duration) -> Probed {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            thread::sleep(after);
            let _ = stream.write_all(greeting);
            let _ = stream.read(&mut [0; 10]);
        });
        let text = format!("port = {port}\nwithin = \"1s\"");
        let kind = read(&mut settings(&text)).unwrap();
        let far = FarEnd {
            host: "localhost",
            address: Ipv4Addr::LOCALHOST.into(),
            trust: None,
            every: EVERY,
        };
        kind.probe(&far).unwrap()
    }

    #[test]
    fn the_greeting_is_timed_and_read() {
        let probed = greeted(b"220 mail.example ESMTP\r\n", Duration::from_millis(300));
        let value = probed.value.unwrap();
        // How long it took is measured by a thread that may not run when the greeting leaves.
        assert!(value > 0.0, "{value}");
        let busy = greeted(b"421 go away\r\n", Duration::ZERO);
        assert_eq!(
            (busy.value, busy.why.as_deref()),
            (None, Some("it greets with '421 go away'"))
        );
        let noise = greeted(b"\xff\x00\x1b[2J\r\n", Duration::ZERO);
        assert!(noise.value.is_none() && noise.why.is_some(), "{noise:?}");
    }

    #[test]
    fn silence_ends_in_time() {
        let begun = Instant::now();
        let probed = greeted(b"", Duration::from_secs(60));
        assert!(probed.value.is_none() && probed.why.is_some(), "{probed:?}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
