//! The gateway's own view of its line, where the user let it be asked: rates, address, and its counters beside this host's, from
//! before the loads until the end of the plan.

mod counter;
pub(crate) mod watch;

use std::net::IpAddr;

use crate::error::MeasureError;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;
use watch::{FIND, Watch};

/// Asks the gateway, and begins to watch its counters until the plan ends.
pub struct AskGateway {
    /// Towards where it is the gateway.
    pub towards: IpAddr,
}

impl Step for AskGateway {
    fn name(&self) -> String {
        "what the gateway reports".to_owned()
    }

    /// Takes 8 s at most.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut out = Yield::default();
        session.watcher.step("asking the gateway", FIND);
        match Watch::begin(self.towards) {
            Ok(watch) => session.gateway = Some(watch),
            Err(why) => out.note(format!("The gateway was not asked about its line: {why}.")),
        }
        Ok(out)
    }
}
