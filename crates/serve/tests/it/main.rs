//! The responder over loopback. One binary: each links everything.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod access;
mod amplification;
mod attack;
mod common;
mod failures;
mod idle_requests;
mod iperf3;
mod liar;
mod lies;
mod phases;
mod quic;
mod schedules;
mod small_answers;
mod stamp;
mod strangers;
mod transactions;
mod transfer;
mod turns;
mod udp;
mod web;
