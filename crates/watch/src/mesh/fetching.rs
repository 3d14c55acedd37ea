//! The rows of the other members, which their pages hand out: each is asked for in turn, within a time and a size, and where
//! there is none, why is shown in its place. What one member answers has no part in what others do.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_probe::Trust;
use plumb_probe::get::Get;
use plumb_wire::url::{Scheme, Url};

use super::row::Row;
use super::{Member, Mesh};
use crate::config::Config;
use crate::target::kind::now_us;

/// How often each member is asked: its row is of five minutes.
const EVERY: Duration = Duration::from_secs(60);

/// How soon the end of plumb is seen.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A page answers within this, or it is silent.
const TIMEOUT: Duration = Duration::from_secs(10);

/// So many are asked at once.
const AT_ONCE: usize = 8;

/// The longest row in bytes: 99 members by 12 probes, each cell 200 bytes.
const MOST_BYTES: usize = 256 * 1024;

/// The longest file with a key, in bytes.
const MOST_KEY: u64 = 4096;

/// What a member's page is asked for.
const PATH: &str = "/mesh.json";

/// What became of asking a member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heard {
    /// When that was, s since 1970.
    pub(crate) at_s: i64,
    /// Its row, or why there is none, in words.
    pub(crate) row: Result<Row, String>,
}

/// What was heard last of each member, by the names of mesh and member.
pub(crate) type Rows = BTreeMap<(String, String), Arc<Heard>>;

/// The same, shared with the page.
pub(crate) type Shared = Arc<Mutex<Rows>>;

/// Asks all members of the mesh that is in force, again and again, in a thread of its own until `stop`.
pub(crate) fn begin(
    shown: Arc<Mutex<Arc<Config>>>,
    rows: Shared,
    stop: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let work = move || {
        let mut due: Option<Instant> = None;
        while !stop.load(Ordering::Relaxed) {
            if due.is_none_or(|due| Instant::now() >= due) {
                due = Some(Instant::now() + EVERY);
                let config = Arc::clone(&shown.lock().unwrap_or_else(PoisonError::into_inner));
                if let Some(mesh) = &config.mesh {
                    round(mesh, &rows, &stop);
                }
            }
            thread::sleep(LOOK_EVERY);
        }
    };
    let thread = thread::Builder::new().name("mesh".into());
    thread.spawn(work).map(drop)
}

/// Asks each member once.
pub(crate) fn round(mesh: &Mesh, rows: &Mutex<Rows>, stop: &AtomicBool) {
    let own = mesh.own_member().map(|own| own.name.clone());
    let others = mesh.members.iter();
    let others = others.filter(|member| Some(&member.name) != own.as_ref());
    let others: Vec<(&Member, &Url)> = others
        .filter_map(|member| Some((member, member.page.as_ref()?)))
        .collect();
    for some in others.chunks(AT_ONCE) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        thread::scope(|scope| {
            for (member, page) in some {
                let ask = move || {
                    let heard = Heard {
                        row: fetch(mesh, member, page),
                        at_s: now_us() / 1_000_000,
                    };
                    let key = (mesh.name.clone(), member.name.clone());
                    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                    rows.insert(key, Arc::new(heard));
                };
                let thread = thread::Builder::new().name("mesh row".into());
                // One that cannot be begun is asked again in the next round.
                drop(thread.spawn_scoped(scope, ask));
            }
        });
    }
    // A member that the file has no more is forgotten.
    let is_known = |(of, name): &(String, String)| {
        *of == mesh.name && others.iter().any(|(member, _)| member.name == *name)
    };
    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
    rows.retain(|key, _| is_known(key));
}

/// The row of a member; why there is none, in words.
fn fetch(mesh: &Mesh, member: &Member, page: &Url) -> Result<Row, String> {
    let key = member.page_key_file.as_deref().map(key).transpose()?;
    let bearer = key.map(|key| format!("Bearer {key}"));
    let fields: Vec<_> = bearer
        .iter()
        .map(|bearer| ("Authorization", bearer.as_str()))
        .collect();
    let trust = (page.origin.scheme == Scheme::Https).then(|| Trust::authorities(None));
    let trust = trust.transpose().map_err(|error| error.to_string())?;
    let url = Url {
        origin: page.origin.clone(),
        target: PATH.to_owned(),
    };
    let get = Get {
        url: &url,
        fields: &fields,
        trust: trust.as_ref(),
        timeout: TIMEOUT,
        most_bytes: MOST_BYTES,
    };
    let document = get.fetch().map_err(|why| format!("silent: {why}"))?;
    match document.status {
        200 => Row::read(mesh, &member.name, &document.body).map_err(|why| why.to_string()),
        401 | 403 | 303 => Err(match member.page_key_file {
            Some(_) => "it refuses the key of page_key_file".to_owned(),
            None => "its page asks for a key: name one with page_key_file".to_owned(),
        }),
        404 => Err("its page shows no mesh: it has another file, or an older plumb".to_owned()),
        status => Err(format!("its page answers {status}")),
    }
}

/// The key in the first line of a file.
fn key(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let opened = std::fs::File::open(file);
    let read = opened.and_then(|file| file.take(MOST_KEY).read_to_string(&mut text));
    read.map_err(|error| format!("the key in {} cannot be read: {error}", file.display()))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests;
