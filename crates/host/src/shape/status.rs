//! What a shaper does, as the kernel counts it: pure but for the reading of the lists.

use std::collections::BTreeMap;
use std::path::Path;

use plumb_model::direction::OneDirection;
use plumb_model::shape::{STATUS_SCHEMA, Scheme, ShapeStatus, ShapedClass, ShapedDirection};
use plumb_net::netlink::NetlinkError;
use plumb_net::netlink::queue::listed::{Listed, classes};
use plumb_net::netlink::queue::options::{cake_rate_bps, htb_rates_bps};
use plumb_net::netlink::queue::statistics::{Tin, fq_codel_flow_delay_us, fq_codel_marks, tins};

use super::apply::{ApplyError, ours};
use super::journal::{Journal, Journals, State};
use super::objects::is_ours;
use super::reading::{self, number, outermost};
use super::{cake, htb};

/// Reads what stands on an interface.
///
/// # Errors
/// When the journal cannot be read, and errors of the kernel.
pub fn status(state: &Path, device: &str) -> Result<ShapeStatus, ApplyError> {
    let journal = Journals::look(state, device)?;
    let mut status = ShapeStatus {
        schema: STATUS_SCHEMA.to_owned(),
        device: device.to_owned(),
        applied: journal.is_some(),
        complete: journal
            .as_ref()
            .is_none_or(|journal| journal.state == State::Applied),
        started: journal.as_ref().map(|journal| journal.started.clone()),
        until: journal.as_ref().and_then(|journal| journal.until.clone()),
        changed: Vec::new(),
        directions: Vec::new(),
    };
    let Some(journal) = journal else {
        return Ok(status);
    };
    if number(device) != Some(journal.index) {
        let gone =
            format!("{device} is gone, and another may have its name: its queues went with it");
        status.changed.push(gone);
        return Ok(status);
    }
    let up = (OneDirection::Up, Some(device));
    let down = (OneDirection::Down, journal.ifb.as_deref());
    for (direction, on) in [up, down] {
        let (Some(_), Some(on)) = (journal.request.shaper(direction), on) else {
            continue;
        };
        match of_device(&journal, direction, on)? {
            Some(shaped) => status.directions.push(shaped),
            None => status
                .changed
                .push(format!("{on} has no shaper of plumb's: it was removed")),
        }
    }
    if journal.ifb.is_some() && ours(journal.index)?.is_none() {
        status.changed.push(format!(
            "what {device} receives is not redirected: the filter was removed"
        ));
    }
    Ok(status)
}

fn of_device(
    journal: &Journal,
    direction: OneDirection,
    device: &str,
) -> Result<Option<ShapedDirection>, NetlinkError> {
    let Some(index) = number(device) else {
        return Ok(None);
    };
    let all = reading::of(index)?;
    let Some(root) = outermost(&all).filter(|root| is_ours(root.handle)) else {
        return Ok(None);
    };
    let (rate_bps, classes) = match journal.scheme {
        Scheme::Cake => {
            let names = cake::tin_names(journal.request.classes);
            let tins = tins(&root.counted.own);
            let each = names.iter().zip(&tins);
            (
                cake_rate_bps(&root.options),
                each.map(|(name, tin)| of_tin(name, tin)).collect(),
            )
        }
        Scheme::Htb => {
            let listed = classes(index)?;
            let whole = listed.iter().find(|class| class.handle == htb::WHOLE);
            let rates = whole.and_then(|class| htb_rates_bps(&class.options));
            let classes = htb::classes(journal.request.classes);
            let each = (0..).zip(&classes);
            (
                rates.map(|(_, ceil)| ceil),
                each.map(|(place, class)| of_hosts(place, class.name, &all, &listed))
                    .collect(),
            )
        }
    };
    Ok(rate_bps.map(|rate_bps| ShapedDirection {
        direction,
        device: device.to_owned(),
        rate_bps,
        classes,
    }))
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn of_tin(name: &str, tin: &Tin) -> ShapedClass {
    ShapedClass {
        name: name.to_owned(),
        assured_bps: tin.threshold_rate.saturating_mul(8),
        sent_bps: None,
        sent_bytes: tin.sent_bytes,
        sent_packets: tin.sent_packets,
        dropped_packets: tin.dropped_packets,
        marked_packets: tin.marked_packets,
        acks_dropped: Some(tin.acks_dropped_packets),
        backlog_bytes: tin.backlog_bytes,
        backlog_packets: tin.backlog_packets,
        delay_s: Some(seconds(tin.mean_delay_us)),
        peak_delay_s: Some(seconds(tin.peak_delay_us)),
    }
}

/// A class of traffic: the sum of its hosts' queues.
fn of_hosts(place: u16, name: &str, disciplines: &[Listed], classes: &[Listed]) -> ShapedClass {
    let first = htb::queues(place).0;
    let last = first + (u32::from(htb::HOSTS - 1) << 16);
    let is_of_it = |listed: &&Listed| (first..=last).contains(&listed.handle.discipline().0);
    let assured = classes.iter().filter(|class| {
        let hosts = htb::of_hosts(place).0;
        (hosts..hosts + u32::from(htb::HOSTS)).contains(&class.handle.0)
    });
    let assured = assured
        .filter_map(|class| htb_rates_bps(&class.options))
        .map(|(rate, _)| rate);
    let mut sum = ShapedClass {
        name: name.to_owned(),
        assured_bps: assured.sum(),
        sent_bps: None,
        sent_bytes: 0,
        sent_packets: 0,
        dropped_packets: 0,
        marked_packets: 0,
        acks_dropped: None,
        backlog_bytes: 0,
        backlog_packets: 0,
        delay_s: None,
        peak_delay_s: None,
    };
    for queue in disciplines.iter().filter(is_of_it) {
        let counted = &queue.counted;
        sum.sent_bytes += counted.bytes;
        sum.sent_packets += counted.packets;
        sum.dropped_packets += counted.drops;
        sum.marked_packets += fq_codel_marks(&counted.own).unwrap_or_default();
        sum.backlog_bytes += counted.backlog_bytes;
        sum.backlog_packets += counted.queue_packets;
    }
    let flows = classes.iter().filter(is_of_it);
    let delays = flows.filter_map(|flow| fq_codel_flow_delay_us(&flow.counted.own));
    sum.delay_s = delays.max().map(seconds);
    sum
}

/// The rates between two readings `interval_s` seconds apart.
pub fn since(before: &ShapeStatus, now: &mut ShapeStatus, interval_s: f64) {
    let key = |direction: &ShapedDirection, class: &ShapedClass| {
        (direction.direction, class.name.clone())
    };
    let earlier: BTreeMap<_, u64> = before
        .directions
        .iter()
        .flat_map(|direction| {
            let classes = direction.classes.iter();
            classes.map(move |class| (key(direction, class), class.sent_bytes))
        })
        .collect();
    for direction in &mut now.directions {
        let of = direction.direction;
        for class in &mut direction.classes {
            let sent = earlier.get(&(of, class.name.clone()));
            // A shaper that was made anew counts from zero.
            let more = sent.and_then(|sent| class.sent_bytes.checked_sub(*sent));
            class.sent_bps = more
                .filter(|_| interval_s > 0.0)
                .map(|bytes| bytes as f64 * 8.0 / interval_s);
        }
    }
}
