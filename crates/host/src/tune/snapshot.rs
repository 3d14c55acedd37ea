//! What a host has at present, as far as a plan needs it: this host, or another whose settings were pasted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumb_model::results::host::{Interface, Qdisc};
use plumb_model::run::HostFacts;
use plumb_model::tune::Os;
use plumb_net::{file, route, sysctl};

use crate::facts::{Modules, Source, interface, machine, queues, sysctls};
use crate::knobs::Catalogue;
use crate::knobs::available::Available;

/// Congestion controls that the kernel has at hand.
pub const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// Congestion controls that a network namespace may choose.
pub const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";

/// What a host has: the part of what `plumb host` reads that a plan needs, or what was pasted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub os: Os,
    /// Release of the system.
    pub release: Option<String>,
    pub memory_bytes: Option<u64>,
    /// Size of its pages, in which the kernel counts some of what it allows.
    pub page_bytes: Option<u64>,
    /// Values by the names of the catalogue.
    pub values: BTreeMap<String, String>,
    /// The interface that leads to the path; for a pasted host, the interface in the text.
    pub interface: Option<Interface>,
    pub qdiscs: Vec<Qdisc>,
    /// Whether what belongs to the machine may be changed too.
    pub whole_machine: bool,
    /// What its kernel has or could load.
    pub modules: Modules,
    /// Where this is from, for people.
    pub from: String,
}

impl Snapshot {
    /// A host of which nothing is known but its system.
    pub fn unknown(os: Os) -> Self {
        Self {
            os,
            release: None,
            memory_bytes: None,
            page_bytes: None,
            values: BTreeMap::new(),
            interface: None,
            qdiscs: Vec::new(),
            whole_machine: true,
            modules: Modules::default(),
            from: format!("the defaults of {os}"),
        }
    }

    /// This host, in the network namespace of the calling thread. `towards` is an address on the path, for
    /// the interface.
    pub fn here(catalogue: &Catalogue, towards: Option<IpAddr>) -> Self {
        let source = &mut Source::system();
        let values = sysctls::sysctls(source, catalogue)
            .into_iter()
            .filter_map(|sysctl| Some((sysctl.key, sysctl.value?)))
            .collect();
        let machine = machine::machine(source);
        let hop = match towards {
            Some(towards) => route::next_hop(towards).ok().flatten(),
            None => {
                let defaults = route::default_routes().unwrap_or_default();
                defaults.into_iter().flatten().next()
            }
        };
        let index = hop.map(|hop| hop.interface);
        let interface = index.and_then(|index| interface::interfaces(source, Some(index)).pop());
        let mut qdiscs = queues::qdiscs(source);
        qdiscs.retain(|q| Some(&q.interface) == interface.as_ref().map(|i| &i.name));
        let release = sysctl::read("kernel.osrelease").ok();
        Self {
            os: Os::Linux,
            modules: Modules::here(source),
            release,
            memory_bytes: machine.memory_bytes,
            page_bytes: Some(file::page_bytes()),
            values,
            interface,
            qdiscs,
            whole_machine: machine.first_network_namespace,
            from: "this host".to_owned(),
        }
    }

    /// What a Run says of one of its ends.
    pub fn of_run(facts: &HostFacts, from: &str) -> Self {
        let (system, release) = facts.kernel.split_once(' ').unwrap_or((&facts.kernel, ""));
        let os = match system {
            "Darwin" => Os::Macos,
            "FreeBSD" => Os::Freebsd,
            "OpenBSD" => Os::Openbsd,
            "Windows" => Os::Windows,
            _ => Os::Linux,
        };
        let triple =
            |numbers: Option<[u64; 3]>| numbers.map(|n| n.map(|n| n.to_string()).join(" "));
        let told = [
            ("net.ipv4.tcp_rmem", triple(facts.tcp_rmem_bytes)),
            ("net.ipv4.tcp_wmem", triple(facts.tcp_wmem_bytes)),
            (
                "net.ipv4.tcp_congestion_control",
                facts.congestion_control.clone(),
            ),
            (
                AVAILABLE,
                (!facts.congestion_controls.is_empty())
                    .then(|| facts.congestion_controls.join(" ")),
            ),
            (
                "net.ipv4.tcp_window_scaling",
                facts.window_scaling.map(|on| u8::from(on).to_string()),
            ),
        ];
        Self {
            release: (!release.is_empty()).then(|| release.to_owned()),
            values: told
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)))
                .collect(),
            from: from.to_owned(),
            ..Self::unknown(os)
        }
    }

    /// A value by the name of the catalogue.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The outermost queueing discipline of the interface.
    pub fn root_qdisc(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|q| q.parent == "root")
    }

    /// Whether a congestion control could be chosen here: what is not loaded yet is, when it is chosen.
    pub fn congestion_control(&self, name: &str) -> Available {
        let among = |key: &str| {
            let listed = self.value(key)?.split_whitespace();
            Some(listed.into_iter().any(|cc| cc == name))
        };
        match (self.whole_machine, among(AVAILABLE), among(ALLOWED)) {
            (false, _, Some(true)) | (true, Some(true), _) => Available::Yes,
            (false, _, Some(false)) => Available::NotAllowed,
            (false, _, None) => Available::NotKnown,
            (true, ..) => Available::by_module(self.modules.has(&format!("tcp_{name}"))),
        }
    }

    /// Whether a queueing discipline could be chosen here.
    pub fn queue(&self, kind: &str) -> Available {
        Available::by_module(self.modules.has(&format!("sch_{kind}")))
    }
}
