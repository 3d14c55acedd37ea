//! Interrupts of network interfaces, and which processors serve them.

use plumb_model::results::host::{Interface, InterruptLine};

use super::Source;

/// The interrupts that belong to an interface: those that its device owns, or that bear its name.
pub(super) fn interrupts(source: &mut Source, interfaces: &[Interface]) -> Vec<InterruptLine> {
    let owned: Vec<(u32, &str)> = interfaces
        .iter()
        .flat_map(|interface| {
            // virtio's interrupts belong to the PCI device above it.
            ["device/msi_irqs", "device/../msi_irqs"]
                .into_iter()
                .flat_map(|folder| {
                    source.names(&format!("/sys/class/net/{}/{folder}", interface.name))
                })
                .filter_map(|number| Some((number.parse().ok()?, interface.name.as_str())))
                .collect::<Vec<_>>()
        })
        .collect();
    let text = source.text("/proc/interrupts").unwrap_or_default();
    let mut found = Vec::new();
    for mut line in lines(&text) {
        let owner = owned.iter().find(|(number, _)| *number == line.number);
        let named = || {
            let parts = || line.name.split(['-', '@', ':', '.', ' ']);
            let bears = |interface: &&Interface| parts().any(|part| part == interface.name);
            interfaces.iter().find(bears).map(|i| i.name.as_str())
        };
        if let Some(interface) = owner.map(|(_, name)| *name).or_else(named) {
            line.interface = interface.to_owned();
            line.allowed_cpus =
                source.optional(&format!("/proc/irq/{}/smp_affinity_list", line.number));
            found.push(line);
        }
    }
    found
}

/// The numbered lines of /proc/interrupts (`show_interrupts`, `kernel/irq/proc.c`).
fn lines(text: &str) -> Vec<InterruptLine> {
    let processors = text.lines().next().map_or(0, |head| {
        head.split_whitespace()
            .filter(|word| word.starts_with("CPU"))
            .count()
    });
    let line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number = number.trim().parse().ok()?;
        let mut words = rest.split_whitespace();
        let counts: Vec<u64> = words
            .by_ref()
            .take(processors)
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        // Chip, hardware's number and trigger, then what drivers call it.
        let name = words.next_back()?;
        Some(InterruptLine {
            number,
            name: name.to_owned(),
            interface: String::new(),
            counts,
            allowed_cpus: None,
        })
    };
    text.lines().skip(1).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "            CPU0       CPU1\n\
        24:       5         7   PCI-MSIX-0000:01:00.0   0-edge      eth0-TxRx-0\n\
        25:       1         0   PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
        NMI:      3         4   Non-maskable interrupts\n";

    #[test]
    fn interrupts_find_their_interface() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/class/net/ens3/device/msi_irqs");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("25"), "msix\n").unwrap();
        std::fs::create_dir_all(root.path().join("proc/irq/24")).unwrap();
        std::fs::write(root.path().join("proc/irq/24/smp_affinity_list"), "0-1\n").unwrap();
        std::fs::write(root.path().join("proc/interrupts"), TEXT).unwrap();
        let interface = |name: &str| Interface {
            name: name.into(),
            ..Interface::default()
        };
        let interfaces = [interface("eth0"), interface("ens3")];
        let read = interrupts(&mut Source::below(root.path()), &interfaces);
        let of: Vec<_> = read
            .iter()
            .map(|l| (l.number, l.interface.as_str(), l.counts.clone()))
            .collect();
        assert_eq!(of, [(24, "eth0", vec![5, 7]), (25, "ens3", vec![1, 0])]);
        assert_eq!(read[0].allowed_cpus.as_deref(), Some("0-1"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "([ CPU0-9:a-z.-]{0,40}\n){0,6}") {
            let _ = lines(&text);
        }
    }
}
