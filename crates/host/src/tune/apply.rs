//! Doing a plan and undoing it, over a machine and a journal. All of a plan is done, or nothing; an interrupted one is
//! undone from the journal. What another program changed meanwhile is left alone.

use plumb_model::finding::{Action, InterfaceAction, InterfaceChange};
use plumb_model::tune::HostPlan;

use super::interface::Setting;
use super::journal::{Journal, JournalError, State, Step, Store, Target};
use super::machine::{HANDLE, Machine, MachineError};

/// A plan that was not done.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A plan is there on top of which none may come.
    #[error(
        "settings of {started} are {state}: nothing was changed; undo them first (plumb tune undo)"
    )]
    Already {
        started: String,
        /// What is the matter with it.
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
        target: Target,
        /// Why. Boxed: it is far larger than any other error.
        source: Box<MachineError>,
    },
    /// Refused on the way; what was done is undone.
    #[error(
        "{target} could not be changed ({reason}): everything is as it was; the rest of the plan can be had with --except"
    )]
    RolledBack { target: Target, reason: String },
    /// Refused on the way, and something could not be undone.
    #[error(
        "{target} could not be changed ({reason}), and {left} could not be put back: see plumb tune status, and run plumb tune undo again"
    )]
    NotRolledBack {
        target: Target,
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
    /// What another program changed since, and its present value: left unchanged.
    pub kept: Vec<(Target, String)>,
    /// Lines of plumb's in a file that was edited since: left there, and read at boot.
    pub at_boot: Vec<String>,
    /// What went with its interface.
    pub gone: Vec<Target>,
    /// What could not be put back, and why: it stays in the journal.
    pub failed: Vec<(Target, String)>,
}

/// How a setting is, compared with what plumb gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// As plumb set it, now or before.
    AsSet,
    /// As it was before.
    AsBefore,
    /// Set to another value since.
    Changed(String),
    /// The interface that it is of is gone, and took it along.
    Gone,
    /// It cannot be read.
    Unreadable(String),
}

/// The changes that a plan's actions ask for; with `drop_in` also the file that brings variables back
/// at boot, which is written last. Old values are still to be read.
pub fn steps(plan: &HostPlan, drop_in: Option<(&std::path::Path, String)>) -> Vec<Step> {
    let step = |(target, new)| Step::to(target, new);
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
    steps.extend(drop_in.map(|(path, text)| step((Target::File(path.to_owned()), text))));
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

/// Does steps: reads and keeps the old values, tries whether each could be put back, and changes one after the other.
/// They come on top of what is applied: that then ends when the new ones end, and is undone with them. Returns the
/// journal of all.
///
/// # Errors
/// When what is applied is half done, or to outlast the new ones; something could not be put back, or the kernel
/// refuses: everything is then as it was, unless the error says otherwise.
pub fn apply(
    store: &mut impl Store,
    machine: &mut impl Machine,
    id: String,
    started: String,
    until: Option<String>,
    mut steps: Vec<Step>,
) -> Result<Journal, ApplyError> {
    let former = store.load()?;
    match &former {
        Some(journal) => may_come_on_top(journal, until.is_some())?,
        None if steps.is_empty() => return Err(ApplyError::Nothing),
        None => {}
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
    let before = former.as_ref().map_or(&[][..], |journal| &journal.steps);
    let mut journal = Journal::new(id, started, until, on_top(before, &steps));
    store.save(&journal)?;
    for step in &steps {
        if let Err(reason) = change(machine, step) {
            let target = step.target.clone();
            let undone = put_back(machine, &steps);
            if undone.failed.is_empty() {
                match &former {
                    Some(former) => store.save(former)?,
                    None => store.remove()?,
                }
                return Err(ApplyError::RolledBack { target, reason });
            }
            let left: Vec<_> = undone.failed.iter().map(|(t, _)| t.to_string()).collect();
            return Err(ApplyError::NotRolledBack {
                target,
                reason,
                left: left.join(", "),
            });
        }
    }
    journal.state = State::Applied;
    store.save(&journal)?;
    Ok(journal)
}

/// Whether a plan may come on top of another: not where its end would undo what was to stay.
fn may_come_on_top(journal: &Journal, ends: bool) -> Result<(), ApplyError> {
    let state = match journal.state {
        State::Applying | State::Undoing => "half applied",
        State::Applied if ends => "applied, and would be undone with these",
        State::Applied => return Ok(()),
    };
    Err(ApplyError::Already {
        started: journal.started.clone(),
        state,
    })
}

/// One step a setting, that leads back to before all of them. A value that another program set in between belongs to
/// it, and undoing goes back to that value.
fn on_top(former: &[Step], added: &[Step]) -> Vec<Step> {
    let mut steps = former.to_vec();
    for step in added {
        match steps.iter_mut().find(|s| s.target == step.target) {
            Some(before) if same(&step.target, before.new.as_deref(), step.old.as_deref()) => {
                take_on(before, step);
            }
            // A file that was edited since may still hold lines of plumb's.
            Some(before) if matches!(step.target, Target::File(_)) => {
                before.old.clone_from(&step.old);
                take_on(before, step);
            }
            Some(before) => before.clone_from(step),
            None => steps.push(step.clone()),
        }
    }
    steps
}

/// Gives a step another value, and keeps the one before among those that are plumb's.
fn take_on(before: &mut Step, step: &Step) {
    let former = std::mem::replace(&mut before.new, step.new.clone());
    if let Some(former) = former.filter(|former| Some(former) != before.new.as_ref())
        && !before.earlier.contains(&former)
    {
        before.earlier.push(former);
    }
}

/// Makes one change and sees that it took.
fn change(machine: &mut impl Machine, step: &Step) -> Result<(), String> {
    let now = machine.read(&step.target).map_err(|e| e.to_string())?;
    if !same(&step.target, now.as_deref(), step.old.as_deref()) {
        return Err("another program changed it at the same moment".to_owned());
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

/// Undoes what a journal says, last change first; `None` when there is none. A setting that still has plumb's value
/// gets the old one; a setting with another value was changed by another program, and keeps it.
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
    let undone = put_back(machine, &journal.steps);
    if undone.failed.is_empty() {
        store.remove()?;
    }
    Ok(Some(undone))
}

/// Undoes steps, last one first.
fn put_back(machine: &mut impl Machine, steps: &[Step]) -> Undone {
    let mut undone = Undone::default();
    for step in steps.iter().rev() {
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
                        // A file that was edited between two plans is restored to its edited state.
                        let old = step.old.as_deref().unwrap_or_default();
                        undone.at_boot.extend(left_at_boot(step, old));
                        undone.restored.push(target);
                    }
                    Ok(now) => undone.failed.push((
                        target,
                        format!("the kernel made it {}", now.unwrap_or_default()),
                    )),
                    Err(e) => undone.failed.push((target, e.to_string())),
                }
            }
            Standing::Changed(now) => {
                undone.at_boot.extend(left_at_boot(step, &now));
                undone.kept.push((target, now));
            }
            Standing::Gone => undone.gone.push(target),
            Standing::Unreadable(why) => undone.failed.push((target, why)),
        }
    }
    undone
}

/// The lines of a file that are still plumb's, though it was edited since.
pub fn left_at_boot(step: &Step, now: &str) -> Vec<String> {
    if !matches!(step.target, Target::File(_)) {
        return Vec::new();
    }
    let plumbs: Vec<_> = step
        .new
        .iter()
        .chain(&step.earlier)
        .flat_map(|text| text.lines())
        .collect();
    now.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#') && plumbs.contains(line))
        .map(str::to_owned)
        .collect()
}

/// How a setting is at present.
pub fn standing(machine: &mut impl Machine, step: &Step) -> Standing {
    match machine.read(&step.target) {
        Err(MachineError::NoInterface(_)) => Standing::Gone,
        Err(e) => Standing::Unreadable(e.to_string()),
        Ok(now) if is_plumbs(step, now.as_deref()) => Standing::AsSet,
        Ok(now) if same(&step.target, now.as_deref(), step.old.as_deref()) => Standing::AsBefore,
        Ok(now) => Standing::Changed(now.unwrap_or_else(|| "not there".to_owned())),
    }
}

/// Whether a value is one that plumb gave.
fn is_plumbs(step: &Step, now: Option<&str>) -> bool {
    let mut earlier = step.earlier.iter();
    same(&step.target, now, step.new.as_deref())
        || earlier.any(|value| same(&step.target, now, Some(value)))
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
mod tests;
