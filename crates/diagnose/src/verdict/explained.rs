//! Which signs a finding accounts for.

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::results::Direction;

use super::signs::{Kind, Sign};

/// Share of segments that a queue which is far too long loses when it overflows.
const OVERFLOW_RATIO: f64 = 0.05;

/// Loss found while idle explains so many times its share under load: what is lost is sent again more
/// than once.
const SENT_AGAIN: f64 = 3.0;

/// Whether a finding accounts for a sign.
pub(crate) fn explains(finding: &Finding, sign: &Sign) -> bool {
    let loads =
        |direction| sign.direction == Some(direction) || sign.direction == Some(Direction::Both);
    let here = match finding.place {
        Place::Uplink => loads(Direction::Up),
        Place::Downlink => loads(Direction::Down),
        _ => true,
    };
    let first = finding.evidence.first();
    match finding.cause {
        Cause::PathRefused | Cause::PmtudBlackHole => true,
        Cause::NothingCarried => here,
        Cause::PathLoss => match sign.kind {
            Kind::Window => false,
            Kind::Retransmissions => first
                .and_then(|evidence| evidence.value.number())
                .is_some_and(|found| sign.ratio <= SENT_AGAIN * found),
            _ => true,
        },
        Cause::BufferbloatUp => loads(Direction::Up) && of_long_queue(sign),
        Cause::BufferbloatDown => loads(Direction::Down) && of_long_queue(sign),
        Cause::ReceiveBufferSmall | Cause::SendBufferSmall => {
            sign.kind == Kind::Window
                && first.is_some_and(|e| e.measurement == sign.evidence.measurement)
        }
        _ => false,
    }
}

/// Whether a queue that is far too long brings such a sign about: it overflows, and delays the
/// acknowledgements of the other direction.
fn of_long_queue(sign: &Sign) -> bool {
    match sign.kind {
        Kind::Retransmissions => sign.ratio <= OVERFLOW_RATIO,
        Kind::ProbesLost | Kind::Collapse | Kind::Window => true,
        Kind::Stall | Kind::Unsteady => false,
    }
}
