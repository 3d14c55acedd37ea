//! A laboratory that exists: nodes, links and the drivers that carry packets between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_link::chain;
use plumb_model::run::{LabBackend, LabChange, LabClock, LabMark};
use plumb_net::namespace::Namespaces;
use plumb_net::netlink::Netlink;
use plumb_net::packet_capture::Cable;
use plumb_net::sysctl;
use plumb_net::tun::{Entrance, Tun};
use plumb_net::{clock, file};

use crate::disturbance::{Counted, Disturbance};
use crate::driver::{Contention, Driver};
use crate::driver_counters::{Counters, DriverCounters};
use crate::epoch::Epoch;
use crate::error::LabError;
use crate::graph;
use crate::kernel;
use crate::layout;
use crate::nearest::known;
use crate::network::{self, Network, Nodes};
use crate::node;
use crate::observe::Tap;
use crate::scenario::{LinkEnd, LinkSpec, Scenario, contradictions};
use crate::starvation::{Naps, Watch};
use crate::stats::{self, CellSettings, DriverStats, LabStats, WayStats};
use crate::stolen::ProcessorTime;
use plumb_model::direction::OneDirection;

/// Said when SCHED_FIFO was refused.
const ORDINARY_PRIORITY: &str = "links are carried at ordinary priority, so packets may be late when the machine is busy: real-time priority takes root outside any user namespace";

/// Notes that are kept: every Run carries them.
const MOST_NOTES: usize = 100;

/// How long nothing may enter a link, with nothing inside any, for the links to be still. A packet
/// takes some 20 µs from one link's device to the next's, and a driver that waits for a busy
/// processor some milliseconds.
const STILL: Duration = Duration::from_millis(20);

/// How long a laboratory whose program has ended waits for that at most: longer than a round trip
/// by a geostationary satellite, and no nuisance where a service sends for ever.
const SETTLES_IN: Duration = Duration::from_secs(1);

/// A running laboratory. The drivers stop when it is dropped.
pub struct Instance {
    scenario: Scenario,
    /// Its links as they are now, after every change.
    pub(crate) links: Mutex<Links>,
    pub(crate) epoch: Epoch,
    started_unix_ns: u64,
    nodes: Nodes,
    carriers: Vec<Carrier>,
    /// Where plumb carries links.
    ends: Option<Watch>,
    /// What the processors had done when it began.
    processors: ProcessorTime,
    network: Network,
    backend: LabBackend,
    notes: Mutex<Vec<String>>,
}

/// The links of a laboratory as they are now.
pub(crate) struct Links {
    /// What is written of them.
    pub(crate) specs: Vec<LinkSpec>,
    /// How they came to be so.
    pub(crate) changes: Vec<LabChange>,
}

/// One direction of an emulated link.
pub(crate) struct Carrier {
    end: LinkEnd,
    /// The node at whose device packets enter.
    sender: String,
    pub(crate) driver: Driver,
}

/// What a laboratory holds open of every node (its namespaces and a listener), of every emulated link (at
/// each end a device, an entrance, an event and a timer), and besides: conversations, captures, services.
const OF_NODE: usize = 4;
const OF_LINK: usize = 8;
const BESIDES: usize = 400;

fn allow_descriptors(scenario: &Scenario) -> Result<(), LabError> {
    let links = scenario.links.iter().filter(|link| link.is_emulated());
    let (nodes, links) = (scenario.nodes.len() + scenario.lans.len(), links.count());
    let count = nodes * OF_NODE + links * OF_LINK + BESIDES;
    file::allow_descriptors(count as u64).map_err(|e| {
        LabError::Control(format!(
            "{nodes} nodes and lans and {links} emulated links need {count} open files at once, and this user may not have so many ({e}): raise the limit (ulimit -n)"
        ))
    })
}

impl Instance {
    /// Builds the network of a scenario and starts carrying packets.
    ///
    /// # Errors
    /// When the kernel refuses a part of it.
    pub fn build(mut scenario: Scenario, backend: LabBackend) -> Result<Self, LabError> {
        if backend == LabBackend::Kernel {
            // Before anything is made: not every chain can be the kernel's.
            kernel::links::render(&scenario)?;
        }
        allow_descriptors(&scenario)?;
        let mut notes = Vec::new();
        let no_ipv6 = sysctl::read("net.ipv6.conf.all.disable_ipv6").is_err_and(|e| e.is_absent());
        if no_ipv6 && std::mem::replace(&mut scenario.ipv6, false) {
            notes.push("this kernel has no IPv6, and so has the lab".to_owned());
        }
        notes.extend(contradictions::doubts(&scenario));
        let mut plan =
            layout::plan(&scenario).map_err(|problem| LabError::Control(problem.to_string()))?;
        if backend == LabBackend::Kernel {
            // netem and tbf would count a large segment as one packet.
            let interfaces = plan.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
            interfaces.for_each(|interface| interface.single_segments = true);
        }
        let mut nodes = BTreeMap::new();
        for (number, spec) in scenario.nodes.iter().enumerate() {
            let hash_seed = chain_seed(scenario.seed, number, OneDirection::Up) as u32;
            let (namespaces, said) = node::create(spec, &plan.hosts, scenario.ipv6, hash_seed)?;
            // What holds for one node holds for the others; it is said once.
            for note in said {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            nodes.insert(spec.name.clone(), Arc::new(namespaces));
        }
        let mut instance = Self {
            epoch: Epoch::start(),
            started_unix_ns: clock::realtime_ns(),
            nodes,
            carriers: Vec::new(),
            ends: None,
            processors: ProcessorTime::now(),
            network: Network::default(),
            backend,
            notes: Mutex::new(notes),
            links: Mutex::new(Links {
                specs: scenario.links.clone(),
                changes: Vec::new(),
            }),
            scenario,
        };
        instance.join_nodes()?;
        // Where time is virtual nothing waits for a processor.
        if !instance.carriers.is_empty() && !clock::is_virtual() {
            instance.ends = Some(Watch::start()?);
        }
        instance.network =
            Network::configure(&instance.scenario, &plan, &instance.nodes, instance.epoch)?;
        if backend == LabBackend::Kernel {
            for note in kernel::links::install(&instance.scenario, &instance.nodes)? {
                instance.note(note);
            }
        }
        Ok(instance)
    }

    /// Adds to what must be known to read the numbers; once, however often it happens, and the first
    /// [`MOST_NOTES`].
    pub(crate) fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < MOST_NOTES && !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// What must be known to read the numbers.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = [notes.clone(), self.network.notes()].concat();
        let ordinary = |carrier: &Carrier| carrier.driver.with(|carried| !carried.realtime);
        if self.carriers.iter().any(ordinary) {
            notes.push(ORDINARY_PRIORITY.to_owned());
        }
        notes
    }

    /// How long it has run.
    pub(crate) fn duration_s(&self) -> f64 {
        self.epoch.now().as_secs_f64()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Namespaces>> {
        self.nodes.values()
    }

    fn join_nodes(&mut self) -> Result<(), LabError> {
        let contention = Contention::new();
        for (number, link) in self.scenario.links.iter().enumerate() {
            let [first, second] = &link.between;
            let (first_node, second_node) = (self.namespaces(first)?, self.namespaces(second)?);
            if !link.is_emulated() || self.backend == LabBackend::Kernel {
                first_node.in_network(|| {
                    use std::os::fd::AsFd;
                    let other = second_node.net().as_fd();
                    Netlink::open()?.add_veth(&link.name, &link.name, other)?;
                    Ok::<_, LabError>(())
                })?;
                continue;
            }
            let device = |node: &Namespaces| {
                let made = node.in_network(|| {
                    let tun = Arc::new(Tun::create(&link.name)?);
                    Ok((tun, Entrance::open(&link.name)?))
                });
                made.map_err(LabError::Tun)
            };
            let (first_device, second_device) = (device(first_node)?, device(second_node)?);
            let seeds = [OneDirection::Up, OneDirection::Down]
                .map(|way| chain_seed(self.scenario.seed, number, way));
            let [first_end, second_end] = graph::ends(number);
            let up = link.up.with_addresses(&first_end, &second_end);
            let down = link.down.with_addresses(&first_end, &first_end);
            let [up, down] = chain::build_link(&up, &down, seeds)
                .map_err(|e| LabError::Control(e.to_string()))?;
            let [first_tun, second_tun] =
                [&first_device, &second_device].map(|(tun, _)| Arc::clone(tun));
            for (way, chain, sender, from, to) in [
                (OneDirection::Up, up, first, first_device, second_tun),
                (OneDirection::Down, down, second, second_device, first_tun),
            ] {
                let driver = Driver::start(
                    &format!("{}.{}", link.name, way.name()),
                    self.epoch,
                    &contention,
                    chain,
                    from,
                    to,
                )?;
                self.carriers.push(Carrier {
                    end: LinkEnd {
                        link: link.name.clone(),
                        way,
                    },
                    sender: sender.clone(),
                    driver,
                });
            }
        }
        Ok(())
    }

    /// The scenario that it was built from.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The node in which commands run unless another is named.
    pub fn first_node(&self) -> &str {
        self.scenario.nodes.first().map_or("", |n| &n.name)
    }

    /// The namespaces of a node.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn namespaces(&self, node: &str) -> Result<&Arc<Namespaces>, LabError> {
        network::node(&self.nodes, node)
    }

    /// Whether something in `node` accepts connections on a TCP port.
    pub(crate) fn listens(&self, node: &str, port: u16) -> Result<bool, LabError> {
        self.namespaces(node)?.in_network(|| {
            // A table look-up, and not a connection that the service would have to serve.
            let listening = format!(":{port:04X} ");
            let has = |path: &str| -> Result<bool, LabError> {
                let table = std::fs::read_to_string(Path::new("/proc/thread-self/net").join(path))?;
                // Columns: number, local address, remote address, state; 0A is LISTEN.
                Ok(table.lines().any(|line| {
                    let mut columns = line.split_whitespace().skip(1);
                    let local = columns.next().unwrap_or_default();
                    format!("{local} ").ends_with(&listening) && columns.nth(1) == Some("0A")
                }))
            };
            Ok(has("tcp")? || has("tcp6").unwrap_or(false))
        })
    }

    /// CLOCK_REALTIME, in nanoseconds, when the laboratory's clock was at zero.
    pub(crate) fn started_unix_ns(&self) -> u64 {
        self.started_unix_ns
    }

    /// The directions of its emulated links.
    ///
    /// # Errors
    /// When the kernel carries them.
    pub(crate) fn directions(&self) -> Result<impl Iterator<Item = &LinkEnd>, LabError> {
        self.need_own_links()?;
        Ok(self.carriers.iter().map(|carrier| &carrier.end))
    }

    /// Only plumb's own links can be looked at and changed.
    fn need_own_links(&self) -> Result<(), LabError> {
        match self.backend {
            LabBackend::Emulated => Ok(()),
            LabBackend::Kernel => Err(LabError::Control(
                "with --backend kernel the links are the kernel's: look at them and change them with tc on the node that sends".to_owned(),
            )),
        }
    }

    /// Adds an observer to a direction from now on.
    pub(crate) fn add_tap(&self, end: &LinkEnd, tap: Tap) -> Result<(), LabError> {
        self.carrier(end)?
            .driver
            .with(|carried| carried.add_tap(tap));
        Ok(())
    }

    /// Removes the observers of all directions.
    pub(crate) fn end_taps(&self) {
        for carrier in &self.carriers {
            carrier.driver.with(|carried| carried.end_taps());
        }
    }

    /// What passes `node`'s interface to a link or lan that the kernel carries; `None` where plumb
    /// carries it.
    pub(crate) fn cable(&self, link: &str, node: &str) -> Result<Option<Cable>, LabError> {
        if self.carriers.iter().any(|carrier| carrier.end.link == link) {
            return Ok(None);
        }
        let Scenario { links, lans, .. } = &self.scenario;
        let of_links = links.iter().map(|link| (&link.name, &link.between[..]));
        let of_lans = lans.iter().map(|lan| (&lan.name, &lan.nodes[..]));
        let all: Vec<_> = of_links.chain(of_lans).collect();
        let Some((_, ends)) = all.iter().find(|(name, _)| *name == link) else {
            let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            return Err(LabError::Control(format!(
                "there is no link or lan '{link}': {}",
                known(link, &names, "links and lans")
            )));
        };
        if !ends.iter().any(|end| end == node) {
            let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
            return Err(LabError::no_end(link, node, &ends));
        }
        let open = || Ok(Cable::open(link)?);
        self.namespaces(node)?.in_network(open).map(Some)
    }

    /// The nodes at the ends of an emulated link: `up` leads from the first to the second.
    pub(crate) fn ends(&self, link: &str) -> Result<[&str; 2], LabError> {
        let sender = |way| {
            let link = link.to_owned();
            let carrier = self.carrier(&LinkEnd { link, way })?;
            Ok::<_, LabError>(carrier.sender.as_str())
        };
        Ok([sender(OneDirection::Up)?, sender(OneDirection::Down)?])
    }

    pub(crate) fn carrier(&self, end: &LinkEnd) -> Result<&Carrier, LabError> {
        self.need_own_links()?;
        self.carriers.iter().find(|c| c.end == *end).ok_or_else(|| {
            let Scenario { links, lans, .. } = &self.scenario;
            let plain = links.iter().any(|link| link.name == end.link);
            if plain {
                return LabError::Control(format!(
                    "plumb does not carry the link '{}', a plain cable, which has no cells and no log: give it emulated = true in the scenario",
                    end.link
                ));
            }
            if lans.iter().any(|lan| lan.name == end.link) {
                return LabError::Control(format!(
                    "plumb does not carry the lan '{}', which has no cells and no log: put a link with emulated = true between its machines and the rest",
                    end.link
                ));
            }
            let links: Vec<&str> = self
                .carriers
                .iter()
                .filter(|c| c.end.way == OneDirection::Up)
                .map(|c| c.end.link.as_str())
                .collect();
            LabError::Control(format!(
                "there is no emulated link '{}': {}",
                end.link,
                known(&end.link, &links, "emulated links")
            ))
        })
    }

    /// Waits until the links are still, or [`SETTLES_IN`] has passed: what a program sent last is
    /// still on its way when it has ended, and one link has counted it and the next has not.
    pub(crate) fn settle(&self) {
        let give_up = Instant::now() + SETTLES_IN;
        let mut before = None;
        while Instant::now() < give_up {
            let now = self.carriers.iter().fold((0, 0), |(offered, inside), c| {
                let stats = c.driver.with(|on| on.chain.stats(self.epoch.now()));
                (
                    offered + stats.offered.packets,
                    inside + stats.backlog.packets,
                )
            });
            if now.1 == 0 && before == Some(now) {
                return;
            }
            before = Some(now);
            thread::sleep(STILL);
        }
    }

    /// What the links did until now.
    pub fn stats(&self) -> LabStats {
        let mut links: BTreeMap<String, BTreeMap<OneDirection, WayStats>> = BTreeMap::new();
        for carrier in &self.carriers {
            let driver = self.reading(carrier).since(None);
            let settings = self.settings(&carrier.end);
            let way = carrier.driver.with(|carried| WayStats {
                settings,
                chain: carried.chain.stats(self.epoch.now()),
                driver,
                probes: carried.chain.probes().records().copied().collect(),
            });
            links
                .entry(carrier.end.link.clone())
                .or_default()
                .insert(carrier.end.way, way);
        }
        let mut notes = self.notes();
        let kernel = match self.backend {
            LabBackend::Emulated => BTreeMap::new(),
            LabBackend::Kernel => kernel::links::stats(&self.scenario, &self.nodes, &mut notes),
        };
        LabStats {
            schema: stats::SCHEMA.to_owned(),
            scenario: self.scenario.name.clone(),
            seed: self.scenario.seed,
            drawn: self.scenario.drawn.clone(),
            changes: self.changes(),
            started_unix_ns: self.started_unix_ns,
            duration_s: self.duration_s(),
            links,
            kernel,
            starved_ratio: self.naps().late_ratio_since(Naps::default()),
            stolen_ratio: ProcessorTime::now().stolen_ratio_since(self.processors),
            notes,
        }
    }

    /// What was changed since it began.
    fn changes(&self) -> Vec<LabChange> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.changes.clone()
    }

    /// The cells of a direction as they are now.
    fn settings(&self, end: &LinkEnd) -> Vec<CellSettings> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let link = links.specs.iter().find(|link| link.name == end.link);
        link.map(|link| CellSettings::of(link.chain(end.way)))
            .unwrap_or_default()
    }

    /// What the counters say now.
    pub(crate) fn readings(&self) -> Counters {
        Counters {
            drivers: self.carriers.iter().map(|c| self.reading(c)).collect(),
            naps: self.naps(),
            processors: ProcessorTime::now(),
        }
    }

    fn naps(&self) -> Naps {
        self.ends.as_ref().map(Watch::naps).unwrap_or_default()
    }

    fn reading(&self, carrier: &Carrier) -> DriverCounters {
        let device_drops = self.device_drops(&carrier.sender, &carrier.end.link);
        carrier.driver.with(|carried| DriverCounters {
            at: self.epoch.now(),
            lateness: carried.lateness.clone(),
            behind: carried.behind,
            write_errors: carried.write_errors,
            device_drops,
            unreadable: carried.unreadable,
            cpu: carried.cpu(),
            realtime: carried.realtime,
            stopped: carried.stopped,
        })
    }

    /// What a Run must say that began when the counters were read.
    pub(crate) fn mark(&self, begun: &Counters) -> LabMark {
        let now = self.readings();
        let pairs = now.drivers.iter().zip(&begun.drivers);
        let drivers: Vec<DriverStats> = pairs.map(|(now, begun)| now.since(Some(begun))).collect();
        let links = Counted::of(drivers.iter());
        let mut mark = LabMark {
            scenario: self.scenario.name.clone(),
            seed: self.scenario.seed,
            drawn: self.scenario.drawn.clone(),
            changes: self.changes(),
            backend: self.backend,
            clock: match clock::is_virtual() {
                true => LabClock::Virtual,
                false => LabClock::Real,
            },
            starved_ratio: now.naps.late_ratio_since(begun.naps),
            stolen_ratio: now.processors.stolen_ratio_since(begun.processors),
            behind_ratio: links.behind_ratio,
            device_drops: links.device_drops,
            write_errors: links.write_errors,
            link_stopped: links.stopped,
            overrun: false,
            lateness_s: drivers
                .iter()
                .filter_map(|driver| driver.lateness_s)
                .max_by(|a, b| a.p99.total_cmp(&b.p99)),
            piece_error_s: self
                .carriers
                .iter()
                .map(|c| c.driver.with(|carried| carried.chain.piece_error()))
                .max()
                .unwrap_or_default()
                .as_secs_f64(),
            notes: self.notes(),
        };
        mark.overrun = !Disturbance::of_run(&mark).is_empty();
        mark
    }

    /// Packets that the kernel dropped at a device because they were not read in time.
    fn device_drops(&self, node: &str, interface: &str) -> u64 {
        let read = || -> Result<u64, LabError> {
            self.namespaces(node)?.in_network(|| {
                let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
                Ok(transmit_drops(&table, interface).unwrap_or(0))
            })
        };
        read().unwrap_or(0)
    }
}

/// The column `drop` of the transmit half of /proc/net/dev.
fn transmit_drops(table: &str, interface: &str) -> Option<u64> {
    let counters = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    counters.split_whitespace().nth(11)?.parse().ok()
}

/// Every chain draws its own random numbers, always the same for the same scenario.
fn chain_seed(seed: u64, link: usize, way: OneDirection) -> u64 {
    // Odd multiplier of splitmix64: neighbouring chains get unlike seeds.
    seed.wrapping_add((link as u64 * 2 + way as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_transmit_drops() {
        let table =
            "Inter-|   Receive\n face |bytes\n    wan: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(transmit_drops(table, "wan"), Some(12));
        assert_eq!(transmit_drops(table, "wa"), None);
    }
}
