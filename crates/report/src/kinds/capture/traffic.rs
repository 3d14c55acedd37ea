//! All traffic of a capture in sums.

use plumb_model::results::capture::CaptureResult;

use crate::number;
use crate::table::{Table, blank, by_count, counted};

/// Rows of the longer tables; a program reads the Run.
const MOST: usize = 20;

/// Protocols by what lies in what.
pub(super) fn hierarchy(result: &CaptureResult) -> Table {
    let (packets, bytes) = (result.packets.max(1) as f64, result.bytes.max(1) as f64);
    Table::of("Protocols", &result.hierarchy)
        .text("", |node| {
            let inner = node
                .layers
                .last()
                .map(|layer| layer.name())
                .unwrap_or_default();
            format!(
                "{}{inner}",
                "  ".repeat(node.layers.len().saturating_sub(1))
            )
        })
        .num("packets", |node| node.packets)
        .num("", |node| number::percent(node.packets as f64 / packets))
        .num("bytes", |node| number::bytes(node.bytes as f64))
        .num("", |node| number::percent(node.bytes as f64 / bytes))
        .done()
}

/// How much of a wireless LAN had to be sent again, and what of it could not be read.
pub(super) fn wireless_sentence(result: &CaptureResult) -> Option<String> {
    let sums = result.wireless.as_ref()?;
    // Frames of control have no retry bit.
    let may_repeat = sums.data.saturating_add(sums.management);
    let ratio = number::percent(sums.retries as f64 / may_repeat.max(1) as f64);
    let mut text = format!(
        "{} frames of a wireless LAN; {} of {may_repeat} with data or management were sent again ({ratio})",
        sums.frames, sums.retries
    );
    let parts = [
        (sums.encrypted, "are encrypted and were not read"),
        (sums.aggregated, "carry several (A-MSDU) and were not read"),
        (sums.bad, "came with a wrong check sequence"),
    ];
    for (count, what) in parts {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    Some(text + ".")
}

pub(super) fn details(result: &CaptureResult) -> Vec<Table> {
    let conversations = Table::of("Conversations", result.conversations.iter().take(MOST))
        .text("A", |c| c.a.clone())
        .text("B", |c| c.b.clone())
        .num("A to B", |c| number::bytes(c.a_bytes as f64))
        .num("packets", |c| c.a_packets)
        .num("B to A", |c| number::bytes(c.b_bytes as f64))
        .num("packets", |c| c.b_packets);
    let endpoints = Table::of("Hosts", result.endpoints.iter().take(MOST))
        .text("", |e| e.address.clone())
        .text("name", |e| blank(e.name.as_ref()))
        .num("sent", |e| number::bytes(e.sent_bytes as f64))
        .num("packets", |e| e.sent_packets)
        .num("received", |e| number::bytes(e.received_bytes as f64))
        .num("packets", |e| e.received_packets);
    let sizes = Table::of("Packet lengths", &result.sizes)
        .text("bytes", |size| match size.to_bytes {
            Some(to) => format!("{} to {to}", size.from_bytes),
            None => format!("{} and more", size.from_bytes),
        })
        .num("packets", |size| size.packets);
    let errors = Table::of("ICMP errors", result.icmp_errors.iter().take(MOST))
        .text("error", |e| e.error.clone())
        .text("about", |e| e.flow.clone())
        .text("from", |e| e.reporter.clone())
        .num("times", |e| e.count);
    let asked = (result.dns.queries > 0 || result.dns.answers > 0).then_some(&result.dns);
    let dns = Table::of("DNS", asked)
        .num("queries", |dns| dns.queries)
        .num("repeated", |dns| counted(dns.repeated))
        .num("unanswered", |dns| counted(dns.unanswered))
        .num("p50", |dns| {
            blank(dns.answer_s.map(|d| number::seconds(d.p50)))
        })
        .num("max", |dns| {
            blank(dns.answer_s.map(|d| number::seconds(d.max)))
        })
        .text("answers", |dns| by_count(&dns.codes));
    let slowest = Table::of("Slowest answers of DNS", &result.dns.slowest)
        .text("name", |answer| answer.name.clone())
        .text("server", |answer| answer.server.clone())
        .text("", |answer| answer.code.clone())
        .num("took", |answer| number::seconds(answer.answer_s));
    let everybody = (result.arp_packets > 0 || result.broadcast_packets > 0).then_some(result);
    let share = |count: u64| number::percent(count as f64 / result.packets.max(1) as f64);
    let everybody = Table::of("Packets to everybody or a group", everybody)
        .num("packets", |r| r.broadcast_packets)
        .num("of all", |r| share(r.broadcast_packets))
        .num("ARP", |r| r.arp_packets)
        .num("of all", |r| share(r.arp_packets));
    let wireless = Table::of("Frames of wireless LANs", &result.wireless)
        .num("frames", |sums| sums.frames)
        .num("data", |sums| sums.data)
        .num("management", |sums| counted(sums.management))
        .num("control", |sums| counted(sums.control))
        .num("retries", |sums| counted(sums.retries))
        .num("encrypted", |sums| counted(sums.encrypted))
        .num("A-MSDU", |sums| counted(sums.aggregated))
        .num("bad", |sums| counted(sums.bad));
    vec![
        wireless.done(),
        conversations.done(),
        endpoints.done(),
        sizes.done(),
        errors.done(),
        dns.done(),
        slowest.done(),
        everybody.done(),
    ]
}
