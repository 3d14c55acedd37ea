//! The receiver's window is smaller than the path.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::captured;
use crate::entry::{Entry, Family, Often};
use crate::host::{Subject, tcp};
use crate::weighing::prediction::{Observable, Prediction, strength};
use crate::window::{self, Side};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    often: Often {
        home: -1.0,
        campus: 2.0,
        cloud: 1.0,
        mobile: -2.0,
    },
    vanishes: "a larger buffer, or several connections side by side, carry more",
    needs: &[Need::Upload, Need::Download, Need::BothHosts],
    resembles: &[(
        Cause::SendBufferSmall,
        "there the sender waits for its own buffer",
    )],
    predicts: &[
        Prediction::likely(Observable::ReceiverWindow, strength::WEAK),
        Prediction::unlikely(Observable::StandingQueue, strength::MODERATE).if_present(),
    ],
    examine: |case| {
        let mut found = window::examine(case, Side::Receiver);
        found.extend(captured::window(case, false));
        found
    },
    audits: &[(Subject::ReceiveBuffer, |facts| {
        vec![tcp::buffer(facts, tcp::Side::Receive)]
    })],
    explains: window::explains,
    ..Entry::PLAIN
};
