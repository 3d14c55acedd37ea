//! Reading and changing what plans change, on the machine that this runs on.

use std::fs;
use std::io;

use plumb_net::netlink::queue::qdiscs;
use plumb_net::netlink::{NetlinkError, interface_index};
use plumb_net::sysctl::{self, SysctlError};
use plumb_net::tc::{self, TcError};

use super::interface::{self, SettingError};
use super::journal::Target;
use crate::kept::{replace, sync_directory, unfinished};

/// Handle of disciplines that plumb installs, its port read as hexadecimal: what bears it is ours.
pub const HANDLE: &str = "7586:";

/// The value of a queueing discipline that the kernel chose of itself.
pub const DEFAULT_QDISC: &str = "default";

/// Something that could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    #[error(transparent)]
    Tc(#[from] TcError),
    /// What the kernel said of its queueing disciplines.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A setting of an interface.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// An interface that is not there, any more.
    #[error("there is no interface {0}")]
    NoInterface(String),
    #[error("cannot {verb} {file}: {source}")]
    File {
        /// What was to be done.
        verb: &'static str,
        file: String,
        /// Why it could not.
        source: io::Error,
    },
}

/// A machine whose settings can be read and changed.
pub trait Machine {
    /// The present value; `None` for a file that is not there.
    ///
    /// # Errors
    /// When it cannot be read, or is not there.
    fn read(&mut self, target: &Target) -> Result<Option<String>, MachineError>;
    /// Gives it another value; `None` takes a file away.
    ///
    /// # Errors
    /// When it cannot be changed, or the kernel refuses the value.
    fn write(&mut self, target: &Target, value: Option<&str>) -> Result<(), MachineError>;
}

/// The number of an interface.
fn number(device: &str) -> Result<u32, MachineError> {
    interface_index(device).map_err(|_| MachineError::NoInterface(device.to_owned()))
}

/// This machine, in the network namespace of the calling thread.
#[derive(Debug, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn read(&mut self, target: &Target) -> Result<Option<String>, MachineError> {
        match target {
            Target::Sysctl(key) => Ok(Some(sysctl::read(key)?)),
            Target::Qdisc(device) => {
                let index = number(device)?;
                let root = qdiscs()?
                    .into_iter()
                    .find(|(on, q)| *on == index && q.parent == "root");
                // What the kernel installs of itself has no handle (`qdisc_create_dflt`).
                Ok(Some(match root {
                    Some((_, q)) if q.handle != "0:" => format!("{} {}", q.kind, q.handle),
                    _ => DEFAULT_QDISC.to_owned(),
                }))
            }
            Target::Interface(device, setting) => {
                number(device)?;
                Ok(Some(interface::read(device, setting)?))
            }
            Target::File(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(Some(text)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(source) => Err(MachineError::File {
                    verb: "read",
                    file: path.display().to_string(),
                    source,
                }),
            },
        }
    }

    fn write(&mut self, target: &Target, value: Option<&str>) -> Result<(), MachineError> {
        match (target, value) {
            (Target::Sysctl(key), value) => Ok(sysctl::write(key, value.unwrap_or_default())?),
            (Target::Qdisc(device), Some(value)) if value != DEFAULT_QDISC => {
                let (kind, handle) = value.split_once(' ').unwrap_or((value, HANDLE));
                tc::run(&[
                    "qdisc", "replace", "dev", device, "root", "handle", handle, kind,
                ])?;
                Ok(())
            }
            (Target::Qdisc(device), _) => {
                tc::run(&["qdisc", "del", "dev", device, "root"])?;
                Ok(())
            }
            (Target::Interface(device, setting), value) => Ok(interface::write(
                device,
                setting,
                value.unwrap_or_default(),
            )?),
            (Target::File(path), value) => {
                let error = |source| MachineError::File {
                    verb: if value.is_some() { "write" } else { "remove" },
                    file: path.display().to_string(),
                    source,
                };
                // What an earlier process did not finish.
                let _ = fs::remove_file(unfinished(path));
                match value {
                    Some(text) => replace(path, text.as_bytes()).map_err(error),
                    None => match fs::remove_file(path) {
                        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(error(e)),
                        _ => path.parent().map_or(Ok(()), sync_directory).map_err(error),
                    },
                }
            }
        }
    }
}
