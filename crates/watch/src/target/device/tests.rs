use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_wire::snmp::pdu::Pdu;
use plumb_wire::snmp::value::Value;

use super::objects as o;
use super::*;
use crate::snmp::agent::{agent, answered};
use crate::target::settings::tests::settings;

/// Ports 1 (lo), 2 (eth0, up) and 3 (eth1, down), whose counters of bytes stand at `bytes`, and what else a device has.
fn objects(uptime: u32, bytes: u64) -> Vec<(Oid, Value)> {
    let mut all = vec![
        (o::SYS_UP_TIME.of(0), Value::TimeTicks(uptime)),
        (o::IF_NUMBER.of(0), Value::Integer(3)),
        (
            o::HR_STORAGE_TYPE.of(1),
            Value::Oid(o::HR_STORAGE_RAM.column().unwrap()),
        ),
        (o::HR_STORAGE_SIZE.of(1), Value::Integer(1000)),
        (o::HR_STORAGE_USED.of(1), Value::Integer(250)),
        (o::HR_PROCESSOR_LOAD.of(7), Value::Integer(10)),
        (o::HR_PROCESSOR_LOAD.of(8), Value::Integer(30)),
        (o::ENT_PHYSICAL_NAME.of(5), Value::Bytes(b"inlet".to_vec())),
        (o::ENT_PHY_SENSOR_TYPE.of(5), Value::Integer(8)),
        (o::ENT_PHY_SENSOR_SCALE.of(5), Value::Integer(9)),
        (o::ENT_PHY_SENSOR_PRECISION.of(5), Value::Integer(1)),
        (o::ENT_PHY_SENSOR_VALUE.of(5), Value::Integer(365)),
    ];
    for (index, name, kind, state) in [(1, "lo", 24, 1), (2, "eth0", 6, 1), (3, "eth1", 6, 2)] {
        all.extend([
            (o::IF_NAME.of(index), Value::Bytes(name.into())),
            (o::IF_TYPE.of(index), Value::Integer(kind)),
            (o::IF_OPER_STATUS.of(index), Value::Integer(state)),
            (o::IF_HIGH_SPEED.of(index), Value::Gauge32(1000)),
            (o::IF_HC_IN_OCTETS.of(index), Value::Counter64(bytes)),
            (o::IF_HC_OUT_OCTETS.of(index), Value::Counter64(bytes)),
            (o::IF_IN_ERRORS.of(index), Value::Counter32(0)),
        ]);
    }
    let mut all: Vec<_> = all
        .into_iter()
        .map(|(oid, value)| (oid.unwrap(), value))
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

/// A device that is asked through the agent at that address.
fn device(at: SocketAddr, more: &str) -> Device {
    let text = format!("community = \"public\"\nport = {}\n{more}", at.port());
    Device {
        access: Access::read(&mut settings(&text)).unwrap(),
        state: Mutex::new(None),
    }
}

fn probed(device: &Device) -> Probed {
    let far = FarEnd {
        host: "device",
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        trust: None,
        every: EVERY,
    };
    device.probe(&far).unwrap()
}

fn value(probed: &Probed, name: &str) -> Option<Result<f64, String>> {
    let seen = probed.series.iter().find(|seen| seen.name == name)?;
    Some(seen.value.clone())
}

#[test]
fn a_device_has_series_of_its_ports_and_itself() {
    let bytes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&bytes);
    let at = agent(move |asked: &Pdu| {
        let bytes = counted.load(Ordering::Relaxed);
        vec![answered(&objects(500, bytes), asked).encoded()]
    });
    let device = device(at, "");
    let first = probed(&device);
    assert!(first.value.is_some(), "{first:?}");
    let names: Vec<_> = first.series.iter().map(|seen| seen.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "uptime",
            "processor",
            "memory",
            "temperature inlet",
            "port eth0 state"
        ]
    );
    assert_eq!(value(&first, "processor"), Some(Ok(20.0)));
    assert_eq!(value(&first, "memory"), Some(Ok(25.0)));
    assert_eq!(value(&first, "temperature inlet"), Some(Ok(36.5)));
    assert_eq!(first.series[4].state.as_deref(), Some("up"));
    bytes.store(1, Ordering::Relaxed);
    let second = probed(&device);
    let names: Vec<_> = second
        .series
        .iter()
        .map(|seen| seen.name.as_str())
        .collect();
    for name in ["port eth0 in", "port eth0 out use", "port eth0 in errors"] {
        assert!(
            matches!(value(&second, name), Some(Ok(_))),
            "{name}: {names:?}"
        );
    }
    assert!(
        second
            .series
            .iter()
            .all(|seen| series::unit(&seen.name).is_some())
    );
}

#[test]
fn counters_that_cannot_be_are_no_values() {
    // More than a link of 1 Gbit/s carries at any time that this takes.
    let (looks, last) = (AtomicU64::new(0), 1u64 << 50);
    let at = agent(move |asked: &Pdu| {
        // Each look begins with a question for the number of ports.
        let is_head = asked
            .bindings
            .iter()
            .any(|(oid, _)| Some(oid) == o::IF_NUMBER.of(0).as_ref());
        let look = looks.fetch_add(u64::from(is_head), Ordering::Relaxed) + u64::from(is_head);
        let (uptime, bytes) = match look {
            1 => (500, 5),
            2 => (500, last),
            3 => (500, 5),
            _ => (3, 9),
        };
        vec![answered(&objects(uptime, bytes), asked).encoded()]
    });
    let device = device(at, "ports = [\"eth0\"]");
    probed(&device);
    for (name, words) in [
        ("port eth0 in", "twice of what the port can carry"),
        ("port eth0 out", "wrapped, or began anew"),
        ("port eth0", "its uptime went back"),
    ] {
        let seen = value(&probed(&device), name);
        let why = seen.unwrap().unwrap_err();
        assert!(why.contains(words), "{name}: {why}");
    }
}

#[test]
fn a_table_that_is_wrong_leaves_the_answer_of_the_device() {
    let at = agent(|asked: &Pdu| {
        let mut objects = objects(500, 0);
        for (oid, value) in &mut objects {
            if oid.beneath(&o::IF_NAME.column().unwrap()).is_some() {
                *value = Value::Integer(7);
            }
        }
        vec![answered(&objects, asked).encoded()]
    });
    let seen = probed(&device(at, ""));
    assert!(seen.value.is_some());
    let why = value(&seen, "ports").unwrap().unwrap_err();
    assert!(
        why.contains("has the type INTEGER, where OCTET STRING should be"),
        "{why}"
    );
}

#[test]
fn a_table_of_less_that_is_wrong_leaves_the_others() {
    let at = agent(|asked: &Pdu| {
        let mut objects = objects(500, 0);
        for (oid, value) in &mut objects {
            if oid
                .beneath(&o::ENT_PHY_SENSOR_TYPE.column().unwrap())
                .is_some()
            {
                *value = Value::Counter32(7);
            }
        }
        vec![answered(&objects, asked).encoded()]
    });
    let seen = probed(&device(at, ""));
    let why = value(&seen, "sensors").unwrap().unwrap_err();
    assert!(why.contains("has the type Counter32"), "{why}");
    assert_eq!(value(&seen, "port eth0 state"), Some(Ok(1.0)));
}

#[test]
fn a_look_shows_all_ports() {
    let at = agent(|asked: &Pdu| vec![answered(&objects(500, 7), asked).encoded()]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("community");
    std::fs::write(&file, "public\n").unwrap();
    let found = look(at, &Login::CommunityFile(file), &[]).unwrap().text();
    for words in [
        "a device without a name at 127.0.0.1",
        "eth1",
        "down",
        "1.00 Gbit/s",
        "36.5 °C",
        "no counter changed",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
}
