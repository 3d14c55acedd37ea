//! What this machine counted while a step ran: its interfaces, its kernel, its processors. So a packet that was lost
//! here is not taken for one that the path lost.

use plumb_host::facts::Source;
use plumb_host::rates::read;
use plumb_model::context::Context;

use crate::error::MeasureError;
use crate::host::live::grown;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// A step, with what this machine counted from its beginning to its end. Nothing is changed for it, and two readings
/// take some milliseconds.
pub struct Counted<'a>(pub &'a mut dyn Step);

impl Step for Counted<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn needs_responder(&self) -> bool {
        self.0.needs_responder()
    }

    fn weight(&self) -> u64 {
        self.0.weight()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut source = Source::system();
        let before = read(&mut source);
        let mut found = self.0.measure(session)?;
        let after = read(&mut source);
        // Beside which phase it was: what the step measured says so.
        let Some(beside) = found.measured.first().map(|measured| &measured.context) else {
            return Ok(found);
        };
        let context = Context {
            phase: beside.phase,
            experiment: beside.experiment,
            ..Context::default()
        };
        found.add(grown(before, after).within(context));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use plumb_model::context::Phase;
    use plumb_model::results::Outcome;

    use super::*;
    use crate::conductor::Conductor;
    use crate::progress::Nobody;
    use crate::record::{Judgement, Measured};

    /// A step that sends a datagram to this machine.
    struct Datagram;

    impl Step for Datagram {
        fn name(&self) -> String {
            "a datagram".to_owned()
        }

        fn measure(&mut self, _: &mut Session<'_>) -> Result<Yield, MeasureError> {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
            let outcome = Outcome::HostRates(Default::default());
            let measured = Measured::of(0, 0.0, outcome);
            Ok(Yield::of(measured.within(Context::phase(Phase::Up))))
        }
    }

    #[test]
    fn what_grew_beside_a_step_is_recorded_with_its_phase() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut conductor = Conductor::here(Vec::new(), &Nobody, &stop);
        conductor.step(&mut Counted(&mut Datagram), 0);
        let run = conductor.finish(Judgement::AsAudited).unwrap().run;
        let counted = run.measurements.last().unwrap();
        assert_eq!(counted.context.phase, Some(Phase::Up));
        let Outcome::HostRates(rates) = &counted.outcome else {
            panic!("{counted:?}")
        };
        assert!(
            rates
                .grown
                .get("UdpOutDatagrams")
                .is_some_and(|sent| *sent >= 1)
        );
        assert!(rates.clock_set_s.unwrap().abs() < 1.0);
    }
}
