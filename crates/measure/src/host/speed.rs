//! `plumb host disk` and `plumb host cipher`: how fast this machine can feed a transfer, and which
//! stage is slower than the rate that is wanted.

use std::time::Duration;

use plumb_diagnose::host::stages;
use plumb_host::cipher;
use plumb_host::disk::{self, Plan};
use plumb_model::results::Outcome;
use plumb_model::results::host::PageCache;
use plumb_net::clock;

use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How fast files feed a transfer and take one.
pub struct DiskSpeed<'a> {
    pub plan: &'a Plan,
}

impl Step for DiskSpeed<'_> {
    fn name(&self) -> String {
        "the speed of files".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let (plan, watcher) = (self.plan, session.watcher);
        let mut out = Yield::default();
        let started_ns = clock::monotonic_ns();
        let result = disk::measure(plan, &|name| watcher.step(name, Duration::ZERO))?;
        if result
            .passes
            .iter()
            .any(|pass| pass.cache == PageCache::Memory)
        {
            out.note(
                "This file system keeps files in memory whatever is asked: these are speeds of memory, not of a disk.",
            );
        }
        if result
            .passes
            .iter()
            .all(|pass| pass.cache != PageCache::Direct)
        {
            out.note(
                "This file system does not let reads and writes go around the page cache (O_DIRECT).",
            );
        }
        Ok(judged(out, started_ns, Outcome::HostDisk(result), session))
    }
}

/// How fast this machine encrypts.
pub struct CipherSpeed {
    /// The rate that a transfer is to have, in bit/s.
    pub rate_bps: Option<f64>,
}

impl Step for CipherSpeed {
    fn name(&self) -> String {
        "the speed of ciphers".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let (rate_bps, watcher) = (self.rate_bps, session.watcher);
        let mut out = Yield::default();
        let started_ns = clock::monotonic_ns();
        let result = cipher::measure(rate_bps, &|name| watcher.step(name, Duration::ZERO));
        if result.ssh.is_none() {
            out.note(
                "There is no ssh here, or it does not list its ciphers, so only TLS's were timed.",
            );
        }
        Ok(judged(
            out,
            started_ns,
            Outcome::HostCipher(result),
            session,
        ))
    }
}

/// Adds a measurement, and what it says by itself.
fn judged(mut out: Yield, started_ns: u64, outcome: Outcome, session: &Session<'_>) -> Yield {
    let measured = Measured::until_now(started_ns, outcome);
    out.audit = Some(stages(&measured.outcome, &session.next_id));
    out.add(measured);
    out
}
