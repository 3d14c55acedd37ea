//! The page: an overview in words, a page for each target and each place that flows are sent to, and the metrics. It only reads.

mod flow_chart;
mod flows;
mod graph;
mod http;
mod login;
mod mesh;
mod metrics;
mod overview;
mod range;
mod target;
pub(crate) mod words;

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Answer, Method, Request};
use login::{Entry, Gate};

use crate::config::Config;
use crate::mesh::fetching as mesh_rows;
use crate::metrics::families;
use crate::store::Store;
use crate::target::kind::now_us;

/// Serves the page in threads of its own until the process ends.
pub(crate) fn serve(
    listener: TcpListener,
    config: Arc<Mutex<Arc<Config>>>,
    heard: mesh_rows::Shared,
) -> std::io::Result<()> {
    let gate = Gate::new()?;
    http::serve(listener, move |request| {
        let config = Arc::clone(&config.lock().unwrap_or_else(PoisonError::into_inner));
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        entered((&config, &heard), &gate, request, now_us() / 1_000_000)
    })
}

/// The answer to a request at that time of day, s since 1970, to who may see it.
fn entered(
    (config, heard): (&Config, &mesh_rows::Rows),
    gate: &Gate,
    request: &Request,
    now_s: i64,
) -> Answer {
    let Some(access) = &config.access else {
        return answer((config, heard), true, request, now_s);
    };
    match gate.enter(access, request, now_s) {
        Err(why) => Answer::failed(&why),
        Ok(Entry::Answered(answer)) => answer,
        Ok(Entry::Seen(who)) if who.groups.is_empty() => {
            answer((config, heard), true, request, now_s)
        }
        Ok(Entry::Seen(who)) => {
            let part = config.of_groups(&who.groups);
            answer((&part, heard), false, request, now_s)
        }
    }
}

/// The answer to a request at that time of day, s since 1970. Where not all is seen, the configuration is what is.
fn answer(
    (config, heard): (&Config, &mesh_rows::Rows),
    is_all: bool,
    request: &Request,
    now_s: i64,
) -> Answer {
    if request.method == Method::Post {
        return Answer::not_so();
    }
    let read = || {
        let store = Store::open_to_read(&config.store)?;
        match request.path.as_str() {
            "/" => {
                let page = overview::page(config, is_all, &store, now_s)?;
                Ok(Some(Answer::html(page)))
            }
            path if !is_all && (path.starts_with("/flows/") || path.starts_with("/json/")) => {
                Ok(None)
            }
            "/mesh" => Ok(mesh::page(config, &store, heard, now_s)?.map(Answer::html)),
            "/mesh.json" => Ok(mesh::json(config, &store, now_s)?.map(Answer::json)),
            "/metrics" => {
                let families = families(config, &store, now_s)?;
                Ok(Some(Answer::text(metrics::text(&families))))
            }
            path if path.starts_with("/flows/") => {
                let name = path.strip_prefix("/flows/").unwrap_or_default();
                let Some(asked) = flows::Asked::of(request.query.as_deref()) else {
                    return Ok(None);
                };
                let page = flows::page(&store, name, asked, now_s)?;
                Ok(page.map(Answer::html))
            }
            path if path.starts_with("/json/flows/") => {
                let name = path.strip_prefix("/json/flows/").unwrap_or_default();
                let Some(asked) = flows::Asked::of(request.query.as_deref()) else {
                    return Ok(None);
                };
                let document = flows::json(&store, name, asked, now_s)?;
                Ok(document.map(Answer::json))
            }
            path => {
                let name = path.strip_prefix("/target/").unwrap_or_default();
                let known = config.targets.iter().find(|target| target.name == name);
                let known = known.cloned().or_else(|| config.series(name));
                let range = range::Range::of(request.query.as_deref());
                let (Some(known), Some(range)) = (known, range) else {
                    return Ok(None);
                };
                target::page(config, &known, &store, range, now_s)
                    .map(|page| Some(Answer::html(page)))
            }
        }
    };
    match read() {
        Ok(Some(answer)) => answer,
        Ok(None) => Answer::not_found(),
        Err(error) => Answer::failed(&error.to_string()),
    }
}

#[cfg(test)]
mod tests;
