//! Reading the settings of another machine as pasted: `sysctl -a` of Linux, macOS and the BSDs, Windows' `netsh
//! interface tcp show global` and `supplemental` and `Get-NetTCPSetting`, `ethtool`, `ethtool -k`, `-g` and `-c`,
//! Solaris' `ipadm show-prop`; also one after the other in one text.

use std::collections::BTreeMap;

use plumb_model::results::host::{Coalescing, Duplex, Interface, LinkMode, Offload};
use plumb_model::tune::Os;

use crate::knobs::formula::Formula;
use crate::knobs::{Catalogue, RangeError};
use crate::tune::snapshot::Snapshot;

/// More than any of these commands prints, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// What was pasted is not what can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasteError {
    /// No line of it is known.
    #[error(
        "it begins with '{begins}', which is no output of sysctl -a, netsh interface tcp show global, Get-NetTCPSetting, ethtool, ethtool -k, -g or -c, or ipadm show-prop: paste the whole output of one of them, in English (on a Windows of another language use Get-NetTCPSetting, which is the same in all)"
    )]
    WrongKind { begins: String },
    #[error("there is nothing in it: paste the output of sysctl -a, netsh, ethtool or ipadm")]
    Empty,
    #[error("it is larger than 4 MB, which no such output is")]
    TooLarge,
    /// Parts of several systems.
    #[error("one part of it is of {0}, another of {1}: paste what one machine says")]
    TwoSystems(Os, Os),
    /// A value that no such system has.
    #[error("{0}: paste the line as the machine says it")]
    Value(#[from] RangeError),
    /// Variables that several systems have.
    #[error("it does not say which system it is of: say so with --os")]
    WhichSystem,
    /// The system that it is of is not the one that was named.
    #[error(
        "it is of {found}, and --os says {asked}: leave --os out, or paste the other machine's"
    )]
    OtherSystem {
        /// What it is of.
        found: Os,
        asked: Os,
    },
}

/// Netsh's words for the knobs of the catalogue.
const NETSH: [(&str, &str); 8] = [
    ("receive window auto-tuning level", "autotuninglevel"),
    ("receive-side scaling state", "rss"),
    ("receive segment coalescing state", "rsc"),
    ("ecn capability", "ecncapability"),
    ("rfc 1323 timestamps", "timestamps"),
    ("chimney offload state", "chimney"),
    ("congestion control provider", "congestionprovider"),
    ("window scaling heuristics", "heuristics"),
];

/// `Get-NetTCPSetting`'s names, which are the same in every language, for the knobs of the catalogue.
const NET_TCP_SETTING: [(&str, &str); 5] = [
    ("autotuninglevellocal", "autotuninglevel"),
    ("congestionprovider", "congestionprovider"),
    ("ecncapability", "ecncapability"),
    ("timestamps", "timestamps"),
    ("scalingheuristics", "heuristics"),
];

/// The template of those settings that connections over long paths have.
const TEMPLATE: &str = "internet";

/// Offloads that `ethtool -k` has words of its own for, by the kernel's names. The first two of these words each cover
/// several offloads, which follow by name, indented.
const OFFLOADS: [(&str, &str); 6] = [
    ("tcp-segmentation-offload", "tx-tcp-segmentation"),
    ("scatter-gather", "tx-scatter-gather"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-checksumming", "rx-checksum"),
];

/// What is being read.
#[derive(Default)]
struct Read {
    values: BTreeMap<String, String>,
    interface: Option<Interface>,
    /// The systems that headings are of.
    systems: Vec<Os>,
    section: Section,
}

/// Under which heading a line stands.
#[derive(Default, Clone, Copy, PartialEq)]
enum Section {
    #[default]
    None,
    Netsh,
    /// Whether it is the template that is looked for.
    NetTcpSetting(bool),
    Link,
    Features,
    RingMost,
    RingNow,
    Coalescing,
    Ipadm,
}

/// Reads what was pasted. `asked` is the system that the user named.
///
/// # Errors
/// When it is of the wrong kind, of several machines, has values that cannot be, or does not name its system.
pub fn read(
    text: &str,
    asked: Option<Os>,
    from: &str,
    catalogue: &Catalogue,
) -> Result<Snapshot, PasteError> {
    if text.len() > MOST_BYTES {
        return Err(PasteError::TooLarge);
    }
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .ok_or(PasteError::Empty)?;
    let mut read = Read::default();
    for line in text.lines() {
        read.line(line.trim_end());
    }
    if read.values.is_empty() && read.interface.is_none() {
        return Err(PasteError::WrongKind {
            begins: first.chars().take(60).collect(),
        });
    }
    let mut systems = read.systems.iter().copied().chain(read.system());
    let found = systems.next();
    if let Some((first, other)) = found.and_then(|os| Some((os, systems.find(|s| *s != os)?))) {
        return Err(PasteError::TwoSystems(first, other));
    }
    let os = match (found, asked) {
        (Some(found), Some(asked)) if found != asked => {
            return Err(PasteError::OtherSystem { found, asked });
        }
        (Some(os), _) | (None, Some(os)) => os,
        (None, None) => return Err(PasteError::WhichSystem),
    };
    // What the plan reckons with; of the rest nothing depends on it.
    let reckoned = |name: &str| {
        let knob = catalogue.find(os, name);
        knob.filter(|knob| knob.value != Formula::Leave)
    };
    for (name, value) in &read.values {
        if let Some(knob) = reckoned(name) {
            knob.check(value)?;
        }
    }
    let number = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| read.values.get(*key)?.parse::<u64>().ok())
    };
    Ok(Snapshot {
        release: read.values.get("kernel.osrelease").cloned(),
        memory_bytes: number(&["hw.memsize", "hw.physmem", "hw.physmem64"]),
        interface: read.interface,
        from: from.to_owned(),
        values: read.values,
        ..Snapshot::unknown(os)
    })
}

impl Read {
    fn line(&mut self, line: &str) {
        let lower = line.trim().to_ascii_lowercase();
        if self.heading(line, &lower) {
            return;
        }
        match self.section {
            Section::Netsh => self.netsh(&lower),
            Section::NetTcpSetting(ours) => self.net_tcp_setting(&lower, ours),
            Section::Link => self.link(&lower),
            Section::Features => self.feature(&lower),
            Section::RingMost | Section::RingNow => self.ring(&lower),
            Section::Coalescing => self.coalescing(&lower),
            Section::Ipadm => self.property(line),
            Section::None => {}
        }
        self.variable(line);
    }

    /// Whether a line begins a part of its own.
    fn heading(&mut self, line: &str, lower: &str) -> bool {
        let device = |prefix: &str| {
            let name = line
                .trim()
                .get(prefix.len()..)?
                .trim()
                .trim_end_matches(':');
            (!name.is_empty() && !name.contains(char::is_whitespace)).then(|| name.to_owned())
        };
        for (prefix, section) in [
            ("features for ", Section::Features),
            ("ring parameters for ", Section::None),
            ("coalesce parameters for ", Section::Coalescing),
            ("settings for ", Section::Link),
        ] {
            if lower.starts_with(prefix)
                && let Some(name) = device(prefix)
            {
                self.interface.get_or_insert_with(Interface::default).name = name;
                self.systems.push(Os::Linux);
                self.section = section;
                return true;
            }
        }
        let section = if lower.starts_with("pre-set maximums") {
            Section::RingMost
        } else if lower.starts_with("current hardware settings") {
            Section::RingNow
        } else if lower.starts_with("tcp global parameters")
            || lower.starts_with("tcp supplemental parameters")
            || lower.starts_with("the tcp global default template")
            || lower.starts_with("tcp window scaling heuristics parameters")
        {
            self.systems.push(Os::Windows);
            Section::Netsh
        } else if let Some(template) = lower
            .strip_prefix("settingname")
            .and_then(|rest| rest.trim_start().strip_prefix(':'))
        {
            self.systems.push(Os::Windows);
            Section::NetTcpSetting(template.trim() == TEMPLATE)
        } else if lower.starts_with("proto ") && lower.contains("property") {
            self.systems.push(Os::Solaris);
            Section::Ipadm
        } else {
            return false;
        };
        self.section = section;
        true
    }

    fn netsh(&mut self, lower: &str) {
        if let Some((what, value)) = lower.split_once(':')
            && let Some((_, name)) = NETSH.iter().find(|(words, _)| what.trim().ends_with(words))
        {
            let value = value.trim();
            if !value.is_empty() {
                self.values.insert((*name).to_owned(), value.to_owned());
            }
        }
    }

    /// `AutoTuningLevelLocal            : Normal`.
    fn net_tcp_setting(&mut self, lower: &str, ours: bool) {
        if let Some((what, value)) = lower.split_once(':')
            && let Some((_, name)) = NET_TCP_SETTING
                .iter()
                .find(|(word, _)| *word == what.trim())
            && ours
            && !value.trim().is_empty()
        {
            self.values
                .insert((*name).to_owned(), value.trim().to_owned());
        }
    }

    /// `Speed: 1000Mb/s`, `Duplex: Full`, `Auto-negotiation: on`, as ethtool(8) has them.
    fn link(&mut self, lower: &str) {
        let (Some((name, value)), Some(interface)) = (lower.split_once(':'), &mut self.interface)
        else {
            return;
        };
        let value = value.trim();
        let link = interface.link.get_or_insert_with(LinkMode::default);
        match name.trim() {
            "speed" => {
                let mbit: Option<u32> = value.strip_suffix("mb/s").and_then(|n| n.parse().ok());
                link.speed_bps = mbit.map(|mbit| f64::from(mbit) * 1e6);
            }
            "duplex" => {
                link.duplex = match value {
                    "half" => Some(Duplex::Half),
                    "full" => Some(Duplex::Full),
                    _ => None,
                };
            }
            "auto-negotiation" => link.autonegotiation = Some(value == "on"),
            _ => {}
        }
    }

    fn feature(&mut self, lower: &str) {
        if let Some((name, state)) = lower.split_once(':')
            && let Some(interface) = &mut self.interface
        {
            let on = match state.split_whitespace().next() {
                Some("on") => true,
                Some("off") => false,
                _ => return,
            };
            let known = OFFLOADS.iter().find(|(word, _)| *word == name.trim());
            let name = known.map_or(name.trim(), |(_, kernels)| kernels);
            // The name by itself, which comes later, is the more exact one.
            interface.offloads.retain(|offload| offload.name != name);
            interface.offloads.push(Offload {
                name: name.to_owned(),
                on,
                fixed: state.contains("[fixed]"),
            });
        }
    }

    fn ring(&mut self, lower: &str) {
        let (Some(count), Some(interface)) = (
            lower
                .strip_prefix("rx:")
                .and_then(|n| n.trim().parse().ok()),
            &mut self.interface,
        ) else {
            return;
        };
        let rings = interface.rings.get_or_insert_default();
        if self.section == Section::RingMost {
            rings.receive_max_packets = count;
        } else {
            rings.receive_packets = count;
        }
    }

    /// `Adaptive RX: off  TX: n/a`, `rx-usecs: 3`, `rx-frames: n/a`.
    fn coalescing(&mut self, lower: &str) {
        let (Some((name, value)), Some(interface)) = (lower.split_once(':'), &mut self.interface)
        else {
            return;
        };
        let value = value.split_whitespace().next().unwrap_or_default();
        let coalescing = interface.coalescing.get_or_insert_with(Coalescing::default);
        match name.trim() {
            "adaptive rx" => {
                coalescing.adaptive_receive = value == "on";
                coalescing.adaptive_receive_possible = Some(value != "n/a");
            }
            "rx-usecs" => {
                coalescing.receive_s = value.parse::<u32>().map_or(0.0, |us| f64::from(us) / 1e6);
            }
            "rx-frames" => coalescing.receive_packets = value.parse().unwrap_or_default(),
            _ => {}
        }
    }

    /// `tcp   max_buf   rw   1048576   --   1048576   128000-1073741824`.
    fn property(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        if let ["tcp", name, _, value, ..] = words.as_slice() {
            self.values.insert((*name).to_owned(), (*value).to_owned());
        }
    }

    /// `net.ipv4.tcp_sack = 1`, `net.inet.tcp.sack: 1`, `net.inet.tcp.sack=1`.
    fn variable(&mut self, line: &str) {
        let split = line
            .split_once('=')
            .or_else(|| line.split_once(':'))
            .map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = split else { return };
        let named = ["net.", "kern.", "kernel.", "vm.", "fs.", "hw."]
            .iter()
            .any(|prefix| key.starts_with(prefix));
        if named && !key.contains(char::is_whitespace) {
            // Tabs between numbers, as sysctl(8) passes them on.
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            self.values.insert(key.to_owned(), value);
        }
    }

    /// The systems, by what only each has.
    fn system(&self) -> Vec<Os> {
        let has = |key: &str| self.values.contains_key(key);
        let mut found = Vec::new();
        let only_linux =
            |key: &String| key.starts_with("net.ipv4.") || key.starts_with("net.core.");
        if self.values.keys().any(only_linux) {
            found.push(Os::Linux);
        }
        match self.values.get("kern.ostype").map(String::as_str) {
            Some("Darwin") => found.push(Os::Macos),
            Some("FreeBSD") => found.push(Os::Freebsd),
            Some("OpenBSD") => found.push(Os::Openbsd),
            Some("NetBSD") => found.push(Os::Netbsd),
            _ if has("net.inet.tcp.autorcvbufmax") || has("net.inet.tcp.autosndbufmax") => {
                found.push(Os::Macos);
            }
            _ if has("net.inet.tcp.cc.algorithm") || has("net.inet.tcp.recvbuf_auto") => {
                found.push(Os::Freebsd);
            }
            _ if has("kern.sbmax") => found.push(Os::Netbsd),
            _ => {}
        }
        // OpenBSD has names like these, too.
        let linux = |key: &String| key.starts_with("kernel.") || key.starts_with("fs.");
        if found.is_empty() && self.values.keys().any(linux) {
            found.push(Os::Linux);
        }
        found
    }
}

#[cfg(test)]
mod tests;
