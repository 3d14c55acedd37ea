//! The largest packet that gets to a host, which is kept when it changes: a tunnel that came into the path, or a router that
//! no longer reports what is too big.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_net::egress::Outlet;
use plumb_net::path_mtu;
use plumb_probe::mtu::{MtuPlan, SearchError, search};
use plumb_probe::path::{OpenError, ProtocolAndPort, Target, open_as};

use super::kind::{FarEnd, Kind, Probed};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// A search is some dozen packets to each hop, and the size changes with the route.
const EVERY: Duration = Duration::from_secs(900);

/// How long an answer of a hop is waited for, and how often it is asked: as `plumb mtu` does.
const PATIENCE: Duration = Duration::from_secs(1);
const TRIES: u32 = 3;
const MAX_HOPS: u8 = 30;

/// Probes that a hop gets at most at a time.
const PROBES: u32 = 3;

#[derive(Debug)]
struct Mtu;

pub(super) fn read(_settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    Ok(Box::new(Mtu))
}

impl Kind for Mtu {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let target = Target {
            name: far.host.to_owned(),
            address: far.at(0),
            outlet: Outlet::default(),
        };
        let mut probed = Probed::now();
        let mut network = match open_as(&target, ProtocolAndPort::Icmp, std::process::id()) {
            Ok(network) => network,
            Err(error @ OpenError::NoRoute { .. }) => return Ok(probed.lost(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        let interface = path_mtu::interface_bytes(far.address, &target.outlet);
        let largest = interface.ok().flatten().unwrap_or_else(|| u16::MAX.into());
        let plan = MtuPlan {
            target: far.address,
            largest_bytes: u16::try_from(largest).unwrap_or(u16::MAX),
            listen: true,
            max_hops: MAX_HOPS,
            tries: TRIES,
            timeout: PATIENCE,
        };
        // It ends by its own limits: some seconds for each drop in size.
        let found = match search(&mut network, &plan, &AtomicBool::new(false)) {
            Ok(found) => found,
            Err(SearchError::Local(why)) => return Err(why.to_string()),
            Err(why) => return Ok(probed.lost(why.to_string())),
        };
        let Some(bytes) = found.path_mtu_bytes else {
            return Ok(probed.lost("the target does not answer"));
        };
        probed.state = Some(match found.black_hole_after {
            None => format!("{bytes} bytes"),
            Some(hop) => format!("{bytes} bytes, larger ones vanish in silence after hop {hop}"),
        });
        Ok(probed.with(f64::from(bytes)))
    }

    fn unit(&self) -> Unit {
        Unit::Bytes
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn probes(&self) -> u32 {
        PROBES
    }

    fn state(&self) -> &'static str {
        "largest packet"
    }
}
