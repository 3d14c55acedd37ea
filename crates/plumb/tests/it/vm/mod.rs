//! What plumb asks of the kernel, on a stock kernel: `--backend kernel`, `lab impair`, `tune` and `shape`; and what a
//! clock that somebody steps does to measurements.
//!
//! These tests run in the virtual machine of `vm/run.sh` only, whose interfaces they change, and are ignored
//! elsewhere. The machine's time counts instructions, so that a busy host makes nothing late in it; but its one
//! processor does no more than a thousand million of them a second, so rates stay small.

mod backend;
mod clock;
mod impair;
mod network;
mod renderings;
mod shape;
mod tune;

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, need_root, repository, stderr, stdout};

/// Every rendering of every cell, whole networks, and all that a shaper must do take it minutes: `slow::stock_kernel` tries them.
#[test]
fn a_stock_kernel_does_what_plumb_asks_of_it() {
    pass_on_a_stock_kernel(
        "vm::impair::ends_after_its_time,vm::tune,vm::shape::core",
        Duration::from_secs(1200),
    );
}

/// Boots the virtual machine and runs tests of this module in it: those whose names have one of these parts, and none of those with
/// a minus. After the limit it hangs: it is ten times what the tests take of a processor of their own.
pub(crate) fn pass_on_a_stock_kernel(parts: &str, limit: Duration) {
    need_root();
    // They have one folder.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _slot = slots::take(Weight::Processor);
    let output = Command::new(repository().join("vm/run.sh"))
        .arg("--programs")
        .env("VM_TIME_LIMIT_S", limit.as_secs().to_string())
        .args([std::env::current_exe().unwrap(), PLUMB.into(), parts.into()])
        .output()
        .unwrap();
    let said = stdout(&output) + &stderr(&output);
    assert!(output.status.success(), "{said}");
}
