//! `plumb serve`: the far end.

mod arguments;
mod file;
mod settings;
mod visits;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use listenfd::ListenFd;
use plumb_net::process::{become_user, on_hangup};
use plumb_serve::{PolicyCell, Server};
use plumb_wire::native::spec::PORT;

use crate::exit::{Ends, stop_flag};
use crate::output::say;
pub(crate) use arguments::Arguments;
use file::File;
use settings::AccessKey;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Clients of private networks are served freely. Clients on the Internet need the key that this verb prints when it starts, \
or --public.

Limits: any client that is served can load this machine's line within the caps above.

Each IPv4 address, or IPv6 /64, has a share: one load at a time, while the others wait and are shown for how long; at most \
half of the STAMP answers; longer answers of the UDP echo only beside a load, and up to 1 Gbit/s. A client with many \
addresses has many shares.

Paths are traced only to clients that have a TCP connection here, four at once and one a second for each share; without \
CAP_NET_RAW by what every user may open.

The STAMP reflector cannot know whether senders receive at the address that they send from: it never answers with more \
than it received, and limits its answers a second.";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.file()?;
    let key = arguments.access.key(&file)?;
    let config = settings::config(arguments, &file, &key)?;
    if arguments.check_config {
        config.check()?;
        say("the configuration is in order");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = arguments.config.clone() {
        let reload = Reload {
            path,
            at_start: file,
            arguments: arguments.clone(),
            key: key.clone(),
            policy: Arc::clone(&config.policy),
        };
        // Before any other thread, which the signal would end the program in.
        on_hangup(move || reload.run()).context("cannot wait for signals")?;
    }
    let stop = stop_flag(Ends::BySignal)?;
    let server = Server::inherit(config, inherited()?)?;
    // What needed privileges has been bound.
    if let Some(user) = &arguments.user {
        become_user(user).with_context(|| format!("cannot become the user '{user}'"))?;
    }
    if !arguments.quiet {
        announce(&server, &key);
    }
    end_in_time(Arc::clone(&stop))?;
    server.run(&stop)?;
    Ok(ExitCode::SUCCESS)
}

/// The listeners that a service manager opened for this process (sd_listen_fds(3)).
fn inherited() -> anyhow::Result<Vec<TcpListener>> {
    let mut passed = ListenFd::from_env();
    let listeners = (0..passed.len()).filter_map(|at| passed.take_tcp_listener(at).transpose());
    let listeners: Result<_, _> = listeners.collect();
    listeners.context(
        "a socket of the service manager is no listener of TCP: take it out of the .socket unit",
    )
}

/// Prints what is served, and how clients get it.
fn announce(server: &Server, key: &AccessKey) {
    for address in server.addresses() {
        say(format_args!(
            "listening on {address}, TCP and UDP; Ctrl-C ends it"
        ));
    }
    for (entry, at) in server.listening() {
        say(format_args!(
            "{} on {}, {}: {}",
            entry.name, at.address, at.transport, entry.about
        ));
    }
    for address in server.left() {
        say(format_args!(
            "the service manager listens on {address}, where nothing is served: see --port and --port-of"
        ));
    }
    for (entry, error) in server.missing() {
        let name = entry.name;
        say(format_args!(
            "not serving {name}: {error}; --port-of {name}=PORT moves it"
        ));
    }
    let host = match server.addresses().first().map(SocketAddr::port) {
        Some(port) if port != PORT => format!("THIS-HOST:{port}"),
        _ => "THIS-HOST".to_owned(),
    };
    match key {
        AccessKey::Public => say("clients on the Internet are served without a key (--public)"),
        AccessKey::Given(_) => say(format_args!(
            "clients on the Internet need the key: plumb check {host} --key KEY"
        )),
        AccessKey::New(key) => {
            let key = key.as_str();
            say(format_args!(
                "clients of private networks: plumb check {host}; clients on the Internet: plumb check {host} --key {key}"
            ));
            let mut listening = server.listening().into_iter();
            if let Some((_, web)) = listening.find(|(entry, _)| entry.name == "web") {
                let port = web.address.port();
                say(format_args!(
                    "browsers on the Internet: http://THIS-HOST:{port}/#{key}, which lets iperf3, NDT7 and irtt in as well, for an hour"
                ));
            }
        }
    }
}

/// What a SIGHUP does.
struct Reload {
    path: PathBuf,
    /// The file as it was when the responder started.
    at_start: File,
    arguments: Arguments,
    key: AccessKey,
    policy: Arc<PolicyCell>,
}

impl Reload {
    /// Reads the file again; where it is wrong, what was in force stays in force.
    fn run(&self) {
        let path = self.path.display();
        let policy = File::read(&self.path).and_then(|file| {
            let policy = self.arguments.access.policy(&file, &self.key)?;
            self.would_start(&file)?;
            Ok((file, policy))
        });
        match policy {
            Ok((file, policy)) => {
                self.policy.set(policy);
                say(format_args!("{path} is in force"));
                if file.needs_restart_after(&self.at_start) {
                    say(
                        "addresses, ports, protocols and the other limits change with the next start",
                    );
                }
            }
            Err(error) => say(format_args!(
                "{path} was read again, and what was in force stays: {error:#}"
            )),
        }
    }
}

impl Reload {
    /// Checks whether the next start would take the file.
    fn would_start(&self, file: &File) -> anyhow::Result<()> {
        let config = settings::config(&self.arguments, file, &self.key);
        match config.and_then(|config| Ok(config.check()?)) {
            // The next start reads keys before it becomes another user, and this process is that user already.
            Err(error) if self.arguments.user.is_some() && is_denied(&error) => Ok(()),
            checked => checked,
        }
    }
}

/// Whether the system does not let this user do something.
fn is_denied(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let system = cause.downcast_ref::<std::io::Error>();
        system.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    })
}

/// Longest from the request to stop to the end of the program. What runs ends within a second; this is
/// for what a far end, a disk or the kernel may keep from that.
const ENDS_WITHIN: Duration = Duration::from_millis(1800);

/// Ends the program [`ENDS_WITHIN`] after `stop` is set, whatever still runs.
fn end_in_time(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        std::thread::sleep(ENDS_WITHIN);
        say("something did not end in time, and is ended with the program");
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().name("plumb-end".to_owned());
    thread.spawn(watch).context("cannot start a thread")?;
    Ok(())
}
