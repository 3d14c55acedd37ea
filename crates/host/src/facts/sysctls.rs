//! Kernel variables that bear on the network.

use plumb_model::results::host::Sysctl;
use plumb_model::tune::{Kind, Os, Scope};

use super::Source;
use crate::knobs::{Catalogue, Knob};

/// What is read beside the knobs of the catalogue: states, not settings, or not for tuning.
const STATES: [&str; 7] = [
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.neigh.default.gc_thresh3",
    "net.netfilter.nf_conntrack_count",
];

/// The variables of the network namespace of the calling thread: every one of the catalogue that
/// this kernel has or should have, by name.
pub(crate) fn sysctls(source: &mut Source, catalogue: &Catalogue) -> Vec<Sysctl> {
    let release = source.optional("/proc/sys/kernel/osrelease");
    let mut all: Vec<Sysctl> = catalogue
        .of(Os::Linux)
        .filter(|knob| knob.kind == Kind::Sysctl)
        .filter_map(|knob| known(source, knob, release.as_deref()))
        .collect();
    all.extend(STATES.iter().map(|key| Sysctl {
        key: (*key).to_owned(),
        value: read(source, key),
        scope: match *key {
            "net.ipv6.conf.all.disable_ipv6" | "net.ipv6.conf.all.forwarding" => Scope::Namespace,
            _ => Scope::Machine,
        },
        never_because: None,
    }));
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

/// A knob as it stands; `None` where the kernel no longer has it, as it should not.
fn known(source: &mut Source, knob: &Knob, release: Option<&str>) -> Option<Sysctl> {
    let gone = knob.until.is_some() || knob.obsolete.is_some();
    if gone && !source.exists(&place(&knob.name)) {
        return None;
    }
    // One that only can be written has no value (net.ipv4.route.flush).
    let value = if gone {
        Some(words(&source.silent(&place(&knob.name))?))
    } else {
        read(source, &knob.name)
    };
    let never = value
        .as_deref()
        .and_then(|value| knob.never(value, release));
    Some(Sysctl {
        key: knob.name.clone(),
        scope: knob.scope,
        never_because: never.map(|never| never.because.clone()),
        value,
    })
}

fn read(source: &mut Source, key: &str) -> Option<String> {
    source.optional(&place(key)).map(|value| words(&value))
}

/// The kernel parts several numbers by tabs.
fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn place(key: &str) -> String {
    format!("/proc/sys/{}", key.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(root: &std::path::Path, key: &str, value: &str) {
        let file = root.join(place(key).trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, value).unwrap();
    }

    #[test]
    fn values_that_are_never_good_advice_are_marked() {
        let root = tempfile::tempdir().unwrap();
        file(root.path(), "net.ipv4.tcp_rmem", "4096\t131072\t6291456\n");
        file(root.path(), "net.ipv4.tcp_sack", "0\n");
        file(root.path(), "net.ipv4.tcp_timestamps", "1\n");
        let catalogue = Catalogue::built_in().unwrap();
        let all = sysctls(&mut Source::below(root.path()), &catalogue);
        let of = |key: &str| all.iter().find(|s| s.key == key);
        assert_eq!(
            of("net.ipv4.tcp_rmem").unwrap().value.as_deref(),
            Some("4096 131072 6291456")
        );
        assert!(of("net.ipv4.tcp_sack").unwrap().never_because.is_some());
        assert_eq!(of("net.ipv4.tcp_timestamps").unwrap().never_because, None);
        assert_eq!(of("net.ipv4.tcp_wmem").unwrap().value, None, "not there");
        assert!(of("net.ipv4.tcp_tw_recycle").is_none(), "no kernel has it");
        assert_eq!(of("vm.swappiness").unwrap().scope, Scope::Machine);
        assert_eq!(of("net.ipv4.tcp_sack").unwrap().scope, Scope::Namespace);
        assert!(all.windows(2).all(|pair| pair[0].key < pair[1].key));
    }
}
