//! Flows on the terminal while they pass: a line a flow, the busiest first. No line is longer than the terminal is wide, and
//! there are no more than it has.

use std::cmp::Reverse;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_capture::{PassingFlow, Totals, Viewer};
use plumb_model::units::si;

use crate::screen::{Screen, fitted};

/// How often it is drawn with new figures.
const EVERY: Duration = Duration::from_secs(1);
/// Lines besides the lines of flows.
const OTHER_LINES: usize = 3;
/// Flows that are remembered between two drawings, for keys that are pressed meanwhile: more than any terminal has lines.
const MOST_REMEMBERED: usize = 16_384;

const ENTER: [u8; 2] = [b'\r', b'\n'];
const ERASE: [u8; 2] = [0x7f, 0x08];
const ESCAPE: u8 = 0x1b;

/// The view on the terminal.
pub(super) struct LiveView {
    screen: Screen,
    stop: Arc<AtomicBool>,
    name: String,
    began: Instant,
    shown: Instant,
    look: Look,
    totals: Totals,
    /// Bytes of all packets a second, in the time that the flows are of.
    bytes_per_s: f64,
    interval: Duration,
    flows: Vec<PassingFlow>,
}

/// What is looked at, and in what order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Look {
    order: Order,
    /// A part of the text of the flows that are shown.
    text: String,
    /// Whether keys go into the text.
    types: bool,
    pauses: bool,
    ends: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Rate,
    Bytes,
    Retransmissions,
}

impl LiveView {
    /// A view on the terminal; `None` where standard output is none. `q` sets `stop`.
    pub(super) fn open(name: &str, stop: &Arc<AtomicBool>) -> Option<Self> {
        let now = Instant::now();
        let view = Self {
            screen: Screen::open()?,
            stop: Arc::clone(stop),
            name: name.to_owned(),
            began: now,
            shown: now,
            look: Look::default(),
            totals: Totals::default(),
            bytes_per_s: 0.0,
            interval: EVERY,
            flows: Vec::new(),
        };
        view.draw();
        Some(view)
    }

    fn draw(&self) {
        let state = match self.look.pauses {
            true => "paused".to_owned(),
            false => format!("{} s", self.began.elapsed().as_secs()),
        };
        let head = format!(
            "plumb capture of {}   {state}   {} packets   {}   {} dropped",
            self.name,
            self.totals.packets,
            si(self.bytes_per_s * 8.0, "bit/s"),
            self.totals.dropped
        );
        let (width, height) = self.screen.size();
        let mut flows = self.flows.clone();
        let lines = lines(&head, &self.look, &mut flows, self.interval, height);
        self.screen.draw(&fitted(lines, width));
    }
}

impl Viewer for LiveView {
    fn is_due(&mut self) -> bool {
        let pressed = self.screen.pressed();
        if !pressed.is_empty() {
            self.look.press(&pressed);
            if self.look.ends {
                self.stop.store(true, Ordering::Relaxed);
            }
            self.draw();
        }
        !self.look.pauses && self.shown.elapsed() >= EVERY
    }

    fn show(&mut self, totals: Totals, flows: &mut dyn Iterator<Item = PassingFlow>) {
        let now = Instant::now();
        self.interval = now.duration_since(self.shown);
        self.shown = now;
        let more = totals.bytes.saturating_sub(self.totals.bytes);
        self.bytes_per_s = more as f64 / self.interval.as_secs_f64().max(f64::MIN_POSITIVE);
        self.totals = totals;
        self.flows.clear();
        // Ends with the flows.
        for flow in flows {
            self.flows.push(flow);
            if self.flows.len() >= 2 * MOST_REMEMBERED {
                self.look.order.keep_first(&mut self.flows, MOST_REMEMBERED);
            }
        }
        self.draw();
    }
}

impl Look {
    /// Takes in keys as the terminal sends them.
    fn press(&mut self, keys: &[u8]) {
        let mut rest = keys;
        // Ends with the keys: each turn takes one at least.
        while let Some((key, after)) = rest.split_first() {
            rest = after;
            match (self.types, *key) {
                // An arrow or the like, which means nothing here.
                (_, ESCAPE) if after.first() == Some(&b'[') => {
                    let end = after.iter().skip(1).position(|byte| !byte.is_ascii_digit());
                    let passed = end.map_or(after.len(), |end| end + 2);
                    // Until the letter, or the tilde, that ends it.
                    rest = after.get(passed..).unwrap_or_default();
                }
                (true, ESCAPE) => {
                    self.text.clear();
                    self.types = false;
                }
                (true, key) if ENTER.contains(&key) => self.types = false,
                (true, key) if ERASE.contains(&key) => {
                    self.text.pop();
                }
                (true, key) if key.is_ascii_graphic() || key == b' ' => {
                    self.text.push(char::from(key));
                }
                (true, _) => {}
                (false, b'/') => {
                    self.text.clear();
                    self.types = true;
                }
                (false, b'r') => self.order = Order::Rate,
                (false, b'b') => self.order = Order::Bytes,
                (false, b't') => self.order = Order::Retransmissions,
                (false, b'p') => self.pauses = !self.pauses,
                (false, b'q') => self.ends = true,
                (false, _) => {}
            }
        }
    }
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Bytes => "bytes",
            Self::Retransmissions => "retransmissions",
        }
    }

    /// By what the flows are in order, and among those that are equal.
    fn weight(self, flow: &PassingFlow) -> [u64; 2] {
        let sum = |bytes: [u64; 2]| bytes.iter().sum();
        let (rate, bytes) = (sum(flow.recent_bytes), sum(flow.bytes));
        match self {
            Self::Rate => [rate, bytes],
            Self::Bytes => [bytes, rate],
            Self::Retransmissions => [flow.retransmissions, rate],
        }
    }

    /// Keeps so many flows, in order.
    fn keep_first(self, flows: &mut Vec<PassingFlow>, most: usize) {
        let weight = |flow: &PassingFlow| Reverse(self.weight(flow));
        if flows.len() > most {
            flows.select_nth_unstable_by_key(most, weight);
            flows.truncate(most);
        }
        flows.sort_by_key(weight);
    }
}

/// The picture, line by line.
fn lines(
    head: &str,
    look: &Look,
    flows: &mut Vec<PassingFlow>,
    interval: Duration,
    height: usize,
) -> Vec<String> {
    let all = flows.len();
    if !look.text.is_empty() {
        flows.retain(|flow| what(flow).contains(&look.text));
    }
    let (matching, room) = (flows.len(), height.saturating_sub(OTHER_LINES));
    look.order.keep_first(flows, room);
    let keys = match (look.types, look.text.as_str()) {
        (true, text) => format!("only flows with: {text}_   Enter: done   Esc: all"),
        (false, "") => format!(
            "r: rate  b: bytes  t: retransmissions  /: find  p: pause  q: end   by {}, {all} flows",
            look.order.name()
        ),
        (false, text) => format!(
            "r  b  t  p  q   /: find   by {}, {matching} of {all} flows with '{text}'",
            look.order.name()
        ),
    };
    let mut lines = vec![
        head.to_owned(),
        keys,
        format!(
            "{:>8} {:>8} {:>8} {:>8} {:>6}  flow",
            "→ bit/s", "← bit/s", "bytes", "RTT ms", "retr"
        ),
    ];
    let seconds = interval.as_secs_f64().max(f64::MIN_POSITIVE);
    for flow in flows {
        let rates = flow.recent_bytes;
        let [there, back] = rates.map(|bytes| si(bytes as f64 * 8.0 / seconds, ""));
        let is_tcp = flow.protocol == TCP;
        let of_tcp = |text: String| if is_tcp { text } else { String::new() };
        let rtt = flow.rtt_ns.map_or_else(String::new, |ns| {
            let ms = ns as f64 / 1e6;
            let digits = if ms < 9.95 { 2 } else { 0 };
            format!("{ms:.digits$}")
        });
        lines.push(format!(
            "{there:>8} {back:>8} {:>8} {:>8} {:>6}  {}",
            si(flow.bytes.iter().sum::<u64>() as f64, ""),
            of_tcp(rtt),
            of_tcp(flow.retransmissions.to_string()),
            what(flow)
        ));
    }
    lines
}

/// Numbers of protocols in IP (IANA).
const TCP: u8 = plumb_wire::ip::TCP;
const NAMES: [(u8, &str); 5] = [
    (1, "icmp"),
    (TCP, "tcp"),
    (17, "udp"),
    (58, "icmp6"),
    (132, "sctp"),
];

/// The flow itself: ends without ports where it has none.
fn what(flow: &PassingFlow) -> String {
    let known = NAMES.iter().find(|(number, _)| *number == flow.protocol);
    let protocol = known.map_or_else(
        || format!("ip {}", flow.protocol),
        |(_, name)| (*name).to_owned(),
    );
    let end = |end: SocketAddr| match end.port() {
        0 => end.ip().to_string(),
        _ => end.to_string(),
    };
    let [first, second] = flow.ends.map(end);
    format!("{protocol} {first} → {second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16, protocol: u8, recent: u64) -> PassingFlow {
        PassingFlow {
            protocol,
            ends: [
                SocketAddr::from(([192, 0, 2, 1], port)),
                SocketAddr::from(([198, 51, 100, 200], if port == 0 { 0 } else { 443 })),
            ],
            bytes: [recent * 3, 100_000],
            recent_bytes: [recent, 7],
            rtt_ns: Some(12_300_000),
            retransmissions: 60_000 - u64::from(port),
        }
    }

    fn drawn(look: &Look, size: (usize, usize)) -> Vec<String> {
        let mut flows = vec![
            flow(40_000, 6, 10),
            flow(50_000, 17, 125_000),
            flow(0, 1, 1),
        ];
        for port in 1..200 {
            flows.push(flow(port, 6, 2));
        }
        let (width, height) = size;
        fitted(lines("head", look, &mut flows, EVERY, height), width)
    }

    #[test]
    fn flows_are_in_the_order_that_is_asked_for_and_fit() {
        for size in [(80, 24), (40, 10), (200, 50), (0, 0)] {
            for (key, first) in [("r", "50000"), ("b", "50000"), ("t", "192.0.2.1 →")] {
                let mut look = Look::default();
                look.press(key.as_bytes());
                let lines = drawn(&look, size);
                let (width, height) = size;
                assert!(lines.len() <= height.max(OTHER_LINES), "{lines:?}");
                let longest = lines.iter().map(|line| line.chars().count()).max();
                assert!(longest < Some(width.max(1)), "{lines:?}");
                if width >= 80 {
                    let top = lines.get(OTHER_LINES).unwrap();
                    assert!(top.contains(first), "{key}: {top}");
                }
            }
        }
        let line = drawn(&Look::default(), (100, 24)).remove(OTHER_LINES);
        assert_eq!(
            line,
            "  1.00 M      56     475 k                  udp 192.0.2.1:50000 → 198.51.100.200:443"
        );
    }

    #[test]
    fn what_is_typed_chooses_flows() {
        let mut look = Look::default();
        look.press(b"/40000q\x1b[A\x7f\r");
        assert_eq!(
            (look.text.as_str(), look.types, look.ends),
            ("40000", false, false)
        );
        let lines = drawn(&look, (100, 24));
        assert_eq!(lines.len(), OTHER_LINES + 1, "{lines:?}");
        assert!(
            lines
                .get(1)
                .unwrap()
                .contains("1 of 202 flows with '40000'"),
            "{lines:?}"
        );
        look.press(b"/\x1b");
        assert_eq!(look.text, "");
        look.press(b"\x1b[5~pq");
        assert!(look.pauses && look.ends);
        look.press(b"/\x1b[");
    }
}
