//! Whether traffic over an interface is paid for by the byte.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

/// Drivers of telephones that share their connection over USB and Bluetooth (Linux drivers/net/usb, net/bluetooth/bnep).
const TETHERING: [&str; 3] = ["rndis_host", "ipheth", "bnep"];

/// NetworkManager answers within milliseconds, or not at all.
const MANAGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Why an interface counts as metered: a clause. `None` where nothing says so.
pub fn why_metered(interface: &str) -> Option<String> {
    let device = Path::new("/sys/class/net").join(interface);
    let uevent = std::fs::read_to_string(device.join("uevent")).unwrap_or_default();
    if is_mobile(interface, &uevent) {
        return Some(format!("{interface} is a mobile network"));
    }
    let driver = std::fs::read_link(device.join("device/driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name);
    let by_phone = driver.is_some_and(|driver| TETHERING.iter().any(|known| driver == *known));
    if by_phone || interface.starts_with("bnep") {
        return Some(format!("{interface} leads over a telephone"));
    }
    let asked = Path::new("/run/NetworkManager")
        .exists()
        .then(|| manager(interface));
    let metered = asked
        .flatten()
        .is_some_and(|answer| answer.starts_with("yes"));
    metered.then(|| format!("NetworkManager calls {interface} metered"))
}

/// By its name and what the kernel calls it.
fn is_mobile(interface: &str, uevent: &str) -> bool {
    interface.starts_with("ww") || uevent.lines().any(|line| line == "DEVTYPE=wwan")
}

/// NetworkManager's property, if it answers in time.
fn manager(interface: &str) -> Option<String> {
    let mut command = Command::new("nmcli");
    command.args(["-g", "GENERAL.METERED", "device", "show", interface]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let (tell, told) = mpsc::channel();
    // It ends with the program that it waits for, which has a time limit of its own.
    let asking = Builder::new()
        .name("plumb-metered".to_owned())
        .spawn(move || {
            let _ = tell.send(command.output());
        });
    asking.ok()?;
    let output = told.recv_timeout(MANAGER_TIMEOUT).ok()?.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mobile_networks_are_known_by_name_and_type() {
        assert!(is_mobile("wwan0", ""));
        assert!(is_mobile("wwp0s20f0u6", ""));
        assert!(is_mobile("usb0", "INTERFACE=usb0\nDEVTYPE=wwan\n"));
        assert!(!is_mobile("wlan0", "DEVTYPE=wlan\n"));
        assert!(!is_mobile("eth0", ""));
        assert_eq!(why_metered("lo"), None);
    }
}
