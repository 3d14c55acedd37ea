//! `--virtual`: a lab whose clock is its own. The same command line runs inside.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_lab::supervise::LAB_FAILED;
use plumb_lab::virtual_time::{self, Settings};

use super::complain::complain;
use crate::quantity::time_above_zero;

/// Which clock a lab has.
#[derive(Args)]
pub(super) struct Options {
    /// Run it in virtual time, without root
    ///
    /// Exact on a busy machine, for lines up to some 100 Mbit/s (plumb explain virtual-lab).
    #[arg(long = "virtual")]
    is_virtual: bool,
    /// Kernel for --virtual
    ///
    /// Without it the first of: PLUMB_LAB_KERNEL, plumb-lab-kernel beside the program, in ~/.cache/plumb, in /usr/lib/plumb.
    #[arg(long, value_name = "FILE", requires = "is_virtual")]
    kernel: Option<PathBuf>,
    /// How long a second of --virtual may take
    ///
    /// Of this machine's time: a program in the lab that computes, or waits awake, keeps virtual time from passing. The lab
    /// is ended then.
    #[arg(long, value_name = "TIME", requires = "is_virtual", default_value = "5m", value_parser = time_above_zero, hide_short_help = true)]
    patience: Duration,
}

impl Options {
    /// What is to be entered: nothing where the clock is to be the machine's, or is virtual already.
    pub(super) fn to_enter(&self) -> Option<Settings> {
        (self.is_virtual && !virtual_time::inside()).then(|| Settings {
            kernel: self.kernel.clone(),
            patience: self.patience,
        })
    }
}

/// Runs this command line inside.
pub(super) fn enter(settings: &Settings) -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let run = || -> anyhow::Result<i32> {
        let program = std::env::current_exe()?.into_os_string();
        let command: Vec<OsString> = std::iter::once(program).chain(arguments).collect();
        Ok(virtual_time::run(settings, &command)?)
    };
    let status = run().unwrap_or_else(|error| {
        complain(&format!("{error:#}"));
        LAB_FAILED
    });
    ExitCode::from(u8::try_from(status).unwrap_or(LAB_FAILED as u8))
}
