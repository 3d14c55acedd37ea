//! What plumb asks of the kernel, on a stock kernel: `--backend kernel`, `lab impair` and `tune`; and what a
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
mod tune;

use std::process::Command;

use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, need_root, repository, stderr, stdout};

/// Every rendering of every cell and whole networks take it minutes: `slow::stock_kernel` tries them.
#[test]
fn a_stock_kernel_does_what_plumb_asks_of_it() {
    pass_on_a_stock_kernel("vm::impair,vm::tune");
}

/// Boots the virtual machine and runs tests of this module in it: those whose names have one of these parts.
pub(crate) fn pass_on_a_stock_kernel(parts: &str) {
    need_root();
    let _slot = slots::take(Weight::Processor);
    let output = Command::new(repository().join("vm/run.sh"))
        .arg("--programs")
        .args([std::env::current_exe().unwrap(), PLUMB.into(), parts.into()])
        .output()
        .unwrap();
    let said = stdout(&output) + &stderr(&output);
    assert!(output.status.success(), "{said}");
}
