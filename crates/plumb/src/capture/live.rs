//! `plumb capture -i` and `--follow`: packets as they pass an interface, or as another program writes them.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use plumb_capture::{Filter, Named};
use plumb_measure::capture::{Files, Follow, Live, Wanted};
use plumb_net::netlink::link::links;
use plumb_net::privilege::allow_raw_sockets;

use crate::exit::Ends;
use crate::output::say;
use crate::quantity::time_above_zero;
use crate::usage::wrong;

/// What tcpdump keeps of a packet by default, in bytes: the most that libpcap allows (MAXIMUM_SNAPLEN).
const WHOLE_BYTES: u32 = 262_144;
/// The headers of Ethernet, IPv4 and TCP without options: less is of no use.
const LEAST_BYTES: u32 = 54;

/// ENODEV, which every Linux numbers so.
const NO_DEVICE: i32 = 19;

#[derive(Args)]
pub(super) struct Options {
    /// Capture this interface until Ctrl-C; any is all of them
    #[arg(short, long, value_name = "IFACE", group = "passing", conflicts_with_all = ["files", "both"])]
    interface: Option<String>,
    /// Read on as FILE grows, until Ctrl-C
    #[arg(long, group = "passing", conflicts_with_all = ["both", "interface"])]
    follow: bool,
    /// End the capture after this time
    #[arg(short = 't', long = "for", value_name = "TIME", value_parser = time_above_zero, requires = "passing")]
    duration: Option<Duration>,
    /// Keep so many bytes of each packet
    #[arg(long, value_name = "BYTES", default_value_t = WHOLE_BYTES, value_parser = clap::value_parser!(u32).range(i64::from(LEAST_BYTES)..=i64::from(WHOLE_BYTES)), hide_default_value = true, conflicts_with = "files")]
    snaplen: u32,
    /// Capture packets for other hosts too
    #[arg(long, conflicts_with = "files")]
    promiscuous: bool,
}

impl Options {
    pub(super) fn is_asked_for(&self) -> bool {
        self.interface.is_some()
    }

    /// Whether a file is to be read on as it grows.
    pub(super) fn follows(&self) -> bool {
        self.follow
    }

    /// A signal is how it ends where no time is given.
    pub(super) fn ends(&self) -> Ends {
        let passes = self.is_asked_for() || self.follow;
        Ends::by_signal_if(passes && self.duration.is_none())
    }

    /// Begins to read the file that grows.
    pub(super) fn follow(
        &self,
        files: &[PathBuf],
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Named<Follow>> {
        let [path] = files else {
            return Err(wrong("--follow takes one file"));
        };
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Err(wrong(
                "--follow is for a file; standard input is read on by itself: plumb capture -",
            ));
        }
        let until = match self.duration {
            Some(_) => "",
            None => "; Ctrl-C ends it",
        };
        say(format!("Following {name}{until}."));
        let reader = Follow::begin(path, self.duration, stop);
        let reader = reader.with_context(|| format!("cannot read {name}"))?;
        Ok(Named { name, reader })
    }

    /// Begins to capture the interface that was named.
    pub(super) fn begin(
        &self,
        filter: Option<Filter>,
        files: Option<Files>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Named<Live>> {
        let interface = self.interface.as_deref().unwrap_or_default();
        let wanted = Wanted {
            interface,
            filter,
            snaplen: self.snaplen,
            promiscuous: self.promiscuous,
            length: self.duration,
            files,
        };
        let live = Live::begin(wanted, stop).map_err(|error| why_not(interface, error))?;
        match self.duration {
            Some(_) => say(format!("Capturing on {interface}.")),
            None => say(format!("Capturing on {interface}; Ctrl-C ends it.")),
        }
        Ok(Named {
            name: interface.to_owned(),
            reader: live,
        })
    }
}

/// What helps where an interface cannot be captured.
pub(super) fn why_not(interface: &str, error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::PermissionDenied if error.raw_os_error().is_some() => anyhow!(
            "Capturing needs root, or CAP_NET_RAW: {}",
            allow_raw_sockets()
        ),
        _ if error.raw_os_error() == Some(NO_DEVICE) => {
            let there = links().map(|links| links.into_iter().map(|link| link.name));
            let there: Vec<String> = there.map_or_else(|_| Vec::new(), Iterator::collect);
            anyhow!(
                "there is no interface {interface}; there are {}, and any for all of them",
                there.join(", ")
            )
        }
        _ => anyhow::Error::new(error).context(format!("cannot capture on {interface}")),
    }
}
