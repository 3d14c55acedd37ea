//! Doing a plan and undoing it, over a machine and a journal. All of a plan is done, or nothing; what was
//! interrupted is undone from the journal; and what somebody else changed meanwhile is theirs.

use plumb_model::finding::{Action, InterfaceAction, InterfaceChange};
use plumb_model::tune::HostPlan;

use super::interface::Setting;
use super::journal::{Journal, JournalError, State, Step, Store, Target};
use super::machine::{HANDLE, Machine, MachineError};

/// A plan that was not done.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A plan is there already.
    #[error(
        "settings of {started} are {state} already: nothing was changed; undo them first (plumb tune undo)"
    )]
    Already {
        /// When that began.
        started: String,
        /// How far it is.
        state: &'static str,
    },
    /// Nothing in it can be done.
    #[error("the plan has no change that plumb can make on this host")]
    Nothing,
    /// What is there cannot be read, or not be put back.
    #[error(
        "{target} could not be put back afterwards ({source}): nothing was changed; the rest of the plan can be had with --except"
    )]
    NotUndoable {
        /// What it is.
        target: Target,
        /// Why. Boxed: it is far larger than any other error.
        source: Box<MachineError>,
    },
    /// Refused on the way; what was done is undone.
    #[error(
        "{target} could not be changed ({reason}): everything is as it was; the rest of the plan can be had with --except"
    )]
    RolledBack {
        /// What it is.
        target: Target,
        /// Why.
        reason: String,
    },
    /// Refused on the way, and something could not be undone.
    #[error(
        "{target} could not be changed ({reason}), and {left} could not be put back: see plumb tune status, and run plumb tune undo again"
    )]
    NotRolledBack {
        /// What was refused.
        target: Target,
        /// Why.
        reason: String,
        /// What is still changed.
        left: String,
    },
}

/// What undoing came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// What was put back.
    pub restored: Vec<Target>,
    /// What somebody changed since, and its present value: left as they set it.
    pub kept: Vec<(Target, String)>,
    /// What went with its interface.
    pub gone: Vec<Target>,
    /// What could not be put back, and why: it stays in the journal.
    pub failed: Vec<(Target, String)>,
}

/// How a setting is, compared with what plumb gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// As plumb set it.
    AsSet,
    /// As it was before.
    AsBefore,
    /// Somebody set it to something else.
    Changed(String),
    /// The interface that it is of is gone, and took it along.
    Gone,
    /// It cannot be read.
    Unreadable(String),
}

/// The changes that a plan's actions ask for; with `drop_in` also the file that brings the variables back
/// at boot, which is written last. Old values are still to be read.
pub fn steps(plan: &HostPlan, drop_in: Option<(&std::path::Path, String)>) -> Vec<Step> {
    let step = |(target, new): (Target, String)| Step {
        target,
        old: None,
        new: Some(new),
    };
    let mut steps: Vec<_> = plan
        .changes
        .iter()
        .filter_map(|change| change.action.as_ref())
        .flat_map(|action| match action {
            Action::Sysctl(set) => vec![(Target::Sysctl(set.key.clone()), set.value.clone())],
            Action::Interface(action) => of_an_interface(action),
            Action::Shaper(_) => Vec::new(),
        })
        .map(step)
        .collect();
    let variables = |step: &Step| matches!(step.target, Target::Sysctl(_));
    if let Some((path, text)) = drop_in
        && steps.iter().any(variables)
    {
        steps.push(step((Target::File(path.to_owned()), text)));
    }
    steps
}

/// What an action sets on an interface, and to what. A smaller or larger MTU, the link's speed and the
/// radio's sleep can cut a host off, and which processor serves what is irqbalance's: these are left to people.
fn of_an_interface(action: &InterfaceAction) -> Vec<(Target, String)> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let device = &action.interface;
    let set = |setting, value| vec![(Target::Interface(device.clone(), setting), value)];
    match &action.change {
        InterfaceChange::Qdisc(kind) => {
            vec![(Target::Qdisc(device.clone()), format!("{kind} {HANDLE}"))]
        }
        InterfaceChange::Offload { feature, on } => {
            set(Setting::Offload(feature.clone()), word(*on))
        }
        InterfaceChange::ReceiveRingPackets(packets) => {
            set(Setting::ReceiveRing, packets.to_string())
        }
        InterfaceChange::TransmitQueuePackets(packets) => {
            set(Setting::QueueLength, packets.to_string())
        }
        InterfaceChange::AdaptiveReceive(on) => set(Setting::AdaptiveReceive, word(*on)),
        InterfaceChange::DriverQueueMostBytes { queues, bytes } => (0..*queues)
            .flat_map(|queue| set(Setting::DriverQueue(queue), bytes.to_string()))
            .collect(),
        InterfaceChange::MtuBytes(_)
        | InterfaceChange::Autonegotiation(_)
        | InterfaceChange::EnergyEfficient(_)
        | InterfaceChange::WifiPowerSave(_)
        | InterfaceChange::ReceiveProcessors { .. } => Vec::new(),
    }
}

/// Does steps: reads and keeps the old values, tries whether each could be put back, and changes one after
/// the other. Returns the journal.
///
/// # Errors
/// When there is a journal already, something could not be put back, or the kernel refuses: everything is
/// then as it was, unless the error says otherwise.
pub fn apply(
    store: &mut impl Store,
    machine: &mut impl Machine,
    id: String,
    started: String,
    until: Option<String>,
    mut steps: Vec<Step>,
) -> Result<Journal, ApplyError> {
    if let Some(journal) = store.load()? {
        return Err(ApplyError::Already {
            started: journal.started,
            state: match journal.state {
                State::Applied => "applied",
                State::Applying | State::Undoing => "half applied",
            },
        });
    }
    if steps.is_empty() {
        return Err(ApplyError::Nothing);
    }
    for step in &mut steps {
        let not_undoable = |source| ApplyError::NotUndoable {
            target: step.target.clone(),
            source: Box::new(source),
        };
        let old = machine.read(&step.target).map_err(not_undoable)?;
        // A value that the kernel does not take back, as a congestion control that a namespace may not
        // choose, could not be undone. Writing what is there changes nothing.
        if matches!(step.target, Target::Sysctl(_) | Target::Interface(..)) {
            machine
                .write(&step.target, old.as_deref())
                .map_err(not_undoable)?;
        }
        step.old = old;
    }
    let mut journal = Journal::new(id, started, until, steps);
    store.save(&journal)?;
    for index in 0..journal.steps.len() {
        let Some(step) = journal.steps.get(index) else {
            break;
        };
        if let Err(reason) = change(machine, step) {
            let target = step.target.clone();
            let undone = undo(store, machine)?.unwrap_or_default();
            return Err(if undone.failed.is_empty() {
                ApplyError::RolledBack { target, reason }
            } else {
                let left: Vec<_> = undone.failed.iter().map(|(t, _)| t.to_string()).collect();
                ApplyError::NotRolledBack {
                    target,
                    reason,
                    left: left.join(", "),
                }
            });
        }
    }
    journal.state = State::Applied;
    store.save(&journal)?;
    Ok(journal)
}

/// Makes one change and sees that it took.
fn change(machine: &mut impl Machine, step: &Step) -> Result<(), String> {
    let now = machine.read(&step.target).map_err(|e| e.to_string())?;
    if !same(&step.target, now.as_deref(), step.old.as_deref()) {
        return Err("somebody else changed it at the same moment".to_owned());
    }
    machine
        .write(&step.target, step.new.as_deref())
        .map_err(|e| e.to_string())?;
    let now = machine.read(&step.target).map_err(|e| e.to_string())?;
    if same(&step.target, now.as_deref(), step.new.as_deref()) {
        Ok(())
    } else {
        Err(format!(
            "the kernel made {} of {}",
            now.unwrap_or_default(),
            step.new.as_deref().unwrap_or_default()
        ))
    }
}

/// Undoes what a journal says, last change first; `None` when there is none. What has the value that plumb
/// gave it gets the old one; what has another one is somebody else's.
///
/// # Errors
/// When the journal cannot be read or written; nothing is changed when it cannot be read.
pub fn undo(
    store: &mut impl Store,
    machine: &mut impl Machine,
) -> Result<Option<Undone>, JournalError> {
    let Some(mut journal) = store.load()? else {
        return Ok(None);
    };
    journal.state = State::Undoing;
    store.save(&journal)?;
    let mut undone = Undone::default();
    for step in journal.steps.iter().rev() {
        let target = step.target.clone();
        match standing(machine, step) {
            // An unfinished file may lie about all the same: writing takes it away.
            Standing::AsBefore if !matches!(target, Target::File(_)) => {}
            Standing::AsSet | Standing::AsBefore => {
                let put_back = machine
                    .write(&target, step.old.as_deref())
                    .and_then(|()| machine.read(&target));
                match put_back {
                    Ok(now) if same(&target, now.as_deref(), step.old.as_deref()) => {
                        undone.restored.push(target);
                    }
                    Ok(now) => undone.failed.push((
                        target,
                        format!("the kernel made it {}", now.unwrap_or_default()),
                    )),
                    Err(e) => undone.failed.push((target, e.to_string())),
                }
            }
            Standing::Changed(now) => undone.kept.push((target, now)),
            Standing::Gone => undone.gone.push(target),
            Standing::Unreadable(why) => undone.failed.push((target, why)),
        }
    }
    if undone.failed.is_empty() {
        store.remove()?;
    }
    Ok(Some(undone))
}

/// How a setting is at present.
pub fn standing(machine: &mut impl Machine, step: &Step) -> Standing {
    match machine.read(&step.target) {
        Err(MachineError::NoInterface(_)) => Standing::Gone,
        Err(e) => Standing::Unreadable(e.to_string()),
        Ok(now) if same(&step.target, now.as_deref(), step.new.as_deref()) => Standing::AsSet,
        Ok(now) if same(&step.target, now.as_deref(), step.old.as_deref()) => Standing::AsBefore,
        Ok(now) => Standing::Changed(now.unwrap_or_else(|| "not there".to_owned())),
    }
}

/// Whether two values are the same to the kernel, which puts tabs between numbers; files are compared as
/// they are.
fn same(target: &Target, a: Option<&str>, b: Option<&str>) -> bool {
    match (target, a, b) {
        (Target::Sysctl(_), Some(a), Some(b)) => a.split_whitespace().eq(b.split_whitespace()),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
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
        let step = |name: &str, new: &str| Step {
            target: Target::Sysctl(name.to_owned()),
            old: None,
            new: Some(new.to_owned()),
        };
        let mut steps = vec![step("a", "1 2 4"), step("b", "y"), step("c", "6")];
        steps.push(Step {
            target: Target::File("/f".into()),
            old: None,
            new: Some("text".to_owned()),
        });
        steps
    }

    fn go(store: &mut Memory, machine: &mut Fake) -> Result<Journal, ApplyError> {
        apply(store, machine, "id".into(), "now".into(), None, three())
    }

    #[test]
    fn done_and_undone() {
        let (mut store, mut machine) = (Memory::default(), fake());
        let before = machine.values.clone();
        let journal = go(&mut store, &mut machine).unwrap();
        assert_eq!(journal.state, State::Applied);
        assert_eq!(machine.values["a"], "1 2 4");
        assert_eq!(machine.values["/f"], "text");
        let again = go(&mut store, &mut machine).unwrap_err();
        assert!(again.to_string().contains("undo"), "{again}");
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
    fn an_interface_that_vanishes_takes_its_settings_along() {
        let ring = || Target::Interface("usb0".to_owned(), Setting::ReceiveRing);
        let steps = || {
            let mut steps = three();
            steps.insert(
                1,
                Step {
                    target: ring(),
                    old: None,
                    new: Some("4096".to_owned()),
                },
            );
            steps
        };
        let with_usb = || {
            let mut machine = fake();
            machine.values.insert(key(&ring()), "256".to_owned());
            machine
        };
        // Before anything is changed: nothing is.
        let (mut store, mut machine) = (Memory::default(), fake());
        let before = machine.values.clone();
        let error = apply(
            &mut store,
            &mut machine,
            "i".into(),
            "n".into(),
            None,
            steps(),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("there is no interface")
        );
        assert_eq!((machine.values, store.0), (before, None));
        // While it is being set: everything else is put back.
        let (mut store, mut machine) = (Memory::default(), with_usb());
        machine.vanishes = Some("c");
        let error = apply(
            &mut store,
            &mut machine,
            "i".into(),
            "n".into(),
            None,
            steps(),
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("everything is as it was")
        );
        assert_eq!((machine.values, store.0), (fake().values, None));
        // Afterwards: undoing puts the rest back, and says so.
        let (mut store, mut machine) = (Memory::default(), with_usb());
        let journal = apply(
            &mut store,
            &mut machine,
            "i".into(),
            "n".into(),
            None,
            steps(),
        );
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
            let step = |key: &str| Step {
                target: Target::Sysctl(key.to_owned()),
                old: None,
                new: Some("1".to_owned()),
            };
            let steps = vec![step("net.ipv4.tcp_mtu_probing"), step("net.ipv4.no_such")];
            let machine = &mut super::super::machine::ThisMachine;
            let error = apply(
                &mut Memory::default(),
                machine,
                "i".into(),
                "n".into(),
                None,
                steps,
            );
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
}
