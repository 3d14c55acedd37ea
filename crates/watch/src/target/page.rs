//! How long a page takes with all that it names, as a browser that was never there loads it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_probe::page::{PagePlan, load};
use plumb_wire::url::Url;

use super::kind::{FarEnd, Kind, Probed};
use super::settings::{Settings, Wrong};

/// A page is some megabytes and a hundred requests: not more often than a visitor would come.
const EVERY: Duration = Duration::from_secs(300);
const LEAST_EVERY: Duration = Duration::from_secs(60);

/// How long a load may take, unless the file says otherwise: who waits longer has gone.
const WITHIN: Duration = Duration::from_secs(30);
const WITHIN_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

#[derive(Debug)]
struct Page {
    /// Without it the host's first page, by TLS.
    url: Option<Url>,
    within: Duration,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let url = match settings.take::<String>("url")? {
        None => None,
        Some(text) => {
            let url = text.parse::<Url>();
            Some(url.map_err(|error| settings.wrong("url", error.to_string()))?)
        }
    };
    Ok(Box::new(Page {
        url,
        within: settings.time("within", WITHIN_BOUNDS)?.unwrap_or(WITHIN),
    }))
}

impl Kind for Page {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => format!("https://{}/", far.host)
                .parse()
                .map_err(|error| format!("{error}"))?,
        };
        let trust = far
            .trust
            .cloned()
            .ok_or("whose certificates count is not known")?;
        let mut plan = PagePlan::new(url, trust);
        plan.limits.time = self.within;
        let probed = Probed::now();
        // It ends by its own limit.
        let result = load(&plan, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
        let failed = match (result.load_s, result.status) {
            (Some(load_s), Some(status)) if status < 400 && result.failed == 0 => {
                return Ok(probed.with(load_s));
            }
            (_, Some(status)) if status >= 400 => format!("the page has status {status}"),
            (Some(_), _) => format!(
                "{} of {} objects did not come",
                result.failed, result.requested
            ),
            (None, _) => match result.first_byte_s {
                Some(_) => "the page did not come whole".to_owned(),
                None => "the page did not come".to_owned(),
            },
        };
        Ok(probed.lost(failed))
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn check(&self, every: Duration) -> Result<(), String> {
        match every < LEAST_EVERY {
            true => Err(format!(
                "a page is loaded every {} s at most: it is a hundred requests",
                LEAST_EVERY.as_secs()
            )),
            false => Ok(()),
        }
    }

    fn needs_trust(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use plumb_probe::Trust;

    use super::*;
    use crate::target::settings::tests::settings;

    /// Probes a page of a server that answers its one request so.
    fn loaded(answer: &'static str) -> Probed {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let kind = read(&mut settings(&format!(
            "url = \"http://127.0.0.1:{port}/\""
        )))
        .unwrap();
        let far = FarEnd {
            host: "127.0.0.1",
            address: Ipv4Addr::LOCALHOST.into(),
            trust: Some(&Trust::anyone().unwrap()),
            every: EVERY,
        };
        kind.probe(&far).unwrap()
    }

    #[test]
    fn a_page_that_comes_has_its_time_and_one_that_does_not_is_lost() {
        let whole =
            loaded("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi");
        assert!(whole.value.is_some(), "{whole:?}");
        let away = loaded("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(
            (away.value, away.why.as_deref()),
            (None, Some("the page has status 503"))
        );
        let short =
            loaded("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nhi");
        assert!(short.value.is_none() && short.why.is_some(), "{short:?}");
    }

    #[test]
    fn it_is_not_asked_for_too_often_and_needs_a_url() {
        let kind = read(&mut settings("")).unwrap();
        assert!(kind.check(Duration::from_secs(59)).is_err());
        assert!(kind.check(LEAST_EVERY).is_ok());
        assert!(read(&mut settings("url = \"ftp://x/\"")).is_err());
    }
}
