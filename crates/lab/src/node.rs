//! A node: namespaces furnished so that programs in it take it for a whole machine, with
//! nothing of the host's settings in it.

use std::fs;
use std::io;
use std::path::Path;

use plumb_net::namespace::{Namespaces, bind_mount, detach_mount, mount_kernel_fs};
use plumb_net::netlink::{Netlink, interface_index};
use plumb_net::sysctl;

use crate::error::LabError;
use crate::scenario::NodeSpec;

/// Kernel variables of every node, before the scenario's own.
///
/// The buffers are those of a stock kernel on a machine with plenty of memory (`tcp_init` in
/// `net/ipv4/tcp.c`), whatever the host has. A variable that this kernel lacks is passed over.
const BASELINE: [(&str, &str); 19] = [
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
    ("net.ipv4.ip_forward", "0"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.accept_redirects", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    // A path's history must not leak from one measurement into the next.
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_ecn", "2"),
    ("net.ipv4.tcp_mtu_probing", "0"),
    // Rate limits would look like loss.
    ("net.ipv4.icmp_ratelimit", "0"),
    ("net.ipv4.icmp_msgs_per_sec", "100000"),
    ("net.ipv4.ping_group_range", "0 2147483647"),
];

/// Congestion control of every node, and what stands in for it where the kernel lets no
/// namespace choose it: BBR, which new namespaces may inherit, would hide full queues.
const CONGESTION_CONTROL: [&str; 2] = ["cubic", "reno"];

/// Packets that may wait at a TUN device for its reader. The kernel drops the rest without a
/// word, and the default of 500 overflows under a burst.
const TUN_QUEUE_PACKETS: u32 = 20_000;

/// Directories in which plumb or its user may write settings; a node has its own.
const PRIVATE_DIRECTORIES: [&str; 2] = ["/etc/sysctl.d", "/var/lib/plumb"];

/// Makes a node with its files and kernel settings; it has no links yet.
///
/// Returns the namespaces and what must be told about them.
pub(crate) fn create(spec: &NodeSpec, hosts: &str) -> Result<(Namespaces, Vec<String>), LabError> {
    let mut notes = Vec::new();
    let namespaces = Namespaces::create(&spec.name, || {
        mount_files(hosts)?;
        settle_kernel(spec, &mut notes)?;
        Netlink::open()?.set_up(interface_index("lo")?, None)?;
        Ok::<_, LabError>(())
    })?;
    Ok((namespaces, notes))
}

/// Raises an interface of the current namespace and gives it its address.
pub(crate) fn configure(interface: &str, address: std::net::Ipv4Addr) -> Result<(), LabError> {
    let mut netlink = Netlink::open()?;
    let index = interface_index(interface)?;
    netlink.set_up(index, Some(TUN_QUEUE_PACKETS))?;
    netlink.add_address(index, address, crate::layout::PREFIX)?;
    Ok(())
}

fn mount_files(hosts: &str) -> Result<(), LabError> {
    // The old tree would show the host's interfaces.
    mount_kernel_fs("sysfs", Path::new("/sys"))?;
    // Files are written to a tmpfs that is seen only in this mount namespace, bound over the
    // real ones, and then taken off the place where it was mounted.
    let stage = Path::new("/tmp");
    mount_kernel_fs("tmpfs", stage)?;
    for (name, text) in [
        ("hosts", hosts),
        ("resolv.conf", "# no resolver in this network\n"),
        ("nsswitch.conf", "hosts: files\n"),
    ] {
        let real = Path::new("/etc").join(name);
        if real.exists() {
            let staged = stage.join(name);
            fs::write(&staged, text)?;
            bind_mount(&staged, &real)?;
        }
    }
    for (number, directory) in PRIVATE_DIRECTORIES.iter().map(Path::new).enumerate() {
        if directory.is_dir() {
            let staged = stage.join(number.to_string());
            fs::create_dir(&staged)?;
            bind_mount(&staged, directory)?;
        }
    }
    // A name service cache would answer with the host's names.
    if Path::new("/run/nscd").is_dir() {
        mount_kernel_fs("tmpfs", Path::new("/run/nscd"))?;
    }
    detach_mount(stage)?;
    Ok(())
}

fn settle_kernel(spec: &NodeSpec, notes: &mut Vec<String>) -> Result<(), LabError> {
    for (key, value) in BASELINE {
        match sysctl::write(key, value) {
            Err(e) if !e.is_absent() => return Err(e.into()),
            _ => {}
        }
    }
    let chosen = CONGESTION_CONTROL
        .into_iter()
        .find(|cc| sysctl::write("net.ipv4.tcp_congestion_control", cc).is_ok());
    match chosen {
        Some(cc) if cc == CONGESTION_CONTROL[0] => {}
        Some(cc) => notes.push(format!(
            "this kernel lets no namespace default to {}, so sockets that do not choose run {cc}",
            CONGESTION_CONTROL[0]
        )),
        None => notes.push(
            "the kernel keeps its own default congestion control; sockets must choose".to_owned(),
        ),
    }
    if spec.forward {
        sysctl::write("net.ipv4.ip_forward", "1")?;
    }
    for (key, value) in &spec.sysctl {
        if !key.starts_with("net.") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("node {}: {key} belongs to the whole machine, not to a node; only net.* can be set", spec.name),
            )
            .into());
        }
        sysctl::write(key, value)?;
    }
    Ok(())
}
