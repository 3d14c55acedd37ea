//! `plumb host disk` and `plumb host cipher`: how fast this machine can feed a transfer, and which
//! stage is slower than the rate that is wanted.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_diagnose::host::stages;
use plumb_host::cipher;
use plumb_host::disk::{self, DiskError, Plan};
use plumb_model::results::Outcome;
use plumb_model::results::host::PageCache;
use plumb_model::run::Run;
use plumb_net::clock;
use serde_json::Map;

use crate::assembly::{Assembly, Measured};
use crate::watcher::Watcher;

/// Measures the files of a folder.
///
/// # Errors
/// When the folder cannot be written to, has no room, or the disk fails.
pub fn files(command: Vec<String>, plan: &Plan, watcher: &dyn Watcher) -> Result<Run, DiskError> {
    let mut assembly = Assembly::here(command);
    let started_ns = clock::monotonic_ns();
    let result = disk::measure(plan, &|name| watcher.step(name, Duration::ZERO))?;
    if result
        .passes
        .iter()
        .any(|pass| pass.cache == PageCache::Memory)
    {
        assembly.note(
            "This file system keeps files in memory whatever it is told: these are speeds of memory, not of a disk.",
        );
    }
    if result
        .passes
        .iter()
        .all(|pass| pass.cache != PageCache::Direct)
    {
        assembly.note(
            "This file system does not let reads and writes go around the page cache (O_DIRECT).",
        );
    }
    Ok(judged(assembly, started_ns, Outcome::HostDisk(result)))
}

/// Times the ciphers.
pub fn ciphers(command: Vec<String>, rate_bps: Option<f64>, watcher: &dyn Watcher) -> Run {
    let mut assembly = Assembly::here(command);
    let started_ns = clock::monotonic_ns();
    let result = cipher::measure(rate_bps, &|name| watcher.step(name, Duration::ZERO));
    if result.ssh.is_none() {
        assembly.note("There is no ssh here, or it does not tell its ciphers, so only those of TLS were timed.");
    }
    judged(assembly, started_ns, Outcome::HostCipher(result))
}

fn judged(mut assembly: Assembly, started_ns: u64, outcome: Outcome) -> Run {
    assembly.add(Measured {
        started_ns,
        duration_s: (clock::monotonic_ns() - started_ns) as f64 / 1e9,
        params: Map::new(),
        outcome,
        series: BTreeMap::new(),
    });
    assembly.judged_by(stages)
}
