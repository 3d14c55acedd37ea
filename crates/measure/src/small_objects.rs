//! Small objects one after another on one connection, as a copy of many small files sends them: each waits for the answer to
//! the one before.

use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_model::units::ByteCount;
use plumb_wire::native::control::flow::transactions::TransactionFlow;

use crate::error::MeasureError;
use crate::session::Session;
use crate::step::Step;
use crate::transactions::{Plan, Transactions};
use crate::yields::Yield;

/// What an object has: it fits into a sender's first window (ten segments of 1,448 bytes, RFC 6928), so that it takes one round
/// trip and no more. Half of all files have 4 kB or less (Agrawal et al., A Five-Year Study of File-System Metadata, 2007).
pub const OBJECT_BYTES: u32 = 10_000;

/// What says that one is there: the status of a file in SFTP has 24 bytes, an answer of HTTP some hundred.
const ANSWER_BYTES: u32 = 64;

/// How long they are sent: ten over a path of 200 ms.
const LASTS: Duration = Duration::from_secs(2);

/// The most that is sent: a thousand objects, which a path of less than 2 ms takes.
const MOST: u64 = 10_000_000;

/// Small objects to a responder, one after another.
pub struct SmallObjects {
    /// The far end as the user typed it.
    pub name: String,
}

impl Step for SmallObjects {
    fn name(&self) -> String {
        "small objects one after another".to_owned()
    }

    fn needs_responder(&self) -> bool {
        true
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let plan = Plan {
            name: self.name.clone(),
            command: Vec::new(),
            flow: TransactionFlow {
                transport: Protocol::Tcp,
                connect: false,
                request_bytes: OBJECT_BYTES,
                response_bytes: ANSWER_BYTES,
                rate_tps: None,
                on_demand: false,
            },
            streams: 1,
            duration: LASTS,
            budget: ByteCount::from_bytes(MOST.min(session.share)),
        };
        let mut found = Transactions { plan: &plan }.measure(session)?;
        // That its bytes were used up before its time is no shortfall: a thousand objects are enough.
        found.notes.clear();
        Ok(found)
    }
}
