//! Reading what somebody pasted from another machine: `sysctl -a` of Linux, macOS and the BSDs, Windows'
//! `netsh interface tcp show global` and `supplemental`, `ethtool`, `ethtool -k`, `-g` and `-c`, Solaris'
//! `ipadm show-prop`; also one after the other in one text.

use std::collections::BTreeMap;

use plumb_model::results::host::{Coalescing, Interface, Offload};
use plumb_model::tune::Os;

use crate::tune::snapshot::Snapshot;

/// More than any of these commands prints, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// What was pasted is not what can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasteError {
    /// No line of it is known.
    #[error(
        "it begins with '{begins}', which is no output of sysctl -a, netsh interface tcp show global, ethtool, ethtool -k, -g or -c, or ipadm show-prop: paste the whole output of one of them"
    )]
    WrongKind {
        /// Its first line.
        begins: String,
    },
    /// Nothing.
    #[error("there is nothing in it: paste the output of sysctl -a, netsh, ethtool or ipadm")]
    Empty,
    /// Too much.
    #[error("it is larger than 4 MB, which no such output is")]
    TooLarge,
    /// Variables that several systems have.
    #[error("it does not tell which system it is of: say so with --os")]
    WhichSystem,
    /// The system that it is of is not the one that was named.
    #[error(
        "it is of {found}, and --os says {asked}: leave --os out, or paste the other machine's"
    )]
    OtherSystem {
        /// What it is of.
        found: Os,
        /// What was named.
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

/// Offloads that `ethtool -k` has words of its own for, by the kernel's names. The first two of these words stand
/// for several; what follows them, indented, names each.
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
    os: Option<Os>,
    section: Section,
}

/// Under which heading a line stands.
#[derive(Default, Clone, Copy, PartialEq)]
enum Section {
    #[default]
    None,
    Netsh,
    Features,
    RingMost,
    RingNow,
    Coalescing,
    Ipadm,
}

/// Reads what was pasted. `asked` is the system that the user named.
///
/// # Errors
/// When it is of the wrong kind, or does not tell its system.
pub fn read(text: &str, asked: Option<Os>, from: &str) -> Result<Snapshot, PasteError> {
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
    let os = match (read.os.or_else(|| read.system()), asked) {
        (Some(found), Some(asked)) if found != asked => {
            return Err(PasteError::OtherSystem { found, asked });
        }
        (Some(os), _) | (None, Some(os)) => os,
        (None, None) => return Err(PasteError::WhichSystem),
    };
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
            ("settings for ", Section::None),
        ] {
            if lower.starts_with(prefix)
                && let Some(name) = device(prefix)
            {
                self.interface.get_or_insert_with(Interface::default).name = name;
                self.os = Some(Os::Linux);
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
            self.os = Some(Os::Windows);
            Section::Netsh
        } else if lower.starts_with("proto ") && lower.contains("property") {
            self.os = Some(Os::Solaris);
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

    /// The system, by what only it has.
    fn system(&self) -> Option<Os> {
        let has = |key: &str| self.values.contains_key(key);
        match self.values.get("kern.ostype").map(String::as_str) {
            Some("Darwin") => return Some(Os::Macos),
            Some("FreeBSD") => return Some(Os::Freebsd),
            Some("OpenBSD") => return Some(Os::Openbsd),
            Some("NetBSD") => return Some(Os::Netbsd),
            _ => {}
        }
        let linux = |key: &String| {
            ["net.ipv4.", "net.core.", "kernel.", "fs."]
                .iter()
                .any(|prefix| key.starts_with(prefix))
        };
        if self.values.keys().any(linux) {
            Some(Os::Linux)
        } else if has("net.inet.tcp.autorcvbufmax") || has("net.inet.tcp.autosndbufmax") {
            Some(Os::Macos)
        } else if has("net.inet.tcp.cc.algorithm") || has("net.inet.tcp.recvbuf_auto") {
            Some(Os::Freebsd)
        } else if has("kern.sbmax") {
            Some(Os::Netbsd)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_systems_words() {
        let linux =
            "kernel.osrelease = 6.1.0-18-amd64\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n";
        let read_as = |text| read(text, None, "a file");
        let host = read_as(linux).unwrap();
        assert_eq!(host.os, Os::Linux);
        assert_eq!(host.release.as_deref(), Some("6.1.0-18-amd64"));
        assert_eq!(host.value("net.ipv4.tcp_rmem"), Some("4096 131072 6291456"));

        let mac =
            "kern.ostype: Darwin\nhw.memsize: 17179869184\nnet.inet.tcp.autorcvbufmax: 4194304\n";
        let host = read_as(mac).unwrap();
        assert_eq!((host.os, host.memory_bytes), (Os::Macos, Some(16 << 30)));

        let open = "kern.ostype=OpenBSD\nnet.inet.tcp.sack=1\n";
        assert_eq!(read_as(open).unwrap().value("net.inet.tcp.sack"), Some("1"));
        assert_eq!(
            read_as("net.inet.tcp.sack=1\n"),
            Err(PasteError::WhichSystem)
        );

        let solaris = "PROTO PROPERTY     PERM CURRENT  PERSISTENT DEFAULT  POSSIBLE\ntcp   max_buf      rw   1048576  --  1048576  128000-1073741824\n";
        let host = read_as(solaris).unwrap();
        assert_eq!(
            (host.os, host.value("max_buf")),
            (Os::Solaris, Some("1048576"))
        );
    }

    #[test]
    fn netsh() {
        let text = "Querying active state...\r\n\r\nTCP Global Parameters\r\n----------------------------------------------\r\nReceive-Side Scaling State          : enabled\r\nReceive Window Auto-Tuning Level    : restricted\r\nAdd-On Congestion Control Provider  : default\r\nECN Capability                      : disabled\r\nRFC 1323 Timestamps                 : allowed\r\n";
        let host = read(text, None, "a file").unwrap();
        assert_eq!(host.os, Os::Windows);
        assert_eq!(host.value("autotuninglevel"), Some("restricted"));
        assert_eq!(host.value("timestamps"), Some("allowed"));
    }

    #[test]
    fn ethtool() {
        let text = "Features for eth0:\nrx-checksumming: on\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: off [fixed]\ngeneric-receive-offload: off\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\nTX:\t\t256\nCoalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nstats-block-usecs: n/a\nrx-usecs: 50\nrx-frames: 4\n";
        let host = read(text, None, "a file").unwrap();
        let interface = host.interface.unwrap();
        assert_eq!(interface.name, "eth0");
        let rings = interface.rings.unwrap();
        assert_eq!(
            (rings.receive_packets, rings.receive_max_packets),
            (256, 4096)
        );
        let tso = interface.offload("tx-tcp-segmentation").unwrap();
        assert!(!tso.on && tso.fixed);
        let gro = interface.offload("rx-gro").unwrap();
        assert!(!gro.on && !gro.fixed);
        let coalescing = interface.coalescing.unwrap();
        assert_eq!(
            (coalescing.receive_s, coalescing.receive_packets),
            (50e-6, 4)
        );
        assert_eq!(coalescing.adaptive_receive_possible, Some(true));
    }

    #[test]
    fn the_wrong_kind_is_told_apart() {
        let error = |text| read(text, None, "a file").unwrap_err();
        assert!(
            matches!(error("total 8\ndrwxr-xr-x 2 root"), PasteError::WrongKind { begins } if begins == "total 8")
        );
        assert_eq!(error(" \n\n"), PasteError::Empty);
        assert_eq!(
            read("net.ipv4.tcp_sack = 1", Some(Os::Macos), "x"),
            Err(PasteError::OtherSystem {
                found: Os::Linux,
                asked: Os::Macos
            })
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC|\n|:|=|RX:|rx-usecs: |Features for |Coalesce parameters for |net\\.){0,200}") {
            let _ = read(&text, None, "x");
        }

        #[test]
        fn a_variable_survives(key in "net\\.ipv4\\.[a-z_]{1,20}", value in "[0-9]{1,9}( [0-9]{1,9}){0,2}") {
            for sign in [" = ", ": ", "="] {
                let host = read(&format!("{key}{sign}{value}\n"), None, "x").unwrap();
                prop_assert_eq!(host.value(&key), Some(value.as_str()));
            }
        }
    }
}
