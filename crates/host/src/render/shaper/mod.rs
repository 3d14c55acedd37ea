//! A shaper as what the owner of a router types: commands or configuration where there is a shell, the menu and the numbers
//! where there is none, and what to do instead where the system has no managed queue.
//!
//! One file a router, and a line in [`of`]. Lines that are no commands begin with `#` where there is a shell to
//! paste them into: a comment behind a command is lost or breaks it where lines are wrapped.

mod asus;
mod edgeos;
mod fritzbox;
mod generic;
mod linux;
mod mikrotik;
mod openwrt;
mod opnsense;
mod pfsense;
mod rendering;
mod unifi;
mod vyos;

use plumb_model::finding::ShaperAction;
use plumb_model::router::Router;

use rendering::{Lines, Rendering};

fn of(router: Router) -> Rendering {
    match router {
        Router::Openwrt => openwrt::RENDERING,
        Router::Linux => linux::RENDERING,
        Router::Mikrotik => mikrotik::RENDERING,
        Router::Pfsense => pfsense::RENDERING,
        Router::Opnsense => opnsense::RENDERING,
        Router::Vyos => vyos::RENDERING,
        Router::Edgeos => edgeos::RENDERING,
        Router::Unifi => unifi::RENDERING,
        Router::Asus => asus::RENDERING,
        Router::Fritzbox => fritzbox::RENDERING,
        Router::Generic => generic::RENDERING,
    }
}

/// What to do where the system has no managed queue; none where it has one.
pub(super) fn instead(router: Router) -> Option<&'static str> {
    (router == Router::Fritzbox).then_some(fritzbox::INSTEAD)
}

/// The lines for that router, of one direction or of both, with where they are from.
pub fn lines(actions: &[ShaperAction], router: Router) -> Vec<String> {
    let Rendering { lines, source } = of(router);
    let mut lines = match lines {
        Lines::OfEach(lines) => actions.iter().flat_map(lines).collect(),
        Lines::OfAll(lines) => lines(actions),
    };
    if let Some(source) = source {
        let mark = if source.shell { "# " } else { "" };
        lines.extend([
            format!(
                "{mark}Not tried on a device; read {}: {},",
                source.read, source.publisher
            ),
            format!("{mark}\"{}\".", source.title),
        ]);
    }
    lines
}

#[cfg(test)]
mod tests;
