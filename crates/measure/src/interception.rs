//! Whether a box on the path answers in the place of others: a connection to an address that no host has, and a
//! question to a name server that does not exist. A box that answers these is on the path, and answers for every
//! address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_model::results::port::NOBODYS_ADDRESS;
use plumb_net::egress::Outlet;
use plumb_probe::{Plan, Probing};

use crate::error::MeasureError;
use crate::port::{Port, PortPlan};
use crate::probes::whole;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

const NOBODY: IpAddr = IpAddr::V4(NOBODYS_ADDRESS);

/// Where a captive portal and a transparent proxy listen first.
const HTTP_PORT: u16 = 80;
const DNS_PORT: u16 = 53;

/// An interceptor stands near: behind the access line at the latest.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asked three times, because one datagram may be lost.
const QUESTIONS: u64 = 3;

/// A connection to port 80 of an address that no host has, and a question to it over DNS, both at once; within two
/// seconds.
pub struct Interception {
    /// The host that an HTTP request names.
    pub host: String,
}

impl Step for Interception {
    fn name(&self) -> String {
        "whether connections and name look-ups are intercepted".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let stop = Arc::clone(&session.stop);
        let plan = PortPlan {
            name: self.host.clone(),
            address: SocketAddr::new(NOBODY, HTTP_PORT),
            name_s: None,
            canonical_name: None,
            ports: vec![HTTP_PORT],
            tries: 1,
            timeout: PATIENCE,
            tls: Some(false),
            http: Some(true),
            path: "/".to_owned(),
            idle: None,
            outlet: Outlet::default(),
        };
        let mut port = Port {
            plan: &plan,
            port: HTTP_PORT,
        };
        let (found, names) = thread::scope(|scope| {
            let names = scope.spawn(|| ask_names(&stop));
            (port.measure(session), names.join().ok().flatten())
        });
        let mut found = found?;
        // No answer is the healthy outcome.
        names.into_iter().for_each(|names| found.add(names));
        Ok(found)
    }
}

/// `None` without an answer.
fn ask_names(stop: &Arc<AtomicBool>) -> Option<Measured> {
    let plan = Plan {
        interval: PATIENCE / 4,
        count: Some(QUESTIONS),
        timeout: PATIENCE,
        ..Plan::new(
            Protocol::Dns,
            NOBODY.to_string(),
            SocketAddr::new(NOBODY, DNS_PORT),
        )
    };
    let log = Probing::start(plan, Arc::clone(stop)).ok()?.join();
    let answered = log.samples.iter().any(|sample| sample.rtt.is_some());
    answered.then(|| whole(&log))
}
