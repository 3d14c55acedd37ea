//! A node: namespaces furnished so that programs in it take it for a whole machine, with
//! nothing of the host's settings in it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use plumb_net::namespace::{
    Namespaces, bind_mount, bind_mount_tree, detach_mount, mount_kernel_fs,
};
use plumb_net::netlink::{Netlink, interface_index};
use plumb_net::sysctl;

use crate::error::LabError;
use crate::scenario::NodeSpec;

/// Kernel variables of every node, before the scenario's own.
///
/// The buffers have the sizes of a stock kernel on a machine with plenty of memory (`tcp_init` in `net/ipv4/tcp.c`),
/// whatever the host has. A variable that this kernel lacks is passed over.
const BASELINE: [(&str, &str); 26] = [
    // Addresses are given, and links carry only what programs send: no link-local address that makes itself, no search
    // for routers or for addresses that are taken.
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.autoconf", "0"),
    ("net.ipv6.conf.default.dad_transmits", "0"),
    ("net.ipv6.conf.default.accept_redirects", "0"),
    ("net.ipv6.conf.all.forwarding", "0"),
    ("net.ipv4.ip_forward", "0"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.accept_redirects", "0"),
    ("net.ipv4.conf.all.send_redirects", "0"),
    // For these two the kernel asks whether either of `all` and the interface says so.
    ("net.ipv4.conf.default.accept_redirects", "0"),
    ("net.ipv4.conf.default.send_redirects", "0"),
    // A flow is addresses and ports.
    ("net.ipv4.fib_multipath_hash_policy", "1"),
    ("net.ipv6.fib_multipath_hash_policy", "1"),
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
    ("net.ipv6.icmp.ratelimit", "0"),
];

/// Kernel variables of a node that answers nothing by ICMP: echo is ignored, and every other message
/// may be sent once in 24 days (`net/ipv4/icmp.c`, `net/ipv6/icmp.c`: the credit of a destination
/// that was never written to is one minute's, which is too little).
const SILENT: [(&str, &str); 6] = [
    ("net.ipv4.icmp_echo_ignore_all", "1"),
    ("net.ipv4.icmp_ratemask", "2147483647"),
    ("net.ipv4.icmp_ratelimit", "2147483647"),
    ("net.ipv6.icmp.echo_ignore_all", "1"),
    ("net.ipv6.icmp.ratemask", "0-255"),
    ("net.ipv6.icmp.ratelimit", "2147483647"),
];

/// What getaddrinfo(3) prefers, in RFC 6724's table: IPv4. glibc's own table would have IPv6, also
/// for the local addresses (fc00::/7) that the RFC puts last. musl reads no such file, and has the RFC's table, which a
/// lab's addresses come out of in the same order.
const GAI_CONF: &str = "precedence ::1/128 50\nprecedence ::ffff:0:0/96 35\nprecedence ::/0 30\n";

/// Congestion control of every node, and what stands in for it where the kernel lets no
/// namespace choose it: BBR, which new namespaces may inherit, would hide full queues.
const CONGESTION_CONTROL: [&str; 2] = ["cubic", "reno"];

/// Directories in which plumb or its user may write settings; a node has its own.
const PRIVATE_DIRECTORIES: [&str; 2] = ["/etc/sysctl.d", "/var/lib/plumb"];

/// Makes a node with its files and kernel settings; it has no links yet.
///
/// `hash_seed` decides which of several equal routes a flow takes. Returns the namespaces and what the user must know
/// about them.
pub(crate) fn create(
    spec: &NodeSpec,
    hosts: &str,
    ipv6: bool,
    hash_seed: u32,
) -> Result<(Namespaces, Vec<String>), LabError> {
    let mut notes = Vec::new();
    let namespaces = Namespaces::create(&spec.name, || {
        mount_files(hosts, ipv6, &mut notes)?;
        settle_kernel(spec, ipv6, hash_seed, &mut notes)?;
        Netlink::open()?.set_up(interface_index("lo")?, None)?;
        Ok::<_, LabError>(())
    })?;
    Ok((namespaces, notes))
}

fn mount_files(hosts: &str, ipv6: bool, notes: &mut Vec<String>) -> Result<(), LabError> {
    // The old tree would show the host's interfaces.
    mount_kernel_fs("sysfs", Path::new("/sys"))?;
    // Files are written to a tmpfs that is seen only in this mount namespace, bound over the
    // real ones, and then taken off the place where it was mounted.
    let stage = Path::new("/tmp");
    mount_kernel_fs("tmpfs", stage)?;
    for (number, directory) in PRIVATE_DIRECTORIES.iter().map(Path::new).enumerate() {
        private_directory(&stage.join(number.to_string()), directory)?;
    }
    for (name, text) in [
        ("hosts", hosts),
        ("resolv.conf", "# no resolver in this network\n"),
        ("nsswitch.conf", "hosts: files\n"),
        ("gai.conf", GAI_CONF),
    ] {
        let real = Path::new("/etc").join(name);
        if real.exists() {
            let staged = stage.join(name);
            fs::write(&staged, text)?;
            bind_mount(&staged, &real)?;
        } else if name == "hosts" {
            notes.push(
                "there is no /etc/hosts here, so the nodes have addresses and no names: make an empty one"
                    .to_owned(),
            );
        } else if name == "gai.conf" && ipv6 {
            notes.push(
                "there is no /etc/gai.conf here, so names may resolve to IPv6 first".to_owned(),
            );
        }
    }
    // A name service cache would answer with the host's names.
    if Path::new("/run/nscd").is_dir() {
        mount_kernel_fs("tmpfs", Path::new("/run/nscd"))?;
    }
    detach_mount(stage)?;
    Ok(())
}

/// Lays an empty directory over one of the machine's. Nothing can be laid over a directory that is not there,
/// and the laboratory makes none on the real machine; so its parent is covered by one that has it, and leads
/// to everything else in the parent.
fn private_directory(staged: &Path, directory: &Path) -> io::Result<()> {
    fs::create_dir(staged)?;
    if directory.is_dir() {
        return bind_mount(staged, directory);
    }
    let (Some(parent), Some(name)) = (
        directory.parent().filter(|p| p.is_dir()),
        directory.file_name(),
    ) else {
        return Ok(());
    };
    /// Where what the parent really has is found.
    const REAL: &str = ".of-the-machine";
    fs::create_dir(staged.join(REAL))?;
    for entry in fs::read_dir(parent)? {
        let entry = entry?.file_name();
        symlink(Path::new(REAL).join(&entry), staged.join(&entry))?;
    }
    fs::create_dir(staged.join(name))?;
    bind_mount_tree(parent, &staged.join(REAL))?;
    bind_mount_tree(staged, parent)
}

fn settle_kernel(
    spec: &NodeSpec,
    ipv6: bool,
    hash_seed: u32,
    notes: &mut Vec<String>,
) -> Result<(), LabError> {
    let disable_ipv6 = if ipv6 { "0" } else { "1" };
    let hash_seed = hash_seed.to_string();
    let own = [
        ("net.ipv6.conf.all.disable_ipv6", disable_ipv6),
        ("net.ipv6.conf.default.disable_ipv6", disable_ipv6),
        ("net.ipv4.fib_multipath_hash_seed", &hash_seed),
    ];
    let silent: &[_] = if spec.silent { &SILENT } else { &[] };
    for (key, value) in BASELINE
        .into_iter()
        .chain(own)
        .chain(silent.iter().copied())
    {
        match sysctl::write(key, value) {
            Err(e) if !e.is_absent() => return Err(e.into()),
            _ => {}
        }
    }
    // A user namespace has but the groups that are mapped in it, of which one is 0.
    let ping_groups = |groups| sysctl::write("net.ipv4.ping_group_range", groups);
    ping_groups("0 2147483647").or_else(|_| ping_groups("0 0"))?;
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
    set_variables(spec, false)
}

/// Sets the kernel variables of a scenario that are of an interface, which is there when the node's links
/// are, or the others.
pub(crate) fn set_variables(spec: &NodeSpec, of_interfaces: bool) -> Result<(), LabError> {
    let variables = spec.sysctl.iter();
    for (key, value) in variables.filter(|(key, _)| is_of_interface(key) == of_interfaces) {
        sysctl::write(key, value)
            .map_err(|e| LabError::Control(format!("node '{}': the lab {e}", spec.name)))?;
    }
    Ok(())
}

/// Whether a kernel variable belongs to a link or lan.
fn is_of_interface(key: &str) -> bool {
    let mut parts = key.split('.').skip(2);
    matches!(parts.next(), Some("conf" | "neigh"))
        && parts
            .next()
            .is_some_and(|name| !["all", "default", "lo"].contains(&name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_is_made_in_the_node_alone() {
        let place = tempfile::tempdir().unwrap();
        let (lib, staged) = (place.path().join("lib"), place.path().join("staged"));
        fs::create_dir(&lib).unwrap();
        fs::write(lib.join("theirs"), "x").unwrap();
        let made = Namespaces::create("private", || {
            private_directory(&staged, &lib.join("plumb"))?;
            fs::write(lib.join("plumb/journal"), "y")?;
            fs::write(lib.join("new"), "z")?;
            Ok::<_, io::Error>(())
        });
        made.unwrap();
        let names = |at: &Path| -> Vec<_> {
            let entries = fs::read_dir(at).unwrap();
            entries.map(|e| e.unwrap().file_name()).collect()
        };
        assert_eq!(names(&lib), ["theirs"], "nothing was made on the machine");
        assert_eq!(fs::read_to_string(lib.join("theirs")).unwrap(), "x");
    }

    #[test]
    fn everything_else_beside_it_is_still_there() {
        let place = tempfile::tempdir().unwrap();
        let (lib, staged) = (place.path().join("lib"), place.path().join("staged"));
        fs::create_dir_all(lib.join("dpkg")).unwrap();
        fs::write(lib.join("dpkg/status"), "x").unwrap();
        let seen = std::sync::Mutex::new(Vec::new());
        let made = Namespaces::create("beside", || {
            private_directory(&staged, &lib.join("plumb"))?;
            let mut seen = seen.lock().unwrap();
            seen.push(fs::read_to_string(lib.join("dpkg/status"))?);
            seen.push(fs::read_dir(lib.join("plumb"))?.count().to_string());
            Ok::<_, io::Error>(())
        });
        made.unwrap();
        assert_eq!(*seen.lock().unwrap(), ["x", "0"]);
    }
}
