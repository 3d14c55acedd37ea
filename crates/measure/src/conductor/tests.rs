#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use plumb_model::results::Outcome;

use super::*;
use crate::progress::Nobody;
use crate::record::Measured;

/// A step whose result is known, and which keeps what it was given to transfer.
struct Fake {
    name: &'static str,
    weight: u64,
    bytes: u64,
    result: Option<Result<(), &'static str>>,
    stops: bool,
    share: u64,
    next_id: String,
}

fn fake(name: &'static str) -> Fake {
    Fake {
        name,
        weight: 1,
        bytes: 0,
        result: Some(Ok(())),
        stops: false,
        share: 0,
        next_id: String::new(),
    }
}

impl Step for Fake {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        self.share = session.share;
        self.next_id.clone_from(&session.next_id);
        if self.stops {
            session
                .stop
                .store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let in_part = |why: &str| MeasureError::InPart {
            why: why.to_owned(),
        };
        match self.result.take() {
            None => Err(in_part("it broke")),
            Some(result) => Ok(Yield {
                bytes: self.bytes,
                shortfall: result.err().map(in_part),
                ..Yield::of(Measured::of(0, 1.0, Outcome::Port(Box::default())))
            }),
        }
    }
}

fn conduct(budget: u64, steps: &mut [Fake]) -> Result<Conducted, MeasureError> {
    let stop = Arc::default();
    let conductor = Conductor::here(Vec::new(), &Nobody, &stop);
    let mut conductor = conductor.within(ByteCount::from_bytes(budget));
    conductor.conduct(steps.iter_mut().map(|step| step as &mut dyn Step), 0);
    conductor.finish(Judgement::AsAudited)
}

#[test]
fn each_step_is_recorded_in_order_and_within_its_share() {
    let mut steps = [fake("one"), fake("two"), fake("three")];
    steps[0].bytes = 100;
    steps[2].weight = 2;
    let conducted = conduct(1_000, &mut steps).unwrap();
    let ids: Vec<_> = conducted.run.measurements.iter().map(|m| &m.id).collect();
    assert_eq!(ids, ["m1", "m2", "m3"]);
    assert!(conducted.shortfall.is_none());
    let given: Vec<_> = steps
        .iter()
        .map(|s| (s.share, s.next_id.as_str()))
        .collect();
    // A quarter; what the first left goes to the others.
    assert_eq!(given, [(250, "m1"), (300, "m2"), (900, "m3")]);
}

#[test]
fn a_step_that_fails_keeps_what_was_measured_and_lets_the_others_run() {
    let mut steps = [fake("one"), fake("the second"), fake("three")];
    steps[1].result = None;
    let conducted = conduct(1, &mut steps).unwrap();
    assert_eq!(conducted.run.measurements.len(), 2);
    assert_eq!(
        conducted.run.notes,
        ["The second was not measured: measured in part only: it broke."]
    );
    assert!(
        conducted
            .shortfall
            .unwrap()
            .to_string()
            .contains("it broke")
    );
}

#[test]
fn where_nothing_was_measured_the_first_failure_is_the_answer() {
    let mut steps = [fake("one")];
    steps[0].result = None;
    assert!(
        conduct(1, &mut steps)
            .unwrap_err()
            .to_string()
            .contains("it broke")
    );
    assert!(matches!(
        conduct(1, &mut []).unwrap().run.measurements.as_slice(),
        []
    ));
}

#[test]
fn a_step_that_measured_in_part_is_kept_with_what_it_lacks() {
    let mut steps = [fake("one"), fake("two")];
    steps[0].result = Some(Err("the far end went silent"));
    let conducted = conduct(1, &mut steps).unwrap();
    assert_eq!(conducted.run.measurements.len(), 2);
    let why = conducted.shortfall.unwrap().to_string();
    assert!(why.contains("the far end went silent"), "{why}");
}

#[test]
fn a_stop_ends_the_plan_and_keeps_what_was_measured() {
    let mut steps = [fake("one"), fake("two")];
    steps[0].stops = true;
    let conducted = conduct(1, &mut steps).unwrap();
    assert_eq!(conducted.run.measurements.len(), 1);
    assert!(steps[1].next_id.is_empty(), "it was not begun");
}

#[test]
fn what_comes_after_the_list_keeps_its_part_of_the_budget() {
    let stop = Arc::default();
    let conductor = Conductor::here(Vec::new(), &Nobody, &stop);
    let mut conductor = conductor.within(ByteCount::from_bytes(1_000));
    let mut steps = [fake("one"), fake("two")];
    steps[1].result = None;
    let whole = conductor.conduct(steps.iter_mut().map(|step| step as &mut dyn Step), 2);
    assert_eq!((steps[0].share, steps[1].share), (250, 333));
    assert!(!whole, "the second failed");
}

#[test]
fn no_step_begins_when_the_time_is_over() {
    let stop = Arc::default();
    let mut conductor = Conductor::here(Vec::new(), &Nobody, &stop);
    conductor.session().deadline = Some(std::time::Instant::now());
    let mut step = fake("the path");
    assert_eq!(conductor.step(&mut step, 0), Went::Not);
    assert_eq!(step.next_id, "", "it was not begun");
    let run = conductor.finish(Judgement::AsAudited).unwrap().run;
    assert_eq!(
        run.notes,
        ["The path was not measured, because the time was over."]
    );
}

#[test]
fn a_run_that_is_gone_on_with_keeps_what_it_has() {
    let stop = Arc::default();
    let mut first = Conductor::here(Vec::new(), &Nobody, &stop);
    first.step(&mut fake("one"), 0);
    let run = first.finish(Judgement::AsAudited).unwrap().run;
    let mut second = Conductor::resume(run.clone(), &Nobody, &stop);
    second.step(&mut fake("two"), 0);
    let both = second.finish(Judgement::AsAudited).unwrap().run;
    assert_eq!((both.id, &both.started), (run.id, &run.started));
    let ids: Vec<_> = both.measurements.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(ids, ["m1", "m2"]);
}
