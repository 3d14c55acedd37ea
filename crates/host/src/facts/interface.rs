//! Interfaces: what rtnetlink, the driver (ethtool), sysfs and nl80211 report of them.

mod bus;

use plumb_model::results::host::{ByteLimit, Interface, Steering};
use plumb_net::ethtool::Ethtool;
use plumb_net::netlink::driver::Drivers;
use plumb_net::netlink::link::links;
use plumb_net::netlink::wifi::radios;

use super::Source;

/// The interfaces of the network namespace of the calling thread, or the one of that number. One that
/// goes away while it is asked has what was known by then.
pub(crate) fn interfaces(source: &mut Source, only: Option<u32>) -> Vec<Interface> {
    let mut interfaces = source.asked("interfaces", links());
    interfaces.retain(|interface| only.is_none_or(|index| interface.index == index));
    let mut radios = source.asked("radios", radios());
    let mut ethtool = match Ethtool::open() {
        Ok(ethtool) => Some(ethtool),
        Err(error) => {
            source.note("drivers (ethtool)", &error);
            None
        }
    };
    // The names of the offloads are the kernel's, the same for every interface.
    let names = ethtool.as_mut().and_then(|ethtool| {
        let any = interfaces.first()?;
        ethtool.offload_names(&any.name).ok()
    });
    for interface in &mut interfaces {
        if let Some(ethtool) = &mut ethtool {
            ask_driver(ethtool, interface, names.as_deref().unwrap_or_default());
        }
        let radio = radios
            .iter()
            .position(|(index, _)| *index == interface.index);
        interface.wifi = radio.map(|place| radios.swap_remove(place).1);
        ask_sysfs(source, interface);
    }
    ask_for_adaptation(&mut interfaces);
    interfaces
}

/// Which drivers could adapt their interrupts to the traffic; kernels before 5.7 do not report it.
fn ask_for_adaptation(interfaces: &mut [Interface]) {
    let mut with_coalescing = interfaces
        .iter_mut()
        .filter_map(|interface| Some((interface.name.as_str(), interface.coalescing.as_mut()?)))
        .peekable();
    if with_coalescing.peek().is_none() {
        return;
    }
    let Ok(mut drivers) = Drivers::open() else {
        return;
    };
    for (name, coalescing) in with_coalescing {
        coalescing.adaptive_receive_possible = drivers.can_adapt_receive(name).ok();
    }
}

/// What a driver does not know it answers with an error, which is no news.
fn ask_driver(ethtool: &mut Ethtool, interface: &mut Interface, names: &[String]) {
    let name = interface.name.as_str();
    let driver = ethtool.driver(name).unwrap_or_default();
    interface.driver = Some(driver.name).filter(|name| !name.is_empty());
    interface.firmware = Some(driver.firmware).filter(|version| !version.is_empty());
    interface.link = ethtool.link(name).ok();
    interface.pause = ethtool.pause(name).ok();
    interface.rings = ethtool.rings(name).ok();
    interface.channels = ethtool.channels(name).ok();
    interface.coalescing = ethtool.coalescing(name).ok();
    interface.energy_efficient = ethtool.energy_efficient(name).ok();
    interface.offloads = ethtool.offloads(name, names).unwrap_or_default();
    interface.module = ethtool.module(name).ok().flatten();
    interface.driver_counters = ethtool
        .statistics(name)
        .unwrap_or_default()
        .into_iter()
        .filter(|(name, value)| *value != 0 && tells_of_trouble(name))
        .collect();
}

/// Drivers have hundreds of counters, each with names of its own; the names of counters of errors contain such words.
pub(crate) fn tells_of_trouble(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "err",
        "drop",
        "discard",
        "miss",
        "fail",
        "crc",
        "fifo",
        "over",
        "no_buf",
        "nobuf",
        "no_desc",
        "jabber",
        "abort",
        "collision",
        "pause",
        "xoff",
        "timeout",
        "stop",
        // Amazon's ena counts what it queued or dropped because the instance was above its allowance.
        "allowance_exceeded",
        // A virtio device counts what it dropped for a limit of its rate.
        "ratelimit",
    ]
    .iter()
    .any(|word| name.contains(word))
}

fn ask_sysfs(source: &mut Source, interface: &mut Interface) {
    let folder = format!("/sys/class/net/{}", interface.name);
    if let Some(driver) = source.link_name(&format!("{folder}/device/driver")) {
        interface.driver = Some(driver);
    }
    interface.bus = bus::bus(source, &folder);
    for queue in source.names(&format!("{folder}/queues")) {
        let place = format!("{folder}/queues/{queue}");
        let mask = if queue.starts_with("rx-") {
            "rps_cpus"
        } else {
            "xps_cpus"
        };
        // XPS is refused where there is but one queue.
        if let Some(cpus) = source.optional(&format!("{place}/{mask}")) {
            interface.steering.push(Steering {
                cpus,
                flows: source
                    .number(&format!("{place}/rps_flow_cnt"))
                    .and_then(|flows| u32::try_from(flows).ok()),
                queue: queue.clone(),
            });
        }
        let mut limit = |file: &str| source.number(&format!("{place}/byte_queue_limits/{file}"));
        let most = limit("limit_max");
        if let (Some(number), Some(limit_bytes), Some(inflight_bytes)) = (
            queue.strip_prefix("tx-").and_then(|n| n.parse().ok()),
            limit("limit"),
            limit("inflight"),
        ) {
            interface.byte_limits.push(ByteLimit {
                queue: number,
                limit_bytes,
                inflight_bytes,
                limit_max_bytes: most,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_counters_of_trouble_are_kept() {
        for name in [
            "rx_missed_errors",
            "rx_no_buffer_count",
            "port.rx_crc_errors",
            "tx_timeout",
            "bw_in_allowance_exceeded",
            "rx0_hw_ratelimit_bytes",
        ] {
            assert!(tells_of_trouble(name), "{name}");
        }
        for name in ["rx_packets", "tx_queue_0_bytes", "rx_queue_1_xdp_packets"] {
            assert!(!tells_of_trouble(name), "{name}");
        }
    }

    #[test]
    fn queues_are_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join("sys/class/net/x0/queues").join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("rx-0/rps_cpus", "3\n");
        write("rx-0/rps_flow_cnt", "4096\n");
        write("tx-0/byte_queue_limits/limit", "30280\n");
        write("tx-0/byte_queue_limits/inflight", "1514\n");
        let mut interface = Interface {
            name: "x0".into(),
            ..Interface::default()
        };
        ask_sysfs(&mut Source::below(root.path()), &mut interface);
        assert_eq!(
            interface.steering,
            [Steering {
                queue: "rx-0".into(),
                cpus: "3".into(),
                flows: Some(4096)
            }]
        );
        assert_eq!(
            interface.byte_limits.first().map(|l| l.limit_bytes),
            Some(30280)
        );
        assert!(!interface.is_physical());
    }
}
