//! What each system prints.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn read(text: &str, asked: Option<Os>, from: &str) -> Result<Snapshot, PasteError> {
    super::read(text, asked, from, &Catalogue::built_in().unwrap())
}

#[test]
fn each_systems_words() {
    let linux = "kernel.osrelease = 6.1.0-18-amd64\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n";
    let read_as = |text| read(text, None, "a file");
    let host = read_as(linux).unwrap();
    assert_eq!(host.os, Os::Linux);
    assert_eq!(host.release.as_deref(), Some("6.1.0-18-amd64"));
    assert_eq!(host.value("net.ipv4.tcp_rmem"), Some("4096 131072 6291456"));

    let mac = "kern.ostype: Darwin\nhw.memsize: 17179869184\nnet.inet.tcp.autorcvbufmax: 4194304\n";
    let host = read_as(mac).unwrap();
    assert_eq!((host.os, host.memory_bytes), (Os::Macos, Some(16 << 30)));

    let open = "kern.ostype=OpenBSD\nnet.inet.tcp.sack=1\n";
    assert_eq!(read_as(open).unwrap().value("net.inet.tcp.sack"), Some("1"));
    assert_eq!(
        read_as("net.inet.tcp.sack=1\n"),
        Err(PasteError::WhichSystem)
    );

    let solaris = "PROTO PROPERTY     PERM CURRENT  PERSISTENT DEFAULT  POSSIBLE\ntcp   max_buf      rw   1048576  --  1048576  128000-1073741824\n";
    let host = read_as(solaris).unwrap();
    assert_eq!(
        (host.os, host.value("max_buf")),
        (Os::Solaris, Some("1048576"))
    );
}

#[test]
fn netsh() {
    let text = "Querying active state...\r\n\r\nTCP Global Parameters\r\n----------------------------------------------\r\nReceive-Side Scaling State          : enabled\r\nReceive Window Auto-Tuning Level    : restricted\r\nAdd-On Congestion Control Provider  : default\r\nECN Capability                      : disabled\r\nRFC 1323 Timestamps                 : allowed\r\n";
    let host = read(text, None, "a file").unwrap();
    assert_eq!(host.os, Os::Windows);
    assert_eq!(host.value("autotuninglevel"), Some("restricted"));
    assert_eq!(host.value("timestamps"), Some("allowed"));
}

#[test]
fn get_net_tcp_setting() {
    let block = |name: &str, level: &str, cc: &str| {
        format!(
            "\r\nSettingName                     : {name}\r\nMinRto(ms)                      : 300\r\nCongestionProvider              : {cc}\r\nAutoTuningLevelLocal            : {level}\r\nAutoTuningLevelGroupPolicy      : NotConfigured\r\nScalingHeuristics               : Disabled\r\n"
        )
    };
    let text = [
        block("Automatic", "", ""),
        block("Internet", "HighlyRestricted", "CUBIC"),
        block("Datacenter", "Normal", "DCTCP"),
    ]
    .concat();
    let host = read(&text, None, "a file").unwrap();
    assert_eq!(host.os, Os::Windows);
    assert_eq!(host.value("autotuninglevel"), Some("highlyrestricted"));
    assert_eq!(host.value("congestionprovider"), Some("cubic"));
    assert_eq!(host.value("heuristics"), Some("disabled"));
}

#[test]
fn ethtool_of_a_link() {
    let text = "Settings for eth0:\n\tSupported ports: [ TP ]\n\tSpeed: 100Mb/s\n\tDuplex: Half\n\tAuto-negotiation: off\n\tLink detected: yes\n";
    let link = read(text, None, "a file").unwrap().interface.unwrap().link;
    let link = link.unwrap();
    assert_eq!(link.speed_bps, Some(100e6));
    assert_eq!(link.duplex, Some(Duplex::Half));
    assert_eq!(link.autonegotiation, Some(false));
    let unknown = "Settings for eth0:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n";
    let link = read(unknown, None, "x").unwrap().interface.unwrap().link;
    assert_eq!(link, Some(LinkMode::default()));
}

#[test]
fn what_cannot_be_is_refused() {
    for value in ["abc", "99999999999999999999", "4096"] {
        let text = format!("net.ipv4.tcp_sack = 1\nnet.ipv4.tcp_wmem = {value}\n");
        let error = read(&text, None, "x").unwrap_err();
        assert!(matches!(error, PasteError::Value(_)), "{value}: {error}");
        assert!(
            error.to_string().contains("net.ipv4.tcp_wmem takes"),
            "{error}"
        );
    }
    let netsh = "TCP Global Parameters\nReceive-Side Scaling State : enabled\n";
    let mac = "kern.ostype: Darwin\nnet.inet.tcp.autorcvbufmax: 4194304\n";
    let linux = "net.ipv4.tcp_sack = 1\n";
    for (one, other, systems) in [
        (netsh, mac, (Os::Windows, Os::Macos)),
        (linux, mac, (Os::Linux, Os::Macos)),
        (netsh, linux, (Os::Windows, Os::Linux)),
    ] {
        let error = read(&[one, other].concat(), None, "x").unwrap_err();
        assert_eq!(error, PasteError::TwoSystems(systems.0, systems.1));
    }
    let open = "kern.ostype=OpenBSD\nfs.posix.setuid=1\n";
    assert_eq!(read(open, None, "x").unwrap().os, Os::Openbsd);
    let german = "Globale TCP-Parameter\n---\nReceive-Side Scaling-Status : enabled\n";
    let error = read(german, None, "x").unwrap_err().to_string();
    assert!(
        error.contains("Get-NetTCPSetting, which is the same in all"),
        "{error}"
    );
}

#[test]
fn ethtool() {
    let text = "Features for eth0:\nrx-checksumming: on\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: off [fixed]\ngeneric-receive-offload: off\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\nTX:\t\t256\nCoalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nstats-block-usecs: n/a\nrx-usecs: 50\nrx-frames: 4\n";
    let host = read(text, None, "a file").unwrap();
    let interface = host.interface.unwrap();
    assert_eq!(interface.name, "eth0");
    let rings = interface.rings.unwrap();
    assert_eq!(
        (rings.receive_packets, rings.receive_max_packets),
        (256, 4096)
    );
    let tso = interface.offload("tx-tcp-segmentation").unwrap();
    assert!(!tso.on && tso.fixed);
    let gro = interface.offload("rx-gro").unwrap();
    assert!(!gro.on && !gro.fixed);
    let coalescing = interface.coalescing.unwrap();
    assert_eq!(
        (coalescing.receive_s, coalescing.receive_packets),
        (50e-6, 4)
    );
    assert_eq!(coalescing.adaptive_receive_possible, Some(true));
}

#[test]
fn the_wrong_kind_is_told_apart() {
    let error = |text| read(text, None, "a file").unwrap_err();
    assert!(
        matches!(error("total 8\ndrwxr-xr-x 2 root"), PasteError::WrongKind { begins } if begins == "total 8")
    );
    assert_eq!(error(" \n\n"), PasteError::Empty);
    assert_eq!(
        read("net.ipv4.tcp_sack = 1", Some(Os::Macos), "x"),
        Err(PasteError::OtherSystem {
            found: Os::Linux,
            asked: Os::Macos
        })
    );
}

proptest! {
    #[test]
    fn never_panics(text in "(\\PC|\n|:|=|RX:|rx-usecs: |Features for |Coalesce parameters for |net\\.){0,200}") {
        let _ = read(&text, None, "x");
    }

    #[test]
    fn a_variable_survives(key in "net\\.ipv4\\.[a-z_]{1,20}", value in "[0-9]{1,9}( [0-9]{1,9}){0,2}") {
        for sign in [" = ", ": ", "="] {
            let host = read(&format!("{key}{sign}{value}\n"), None, "x").unwrap();
            prop_assert_eq!(host.value(&key), Some(value.as_str()));
        }
    }
}
