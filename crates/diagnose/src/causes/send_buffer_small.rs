//! The sender's buffer is smaller than the path.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, Often};
use crate::host::{Subject, tcp};
use crate::weighing::prediction::{Observable, Prediction, strength};
use crate::window::{self, Side};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    often: Often {
        home: -1.0,
        campus: 2.0,
        cloud: 2.0,
        mobile: -2.0,
    },
    vanishes: "a larger buffer, or several connections side by side, carry more",
    needs: &[Need::Upload, Need::Download, Need::BothHosts],
    resembles: &[(
        Cause::ReceiveBufferSmall,
        "there the sender waits for the window that the receiver announces",
    )],
    predicts: &[
        Prediction::likely(Observable::SendBuffer, strength::WEAK),
        Prediction::unlikely(Observable::StandingQueue, strength::MODERATE).if_present(),
    ],
    examine: |case| window::examine(case, Side::Sender),
    audits: &[(Subject::SendBuffer, |facts| {
        vec![tcp::buffer(facts, tcp::Side::Send)]
    })],
    explains: window::explains,
    ..Entry::PLAIN
};
