//! Plans done, refused, undone, and interfered with.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::io;

use super::*;

#[derive(Default)]
struct Memory(Option<Journal>);

impl Store for Memory {
    fn load(&mut self) -> Result<Option<Journal>, JournalError> {
        Ok(self.0.clone())
    }
    fn save(&mut self, journal: &Journal) -> Result<(), JournalError> {
        self.0 = Some(journal.clone());
        Ok(())
    }
    fn remove(&mut self) -> Result<(), JournalError> {
        self.0 = None;
        Ok(())
    }
}

/// Variables in memory, of which some take no value but the one that they have, or none at all.
#[derive(Default)]
struct Fake {
    values: BTreeMap<String, String>,
    refuses: Vec<&'static str>,
    read_only: Vec<&'static str>,
    clamps: Vec<(&'static str, &'static str)>,
    /// Writing this one, the interfaces go.
    vanishes: Option<&'static str>,
}

fn key(target: &Target) -> String {
    target.to_string()
}

impl Machine for Fake {
    fn read(&mut self, target: &Target) -> Result<Option<String>, MachineError> {
        match self.values.get(&key(target)) {
            Some(value) => Ok(Some(value.clone())),
            None if matches!(target, Target::File(_)) => Ok(None),
            None => Err(MachineError::NoInterface(key(target))),
        }
    }
    fn write(&mut self, target: &Target, value: Option<&str>) -> Result<(), MachineError> {
        let name = key(target);
        let refused = || MachineError::File {
            verb: "set",
            file: name.clone(),
            source: io::ErrorKind::PermissionDenied.into(),
        };
        if self.read_only.contains(&name.as_str()) {
            return Err(refused());
        }
        let same = value == self.values.get(&name).map(String::as_str);
        if self.vanishes == Some(name.as_str()) && !same {
            self.values.retain(|key, _| !key.contains("usb0"));
            return Err(MachineError::NoInterface("usb0".to_owned()));
        }
        if self.refuses.contains(&name.as_str()) && !same {
            return Err(refused());
        }
        match value {
            Some(value) => {
                let clamped = self.clamps.iter().find(|(n, _)| *n == name);
                let value = clamped.map_or(value, |(_, v)| v);
                self.values.insert(name, value.to_owned());
            }
            None => {
                self.values.remove(&name);
            }
        }
        Ok(())
    }
}

fn fake() -> Fake {
    let values = [("a", "1\t2\t3"), ("b", "x"), ("c", "5")];
    Fake {
        values: values.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..Fake::default()
    }
}

fn three() -> Vec<Step> {
    let mut steps = vec![step("a", "1 2 4"), step("b", "y"), step("c", "6")];
    steps.push(file("text"));
    steps
}

fn step(name: &str, new: &str) -> Step {
    Step::to(Target::Sysctl(name.to_owned()), new.to_owned())
}

fn file(text: &str) -> Step {
    Step::to(Target::File("/f".into()), text.to_owned())
}

fn done(
    store: &mut Memory,
    machine: &mut impl Machine,
    steps: Vec<Step>,
) -> Result<Journal, ApplyError> {
    apply(store, machine, "id".into(), "now".into(), None, steps)
}

fn go(store: &mut Memory, machine: &mut Fake) -> Result<Journal, ApplyError> {
    done(store, machine, three())
}

#[test]
fn done_and_undone() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let before = machine.values.clone();
    let journal = go(&mut store, &mut machine).unwrap();
    assert_eq!(journal.state, State::Applied);
    assert_eq!(machine.values["a"], "1 2 4");
    assert_eq!(machine.values["/f"], "text");
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert_eq!(undone.restored.len(), 4);
    assert_eq!(machine.values, before, "byte for byte");
    assert_eq!(undo(&mut store, &mut machine).unwrap(), None);
}

#[test]
fn a_refusal_rolls_everything_back() {
    let (mut store, mut machine) = (Memory::default(), fake());
    machine.refuses.push("c");
    let before = machine.values.clone();
    let error = go(&mut store, &mut machine).unwrap_err();
    assert!(matches!(error, ApplyError::RolledBack { .. }), "{error}");
    assert_eq!((machine.values, store.0), (before, None));

    let (mut store, mut machine) = (Memory::default(), fake());
    machine.clamps.push(("c", "5"));
    let error = go(&mut store, &mut machine).unwrap_err();
    assert!(error.to_string().contains("made 5 of 6"), "{error}");
    assert_eq!(machine.values["a"], "1\t2\t3");
}

#[test]
fn on_top_of_another_and_undone_with_it() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let before = machine.values.clone();
    done(
        &mut store,
        &mut machine,
        vec![step("a", "1 2 4"), step("b", "y")],
    )
    .unwrap();
    machine.values.insert("b".into(), "theirs".into());
    let added = vec![
        step("a", "1 2 5"),
        step("b", "z"),
        step("c", "6"),
        file("text"),
    ];
    let journal = done(&mut store, &mut machine, added).unwrap();
    assert_eq!(journal.steps.len(), 4, "one a setting: {journal:?}");
    assert!(journal.is_permanent() && journal.state == State::Applied);
    // Killed before the new value was written: the one before is plumb's too.
    machine.values.insert("a".into(), "1 2 4".into());
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert_eq!(undone.restored.len(), 4, "{undone:?}");
    let mut theirs = before;
    theirs.insert("b".into(), "theirs".into());
    assert_eq!((machine.values, store.0), (theirs, None));
}

#[test]
fn what_no_file_brings_back_is_known() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let both = vec![step("a", "1 2 4"), file("# why\na = 1 2 4\n")];
    let kept = done(&mut store, &mut machine, both).unwrap();
    assert!(!kept.has_variables_lost_at_boot(|_| true));
    let more = done(&mut store, &mut machine, vec![step("c", "6")]).unwrap();
    assert!(more.is_permanent() && more.has_variables_lost_at_boot(|_| true));
    // A value that another program changed since is left alone.
    assert!(!more.has_variables_lost_at_boot(|step| step.target != Target::Sysctl("c".into())));
    let file = file("# why\na = 1 2 4\nc = 6\n");
    let all = done(&mut store, &mut machine, vec![file.clone()]).unwrap();
    assert!(!all.has_variables_lost_at_boot(|_| true));
    // The same text once more is not kept twice.
    let again = done(&mut store, &mut machine, vec![file]).unwrap();
    assert_eq!(again.steps, all.steps);
}

#[test]
fn a_refusal_on_top_leaves_what_was_applied() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let first = done(&mut store, &mut machine, vec![step("a", "1 2 4")]).unwrap();
    let applied = machine.values.clone();
    machine.refuses.push("c");
    let added = vec![step("a", "1 2 5"), step("b", "y"), step("c", "6")];
    let error = done(&mut store, &mut machine, added).unwrap_err();
    assert!(matches!(error, ApplyError::RolledBack { .. }), "{error}");
    assert_eq!((&machine.values, &store.0), (&applied, &Some(first)));
}

#[test]
fn only_what_stays_comes_on_top_and_never_on_what_is_half_done() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let until = |store: &mut Memory, machine: &mut Fake, until: Option<&str>, steps| {
        let until = until.map(str::to_owned);
        apply(store, machine, "id".into(), "now".into(), until, steps)
    };
    let nothing = until(&mut store, &mut machine, None, Vec::new());
    assert!(matches!(nothing, Err(ApplyError::Nothing)), "{nothing:?}");
    until(&mut store, &mut machine, Some("soon"), three()).unwrap();
    let error = until(&mut store, &mut machine, Some("later"), three()).unwrap_err();
    assert!(error.to_string().contains("undo them first"), "{error}");
    // Nothing more to change, but it stays.
    let stays = until(&mut store, &mut machine, None, Vec::new()).unwrap();
    assert_eq!((stays.until, stays.steps.len()), (None, 4));
    store.0.as_mut().unwrap().state = State::Undoing;
    let error = go(&mut store, &mut machine).unwrap_err();
    assert!(error.to_string().contains("half applied"), "{error}");
}

#[test]
fn lines_of_an_edited_file_that_act_at_boot_are_named() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let text = "# why\n\nnet.a = 1\nnet.b = 2\n";
    done(&mut store, &mut machine, vec![step("b", "y"), file(text)]).unwrap();
    let edited = "# why\n\nnet.a = 1\nnet.b = 3\nnet.c = 4\n";
    machine.values.insert("/f".into(), edited.into());
    // Applied once more and undone, it is as they left it, with plumb's line.
    let again = machine.values.clone();
    let (mut second, mut other) = (Memory(store.0.clone()), fake());
    other.values = again;
    done(&mut second, &mut other, vec![step("b", "y"), file(text)]).unwrap();
    let undone = undo(&mut second, &mut other).unwrap().unwrap();
    assert_eq!(other.values["/f"], edited);
    assert_eq!(undone.at_boot, ["net.a = 1"]);
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert_eq!(undone.at_boot, ["net.a = 1"]);
    assert_eq!(machine.values["/f"], edited);
}

#[test]
fn an_interface_that_vanishes_takes_its_settings_along() {
    let ring = || Target::Interface("usb0".to_owned(), Setting::ReceiveRing);
    let steps = || {
        let mut steps = three();
        steps.insert(1, Step::to(ring(), "4096".to_owned()));
        steps
    };
    let with_usb = || {
        let mut machine = fake();
        machine.values.insert(key(&ring()), "256".to_owned());
        machine
    };
    let vanishing = Fake {
        vanishes: Some("c"),
        ..with_usb()
    };
    // Before anything is changed nothing is; while it is being set everything else is put back.
    for (mut machine, why) in [
        (fake(), "there is no interface"),
        (vanishing, "everything is as it was"),
    ] {
        let mut store = Memory::default();
        let error = done(&mut store, &mut machine, steps()).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!((machine.values, store.0), (fake().values, None), "{why}");
    }
    // Afterwards: undoing puts the rest back, and says so.
    let (mut store, mut machine) = (Memory::default(), with_usb());
    let journal = done(&mut store, &mut machine, steps());
    machine.values.remove(&key(&ring()));
    let step = journal.unwrap().steps[1].clone();
    assert_eq!(standing(&mut machine, &step), Standing::Gone);
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert_eq!((undone.gone, undone.failed), (vec![ring()], vec![]));
    assert_eq!((machine.values, store.0), (fake().values, None));
}

#[test]
fn a_variable_that_this_kernel_lacks_stops_everything() {
    let network = plumb_net::namespace::Namespaces::create("absent", || Ok::<_, io::Error>(()));
    let told = network.unwrap().in_network(|| {
        let steps = vec![
            step("net.ipv4.tcp_mtu_probing", "1"),
            step("net.ipv4.no_such", "1"),
        ];
        let machine = &mut super::super::machine::ThisMachine;
        let error = done(&mut Memory::default(), machine, steps);
        let now = plumb_net::sysctl::read("net.ipv4.tcp_mtu_probing").unwrap();
        Ok::<_, io::Error>((error.unwrap_err().to_string(), now))
    });
    let (error, now) = told.unwrap();
    assert!(
        error.contains("net.ipv4.no_such") && error.contains("nothing was changed"),
        "{error}"
    );
    assert_eq!(now, "0");
}

#[test]
fn what_could_not_be_put_back_is_not_begun() {
    let (mut store, mut machine) = (Memory::default(), fake());
    machine.read_only.push("b");
    let before = machine.values.clone();
    let error = go(&mut store, &mut machine).unwrap_err();
    assert!(matches!(error, ApplyError::NotUndoable { .. }), "{error}");
    assert_eq!((machine.values, store.0), (before, None));
    // The same with one that is not there.
    let (mut store, mut machine) = (Memory::default(), fake());
    machine.values.remove("c");
    assert!(go(&mut store, &mut machine).is_err() && store.0.is_none());
}

#[test]
fn an_administrators_later_change_is_theirs() {
    let (mut store, mut machine) = (Memory::default(), fake());
    let journal = go(&mut store, &mut machine).unwrap();
    machine.values.insert("b".into(), "theirs".into());
    machine.values.insert("c".into(), "5".into());
    let standings: Vec<_> = journal
        .steps
        .iter()
        .map(|step| standing(&mut machine, step))
        .collect();
    assert_eq!(standings[0], Standing::AsSet);
    assert_eq!(standings[1], Standing::Changed("theirs".into()));
    assert_eq!(standings[2], Standing::AsBefore);
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert_eq!(undone.kept, [(Target::Sysctl("b".into()), "theirs".into())]);
    assert_eq!(machine.values["b"], "theirs");
    assert_eq!(machine.values["a"], "1\t2\t3");
    assert_eq!(store.0, None);
}

#[test]
fn what_cannot_be_put_back_stays_in_the_journal() {
    let (mut store, mut machine) = (Memory::default(), fake());
    go(&mut store, &mut machine).unwrap();
    machine.read_only.push("a");
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert_eq!(undone.failed.len(), 1);
    assert!(store.0.is_some());
    machine.read_only.clear();
    let undone = undo(&mut store, &mut machine).unwrap().unwrap();
    assert!(undone.failed.is_empty() && store.0.is_none());
    assert_eq!(machine.values["a"], "1\t2\t3");
}
