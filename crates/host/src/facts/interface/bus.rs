//! The bus between a network card and the processor.

use plumb_model::results::host::Bus;

use super::Source;

/// How many devices may lie between an interface and the bus that reports a speed (virtio or an MDIO bus on PCI, an
/// interface of a USB device).
const MOST_STEPS: usize = 4;

/// The bus of the interface whose folder this is; `None` where there is no hardware.
pub(super) fn bus(source: &mut Source, folder: &str) -> Option<Bus> {
    let device = source.follow(&format!("{folder}/device"))?;
    let mut nearest = None;
    let mut place = device.as_str();
    for _ in 0..MOST_STEPS {
        if let Some(kind) = source.link_name(&format!("{place}/subsystem")) {
            let mut bus = Bus {
                address: place.rsplit('/').next().map(str::to_owned),
                kind,
                ..Bus::default()
            };
            match bus.kind.as_str() {
                "pci" => {
                    let mut speed = |which: &str| {
                        let rate = source.optional(&format!("{place}/{which}_link_speed"))?;
                        let width = source.number(&format!("{place}/{which}_link_width"))?;
                        pcie_bps(&rate, width)
                    };
                    bus.speed_bps = speed("current");
                    bus.best_speed_bps = speed("max");
                    // The virtio device on it is the one that the user knows.
                    return nearest.or(Some(bus));
                }
                "usb" => {
                    if let Some(speed) = source.optional(&format!("{place}/speed")) {
                        // Megabits in a second; 1.5 is one of the values.
                        bus.speed_bps = speed.parse::<f64>().ok().map(|mbps| mbps * 1e6);
                        return Some(bus);
                    }
                }
                _ => {}
            }
            nearest.get_or_insert(bus);
        }
        place = place.rsplit_once('/')?.0;
    }
    nearest
}

/// What a PCI Express link carries each way, its line coding taken off: 8 of 10 bits up to 5 GT/s,
/// 128 of 130 from 8 GT/s on (PCI Express Base Specification, 4.2); from 64 GT/s on 236 of 256
/// bytes of a flit.
fn pcie_bps(rate: &str, width: u64) -> Option<f64> {
    let gigatransfers: f64 = rate.split_whitespace().next()?.parse().ok()?;
    let coding = match gigatransfers {
        g if g <= 5.0 => 0.8,
        g if g < 64.0 => 128.0 / 130.0,
        _ => 236.0 / 256.0,
    };
    // A link that is not there has no width (PCI_EXP_LNKSTA of an integrated device).
    let bps = gigatransfers * 1e9 * coding * width as f64;
    ((1..=32).contains(&width) && bps.is_finite() && bps > 0.0).then_some(bps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn link(root: &Path, path: &str, target: &str) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::create_dir_all(root.join(target)).unwrap();
        symlink(root.join(target), file).unwrap();
    }

    #[test]
    fn a_card_in_a_narrow_slot_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let device = "sys/devices/pci0000:00/0000:01:00.0";
        write(
            root,
            &format!("{device}/current_link_speed"),
            "5.0 GT/s PCIe\n",
        );
        write(root, &format!("{device}/current_link_width"), "1\n");
        write(root, &format!("{device}/max_link_speed"), "8.0 GT/s PCIe\n");
        write(root, &format!("{device}/max_link_width"), "4\n");
        link(root, &format!("{device}/subsystem"), "sys/bus/pci");
        link(root, "sys/class/net/x0/device", device);
        let read = bus(&mut Source::below(root), "/sys/class/net/x0").unwrap();
        assert_eq!(
            (read.kind.as_str(), read.address.as_deref()),
            ("pci", Some("0000:01:00.0"))
        );
        assert_eq!(read.speed_bps, Some(4e9));
        assert!((read.best_speed_bps.unwrap() - 31.5e9).abs() < 0.1e9);
    }

    #[test]
    fn a_stick_on_usb_2_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let device = "sys/devices/pci0000:00/usb1/1-2";
        write(root, &format!("{device}/speed"), "480\n");
        link(root, &format!("{device}/subsystem"), "sys/bus/usb");
        link(root, &format!("{device}/1-2:1.0/subsystem"), "sys/bus/usb");
        link(
            root,
            "sys/class/net/x0/device",
            &format!("{device}/1-2:1.0"),
        );
        let read = bus(&mut Source::below(root), "/sys/class/net/x0").unwrap();
        assert_eq!((read.kind.as_str(), read.speed_bps), ("usb", Some(480e6)));
        assert_eq!(read.address.as_deref(), Some("1-2"));
        assert_eq!(bus(&mut Source::below(root), "/sys/class/net/lo"), None);
    }

    proptest! {
        #[test]
        fn never_panics(rate in "\\PC{0,20}", width in any::<u64>()) {
            prop_assert!(pcie_bps(&rate, width).is_none_or(f64::is_finite));
        }
    }
}
