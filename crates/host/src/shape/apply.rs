//! Doing a plan and undoing it, over netlink and a journal. What is undone does not depend on how far it had come: each
//! part of it is looked for, and what is not plumb's is left alone.

use plumb_model::direction::OneDirection;
use plumb_net::missing;
use plumb_net::netlink::link::links;
use plumb_net::netlink::queue::filter::Filter;
use plumb_net::netlink::queue::listed::filters;
use plumb_net::netlink::queue::options::Discipline;
use plumb_net::netlink::queue::{Handle, How};
use plumb_net::netlink::{Netlink, NetlinkError};

use super::journal::{Journal, Journals, State};
use super::objects::{Object, On, REDIRECT_PRIORITY, SPLITTER, is_ours};
use super::plan::Plan;
use super::reading::{self, Reading, Received, Root, number, outermost};
use super::request::Request;
use crate::kept::JournalError;

/// What plumb writes to the device that it makes, and knows it by.
const ALIAS: &str = "what plumb shape receives";

/// A plan that was not done, or not undone.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(
        "{device} is shaped already, since {started}: nothing was changed; plumb shape undo {device} first"
    )]
    Already { device: String, started: String },
    #[error("nothing was changed: {}", missing::of(&.modules.join(", "), .modules))]
    Lacks {
        /// Those that the kernel lacks.
        modules: Vec<String>,
    },
    #[error("{device} is not shaped by plumb")]
    Not { device: String },
    /// Refused on the way; what was done is undone.
    #[error("{reason}: everything is as it was")]
    RolledBack { reason: String },
    /// Refused on the way, and something could not be undone.
    #[error("{reason}; and {left}: run plumb shape undo {device} again")]
    NotRolledBack {
        device: String,
        reason: String,
        /// What is still there.
        left: String,
    },
}

/// What undoing came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// What was taken away or put back.
    pub restored: Vec<String>,
    /// What another program put there since: left unchanged.
    pub kept: Vec<String>,
    /// What could not be undone, and why: it stays in the journal.
    pub failed: Vec<String>,
}

/// When it is done, and until when unless it is confirmed.
#[derive(Debug, Clone)]
pub struct Moment {
    pub id: String,
    pub started: String,
    pub until: Option<String>,
}

/// Whether the kernel has all that a plan needs, as far as that can be known before it is done.
///
/// # Errors
/// [`ApplyError::Lacks`].
pub fn possible(plan: &Plan) -> Result<(), ApplyError> {
    let lacking = plan
        .lacking
        .iter()
        .find(|lacking| lacking.scheme == plan.scheme);
    lacking.map_or(Ok(()), |lacking| {
        Err(ApplyError::Lacks {
            modules: lacking.modules.clone(),
        })
    })
}

/// Does a plan. Returns the journal.
///
/// # Errors
/// When the interface is shaped already, or the kernel lacks a part or refuses: everything is then as it was, unless the
/// error says otherwise.
pub fn apply(
    journals: &Journals,
    request: &Request,
    plan: &Plan,
    reading: &Reading,
    moment: Moment,
) -> Result<Journal, ApplyError> {
    possible(plan)?;
    let device = &request.device;
    if let Some(journal) = journals.load(device)? {
        // Another interface of that name: the shaper went with the one before.
        if journal.index == reading.index {
            return Err(ApplyError::Already {
                device: device.clone(),
                started: journal.started,
            });
        }
        undo(journals, device)?;
    }
    let (before, chosen) = match &reading.root {
        Root::Default { kind } => (None, Some(kind.clone())),
        Root::Theirs {
            again: Ok(recorded),
            ..
        } => (Some(recorded.clone()), None),
        _ => (None, None),
    };
    let mut journal = Journal {
        id: moment.id,
        started: moment.started,
        until: moment.until,
        scheme: plan.scheme,
        mtu_bytes: reading.mtu_bytes,
        ethernet: reading.ethernet,
        ifb: plan.ifb.clone(),
        before,
        chosen,
        had_received: reading.received != Received::Nothing,
        ..Journal::of_nothing(request.clone(), reading.index)
    };
    journals.save(&journal)?;
    if let Err(reason) = make_all(plan, &journal) {
        let undone = undo(journals, device)?.unwrap_or_default();
        if undone.failed.is_empty() {
            return Err(ApplyError::RolledBack { reason });
        }
        return Err(ApplyError::NotRolledBack {
            device: device.clone(),
            reason,
            left: undone.failed.join(", "),
        });
    }
    journal.state = State::Applied;
    journals.save(&journal)?;
    Ok(journal)
}

/// Lets a shaper stay. Returns its journal.
///
/// # Errors
/// When there is none.
pub fn confirm(journals: &Journals, device: &str) -> Result<Journal, ApplyError> {
    let not = || ApplyError::Not {
        device: device.to_owned(),
    };
    let mut journal = journals.load(device)?.ok_or_else(not)?;
    if journal.state != State::Applied {
        return Err(not());
    }
    journal.until = None;
    journals.save(&journal)?;
    Ok(journal)
}

/// Makes all objects of a plan; what was the matter with the first that could not be made.
fn make_all(plan: &Plan, journal: &Journal) -> Result<(), String> {
    let mut netlink = Netlink::open().map_err(|e| e.to_string())?;
    for object in &plan.objects {
        make(&mut netlink, object, journal).map_err(|error| explain(object, &error))?;
    }
    Ok(())
}

/// What a refusal means: a part that the kernel lacks has a name.
fn explain(object: &Object, error: &NetlinkError) -> String {
    if error.is_privilege() {
        return "the kernel's queues may not be changed: run it as root (sudo)".to_owned();
    }
    if !error.is_absent() {
        return error.to_string();
    }
    let what = match object {
        Object::Ifb => "devices of the kind ifb",
        Object::Discipline { what, .. } => what.kind(),
        Object::Class { .. } => return error.to_string(),
        Object::Hosts { .. } => "fq_codel",
        Object::Filter { what, .. } => what.kind(),
        Object::Redirect => "redirection of what is received (matchall with mirred)",
    };
    let without = match what {
        "cake" => "; or use --scheme htb",
        _ => "",
    };
    missing::of(what, &object.modules()) + without
}

fn make(netlink: &mut Netlink, object: &Object, journal: &Journal) -> Result<(), NetlinkError> {
    let ifb = || {
        let name = journal.ifb.as_deref().unwrap_or_default();
        plumb_net::netlink::index_of(name)
    };
    let index = |on: &On| match on {
        On::Line => Ok(journal.index),
        On::Ifb => ifb(),
    };
    match object {
        Object::Ifb => {
            let name = journal.ifb.as_deref().unwrap_or_default();
            netlink.add_ifb(name)?;
            let index = ifb()?;
            netlink.set_alias(index, ALIAS)?;
            netlink.set_up(index, None)
        }
        Object::Discipline {
            on,
            parent,
            handle,
            what,
        } => {
            let replaces = *parent == Handle::ROOT && *on == On::Line && journal.before.is_some();
            let how = if replaces { How::InPlace } else { How::New };
            netlink.put_discipline(index(on)?, *parent, *handle, what, how)
        }
        Object::Class {
            on,
            parent,
            handle,
            what,
        } => netlink.put_class(index(on)?, *parent, *handle, what),
        Object::Hosts {
            on,
            parent,
            first,
            count,
            each,
            disciplines,
            queue,
        } => {
            let index = index(on)?;
            let queue = Discipline::FqCodel(*queue);
            for place in 0..*count {
                let class = Handle(first.0 + u32::from(place));
                let handle = Handle(disciplines.0 + (u32::from(place) << 16));
                netlink.put_class(index, *parent, class, each)?;
                netlink.put_discipline(index, class, handle, &queue, How::New)?;
            }
            Ok(())
        }
        Object::Filter {
            on,
            parent,
            priority,
            what,
        } => netlink.add_filter(index(on)?, *parent, *priority, what),
        Object::Redirect => {
            let to = Filter::Redirect { to: ifb()? };
            let parent = Handle::INGRESS_FILTERS;
            netlink.add_filter(journal.index, parent, REDIRECT_PRIORITY, &to)
        }
    }
}

/// Undoes what a journal says, in the order in which packets pass all the while; `None` when there is none and no shaper
/// of plumb's on the interface.
///
/// # Errors
/// When the journal cannot be read or written; nothing is changed when it cannot be read.
pub fn undo(journals: &Journals, device: &str) -> Result<Option<Undone>, ApplyError> {
    let Some(mut journal) = journals.load(device)? else {
        return without_journal(device);
    };
    journal.state = State::Undoing;
    journals.save(&journal)?;
    let undone = put_back(&journal);
    if undone.failed.is_empty() {
        journals.remove(device)?;
    }
    Ok(Some(undone))
}

/// Whether a shaper of plumb's stands on an interface, by its handles.
///
/// # Errors
/// Errors of the kernel.
pub fn stands(device: &str) -> Result<bool, NetlinkError> {
    let Some(index) = number(device) else {
        return Ok(false);
    };
    let all = reading::of(index)?;
    let shaped = outermost(&all).is_some_and(|root| is_ours(root.handle));
    Ok(shaped || ours(index)?.is_some())
}

/// A shaper whose journal is lost is known by its handles, and taken away.
fn without_journal(device: &str) -> Result<Option<Undone>, ApplyError> {
    let Some(index) = number(device) else {
        return Ok(None);
    };
    if !stands(device)? {
        return Ok(None);
    }
    let request = Request {
        device: device.to_owned(),
        shapers: Vec::new(),
        scheme: None,
        classes: Default::default(),
        nat: false,
        ack_filter: false,
        replace: false,
    };
    Ok(Some(put_back(&Journal::of_nothing(request, index))))
}

fn put_back(journal: &Journal) -> Undone {
    let mut undone = Undone::default();
    let device = &journal.request.device;
    let mut note = |what: String, result: Result<Left, NetlinkError>| match result {
        Ok(Left::Nothing) => {}
        Ok(Left::Restored) => undone.restored.push(what),
        Ok(Left::Theirs(why)) => undone.kept.push(why),
        Err(error) => undone.failed.push(format!("{what}: {error}")),
    };
    let mut netlink = match Netlink::open() {
        Ok(netlink) => netlink,
        Err(error) => {
            note(device.clone(), Err(error));
            return undone;
        }
    };
    // With its interface all but the other device is gone.
    if number(device) == Some(journal.index) {
        if journal.ifb.is_some() {
            note(
                format!("reception by {device}"),
                receive(&mut netlink, journal),
            );
        }
        note(
            format!("the queue of {device}"),
            root(&mut netlink, journal),
        );
    }
    if let Some(ifb) = &journal.ifb {
        note(format!("the device {ifb}"), remove_ifb(&mut netlink, ifb));
    }
    undone
}

/// What became of a part.
enum Left {
    /// It was not there.
    Nothing,
    Restored,
    /// Changed since by another program, in a sentence.
    Theirs(String),
}

/// Removes the redirection, and the clsact qdisc where no other program has a filter in it.
fn receive(netlink: &mut Netlink, journal: &Journal) -> Result<Left, NetlinkError> {
    let device = &journal.request.device;
    let mut left = Left::Nothing;
    if let Some(filter) = ours(journal.index)? {
        netlink.remove_filters(journal.index, Handle::INGRESS_FILTERS, filter)?;
        left = Left::Restored;
    }
    if journal.had_received {
        return Ok(left);
    }
    let all = reading::of(journal.index)?;
    match reading::received(journal.index, &all)? {
        Received::Nothing => Ok(left),
        Received::Filters { .. } => Ok(Left::Theirs(format!(
            "{device} has filters of others for what it receives"
        ))),
        Received::Empty { kind } if kind != "ingress" => Ok(Left::Theirs(format!(
            "{device} has a {kind} that plumb did not put there"
        ))),
        Received::Empty { .. } => {
            let (parent, handle) = (Handle::INGRESS, Handle::INGRESS_DISCIPLINE);
            netlink.remove_discipline(journal.index, parent, handle)?;
            Ok(Left::Restored)
        }
    }
}

/// Priority and protocol of plumb's redirection, as listed.
pub(super) fn ours(index: u32) -> Result<Option<u32>, NetlinkError> {
    let all = reading::of(index)?;
    if reading::received(index, &all)? == Received::Nothing {
        return Ok(None);
    }
    let listed = filters(index, Handle::INGRESS_FILTERS)?;
    let ours = listed.iter().find(|filter| {
        filter.info >> 16 == u32::from(REDIRECT_PRIORITY) && filter.kind == "matchall"
    });
    Ok(ours.map(|filter| filter.info))
}

/// Puts back what was at the root.
fn root(netlink: &mut Netlink, journal: &Journal) -> Result<Left, NetlinkError> {
    let device = &journal.request.device;
    let at = Handle::ROOT;
    let all = reading::of(journal.index)?;
    let there = outermost(&all);
    let is_ours = there.is_some_and(|there| is_ours(there.handle));
    let Some(before) = &journal.before else {
        if !is_ours {
            let shaped = journal.request.shaper(OneDirection::Up).is_some();
            let theirs = there.filter(|there| shaped && there.handle != Handle::NONE);
            return Ok(theirs.map_or(Left::Nothing, |theirs| {
                Left::Theirs(format!("{device} has {} {}", theirs.kind, theirs.handle))
            }));
        }
        let handle = there.map_or(Handle::NONE, |there| there.handle);
        empty(netlink, journal.index, handle);
        netlink.remove_discipline(journal.index, at, handle)?;
        let all = reading::of(journal.index)?;
        let now = outermost(&all).map_or("noqueue", |there| there.kind.as_str());
        return Ok(match &journal.chosen {
            // The default is the system's, which was changed meanwhile by another program.
            Some(chosen) if chosen != now => Left::Theirs(format!(
                "{device} has the kernel's choice again, which is {now} by now and was {chosen}"
            )),
            _ => Left::Restored,
        });
    };
    match there {
        _ if journal.request.shaper(OneDirection::Up).is_none() => return Ok(Left::Nothing),
        Some(there) if before.is(there) => return Ok(Left::Nothing),
        Some(there) if !is_ours && there.handle != Handle::NONE => {
            return Ok(Left::Theirs(format!(
                "{device} has {} {}",
                there.kind, there.handle
            )));
        }
        _ => {}
    }
    if let Some(there) = there.filter(|_| is_ours) {
        empty(netlink, journal.index, there.handle);
    }
    let what = before.discipline();
    netlink.put_discipline(journal.index, at, before.handle, &what, How::InPlace)?;
    let all = reading::of(journal.index)?;
    Ok(match outermost(&all) {
        Some(there) if before.is(there) => Left::Restored,
        _ => Left::Theirs(format!(
            "{device} has {} again, and the kernel made something else of its settings than before",
            before.kind
        )),
    })
}

/// Takes HTB with its hundreds of parts out of the bucket around it, in whose stead packets pass a plain queue. The kernel sends nothing on
/// a device while it destroys what was at its root; what was inside it destroys beside. Where that fails, it only takes longer.
fn empty(netlink: &mut Netlink, index: u32, root: Handle) {
    if root != Handle::new(SPLITTER, 0) {
        return;
    }
    let plain = Discipline::Recorded {
        kind: "pfifo".to_owned(),
        options: Vec::new(),
    };
    let inside = Handle::new(SPLITTER, 1);
    let _ = netlink.put_discipline(index, inside, Handle::NONE, &plain, How::InPlace);
}

fn remove_ifb(netlink: &mut Netlink, ifb: &str) -> Result<Left, NetlinkError> {
    let links = links()?;
    let Some(link) = links.iter().find(|link| link.name == ifb) else {
        return Ok(Left::Nothing);
    };
    if link.kind.as_deref() != Some("ifb") {
        return Ok(Left::Theirs(format!(
            "{ifb} is a device that plumb did not make"
        )));
    }
    netlink.remove_link(link.index)?;
    Ok(Left::Restored)
}
