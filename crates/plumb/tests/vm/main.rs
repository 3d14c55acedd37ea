//! What plumb asks of the kernel, on a stock kernel: `--backend kernel`, `lab impair` and `tune`; and what a
//! clock that somebody steps does to measurements.
//!
//! Runs in the virtual machine of `vm/run.sh` only, whose interfaces it changes. The machine's
//! time counts instructions, so that a busy host makes nothing late in it; but its one processor
//! does no more than a thousand million of them a second, so rates stay small.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod backend;
mod clock;
mod impair;
mod network;
mod renderings;
mod tune;
