//! The machine: who made it, and whether it is one.

use plumb_model::results::host::Machine;

use super::Source;

/// Hypervisors by what they write into DMI, as systemd's `src/basic/virt.c` has them.
const HYPERVISORS: [(&str, &str); 12] = [
    ("KVM", "KVM"),
    ("OpenStack", "KVM"),
    ("Amazon EC2", "Amazon EC2"),
    ("QEMU", "QEMU"),
    ("VMware", "VMware"),
    ("innotek", "VirtualBox"),
    ("VirtualBox", "VirtualBox"),
    ("Xen", "Xen"),
    ("Bochs", "Bochs"),
    ("Parallels", "Parallels"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("Microsoft Corporation Virtual Machine", "Hyper-V"),
];

pub(crate) fn machine(source: &mut Source) -> Machine {
    let dmi = ["sys_vendor", "product_name"].map(|name| {
        source
            .optional(&format!("/sys/class/dmi/id/{name}"))
            .unwrap_or_default()
    });
    let product = dmi.join(" ").trim().to_owned();
    let processor = source.optional("/proc/cpuinfo").unwrap_or_default();
    let told = source.optional("/sys/hypervisor/type");
    Machine {
        hypervisor: told.or_else(|| hypervisor(&product, &processor)),
        product: (!product.is_empty()).then_some(product),
        memory_bytes: source.text("/proc/meminfo").as_deref().and_then(memory),
        // Only the first namespace has this variable (`net/core/sysctl_net_core.c`).
        first_network_namespace: source
            .optional("/proc/sys/net/core/netdev_max_backlog")
            .is_some(),
    }
}

/// By DMI; failing that, the bit that every hypervisor of x86 sets says that there is one
/// (CPUID 1, ECX 31).
fn hypervisor(product: &str, cpuinfo: &str) -> Option<String> {
    let known = HYPERVISORS.iter().find(|(mark, _)| product.contains(mark));
    let flag = || {
        let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
        let first = flags.next()?;
        let set = first.split_whitespace().any(|flag| flag == "hypervisor");
        set.then_some("yes")
    };
    known
        .map(|(_, name)| *name)
        .or_else(flag)
        .map(str::to_owned)
}

/// `MemTotal:  16384 kB`.
fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn virtual_machines_are_told_from_real_ones() {
        let flags = "model name : x\nflags\t\t: fpu hypervisor aes\n";
        let of = |product: &str, cpu: &str| hypervisor(product, cpu);
        assert_eq!(of("QEMU Standard PC", "").as_deref(), Some("QEMU"));
        assert_eq!(of("Microsoft Corporation Surface Pro", ""), None);
        assert_eq!(
            of("Microsoft Corporation Virtual Machine", flags).as_deref(),
            Some("Hyper-V")
        );
        assert_eq!(of("", flags).as_deref(), Some("yes"));
        assert_eq!(of("Dell Inc. PowerEdge", "flags : fpu aes\n"), None);
        assert_eq!(
            memory("MemFree: 1 kB\nMemTotal:    2048 kB\n"),
            Some(2 << 20)
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}") {
            let _ = (hypervisor(&text, &text), memory(&text));
        }
    }
}
