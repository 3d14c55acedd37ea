//! A web server that gets the message by HTTP POST.

use std::path::PathBuf;
use std::time::Duration;

use plumb_probe::post::Post;
use serde::Deserialize;

use super::delivery::{Delivery, NotTaken, within};
use super::trust::Believed;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    url: String,
    within: Option<String>,
    ca: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
}

#[derive(Debug)]
struct Webhook {
    to: WebServer,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Delivery>, String> {
    let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
    let within = within(settings.within.as_deref())?;
    let to = WebServer::read(&settings.url, settings.ca, settings.insecure, within)?;
    Ok(Box::new(Webhook { to }))
}

impl Delivery for Webhook {
    fn send(&self, message: &str) -> Result<(), NotTaken> {
        Ok(self.to.send(message)?)
    }
}

/// A web server, and whose certificate of it is believed.
#[derive(Debug)]
pub(super) struct WebServer {
    to: Post,
    believed: Believed,
    within: Duration,
}

impl WebServer {
    pub(super) fn read(
        url: &str,
        ca: Option<PathBuf>,
        insecure: bool,
        within: Duration,
    ) -> Result<Self, String> {
        let to = Post::to(url)?;
        for (key, given) in [("insecure", insecure), ("ca", ca.is_some())] {
            if given && !to.is_https() {
                return Err(format!("{key} is for https alone: leave it out"));
            }
        }
        Ok(Self {
            to,
            believed: Believed::read(ca, insecure)?,
            within,
        })
    }

    pub(super) fn send(&self, json: &str) -> Result<(), String> {
        let trust = self.to.is_https().then(|| self.believed.trust());
        self.to.send(json, trust.transpose()?.as_ref(), self.within)
    }
}
