//! Over loopback: what ends a phase, how payload passes, and files at either end.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Responder, flows, in_turn, plan, run};
use plumb_load::file::StreamFile;
use plumb_load::{ClientError, EndedEarly, PhasePlan};
use plumb_serve::{Config, ServeError, Server};
use plumb_wire::native::control::Refusal;
use plumb_wire::native::control::flow::TcpFlow;

fn lent(file: File) -> Option<StreamFile> {
    Some(StreamFile {
        name: "a file".to_owned(),
        file: Arc::new(file),
        endless: false,
    })
}

fn with(down: u32, up: u32, ms: u64, tcp: TcpFlow) -> PhasePlan {
    PhasePlan {
        flows: flows(down, up, tcp),
        byte_limit: Some(10_000_000_000),
        ..plan(down, up, ms)
    }
}

#[test]
fn modes_carry_as_much_and_are_named() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let tcp = TcpFlow {
        zero_copy: true,
        discard: true,
        write_bytes: Some(300_000),
        ..TcpFlow::default()
    };
    let outcome = run(&mut client, &with(2, 2, 500, tcp)).unwrap();
    for direction in [outcome.down.unwrap(), outcome.up.unwrap()] {
        let result = direction.result;
        assert!(result.zero_copy_send && result.discard_receive);
        assert!(result.bytes > 10_000_000 && result.streams.iter().all(|s| s.error.is_none()));
    }
    let outcome = run(&mut client, &plan(1, 0, 200)).unwrap();
    let result = outcome.down.unwrap().result;
    assert!(!result.zero_copy_send && !result.discard_receive);
}

#[test]
fn a_paced_rate_is_never_exceeded() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let tcp = TcpFlow {
        pacing_bps: Some(50_000_000),
        ..TcpFlow::default()
    };
    // Long enough that what leaves unpaced at the beginning is within the twentieth below.
    let outcome = run(&mut client, &with(1, 1, 4000, tcp)).unwrap();
    for direction in [outcome.down.unwrap(), outcome.up.unwrap()] {
        let bps = direction.result.bps;
        // A machine that is late sends less, and never more.
        assert!(bps < 1.05 * 50e6, "{bps}");
        let shares: Vec<f64> = ["rwnd", "sndbuf", "app", "network"]
            .iter()
            .map(|name| {
                let series = &direction.series[&format!("{name}_limited_ratio")];
                series.points().map(|(_, share)| share).sum::<f64>() / series.t_s.len() as f64
            })
            .collect();
        assert!(
            (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6,
            "{shares:?}"
        );
        let paced = direction.series["pacing_bps"].points().last().unwrap().1;
        assert!((paced / 50e6 - 1.0).abs() < 0.01, "{paced}");
    }
}

#[test]
fn an_upload_ends_with_its_file() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![7; 3_000_001]).unwrap();
    file.rewind().unwrap();
    let plan = PhasePlan {
        from: lent(file),
        ..plan(0, 1, 60_000)
    };
    let outcome = run(&mut client, &plan).unwrap();
    assert_eq!(outcome.ended_early, Some(EndedEarly::SourceEnded));
    let result = outcome.up.unwrap().result;
    assert_eq!(
        (result.bytes, result.streams[0].error.clone()),
        (3_000_001, None)
    );
    assert!(result.files.unwrap().read_wait_ratio.is_some());
}

#[test]
fn a_slow_source_is_seen_as_such() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let source = std::thread::spawn(move || {
        while writer.write_all(&[7; 20_000]).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let plan = PhasePlan {
        from: lent(File::from(std::os::fd::OwnedFd::from(reader))),
        ..plan(0, 1, 1500)
    };
    let outcome = run(&mut client, &plan).unwrap();
    let result = outcome.up.unwrap().result;
    assert!(result.files.unwrap().limits(), "{:?}", result.files);
    let limited = result.tcp.limited;
    assert!(limited.app_ratio > 0.5, "{limited:?}");
    drop(plan);
    source.join().unwrap();
}

#[test]
fn a_download_is_written_and_a_full_disk_said() {
    let _turn = in_turn();
    let responder = Responder::start();
    let mut client = responder.client();
    let mut file = tempfile::tempfile().unwrap();
    let plan_to = |to| PhasePlan {
        to,
        byte_limit: Some(20_000_000),
        ..plan(1, 0, 5000)
    };
    let outcome = run(&mut client, &plan_to(lent(file.try_clone().unwrap()))).unwrap();
    let result = outcome.down.unwrap().result;
    assert_eq!(outcome.ended_early, Some(EndedEarly::Budget));
    assert_eq!(file.stream_position().unwrap(), 20_000_000);
    assert!(
        result
            .files
            .unwrap()
            .write_wait_ratio
            .is_some_and(|ratio| ratio > 0.0)
    );

    let full = File::options().write(true).open("/dev/full").unwrap();
    let outcome = run(&mut client, &plan_to(lent(full))).unwrap();
    assert_eq!(outcome.ended_early, Some(EndedEarly::StreamsFailed));
    let error = outcome.down.unwrap().result.streams[0]
        .error
        .clone()
        .unwrap();
    assert!(
        error.contains("cannot write a file: No space left"),
        "{error}"
    );
    assert!(run(&mut client, &plan(1, 0, 100)).is_ok());
}

#[test]
fn the_far_end_lends_a_disk_only_where_it_says_so() {
    let _turn = in_turn();
    let tcp = TcpFlow {
        far_disk: true,
        ..TcpFlow::default()
    };
    let responder = Responder::start();
    match run(&mut responder.client(), &with(1, 0, 500, tcp.clone())) {
        Err(ClientError::PhaseRefused {
            reason: Refusal::Disk,
            message,
            ..
        }) => assert!(message.contains("--disk"), "{message}"),
        other => panic!("{other:?}"),
    }

    let folder = tempfile::tempdir().unwrap();
    let responder = Responder::with(Config {
        disk: Some(folder.path().to_owned()),
        ..Config::default()
    });
    let outcome = run(&mut responder.client(), &with(1, 1, 500, tcp)).unwrap();
    let (down, up) = (outcome.down.unwrap().result, outcome.up.unwrap().result);
    assert!(down.bytes > 0 && down.files.unwrap().read_wait_ratio.is_some_and(|r| r > 0.0));
    assert!(up.bytes > 0 && up.files.unwrap().write_wait_ratio.is_some_and(|r| r > 0.0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let disk = Some("/proc/no-such".into());
    match Server::bind(Config {
        listen,
        disk,
        ..Config::default()
    }) {
        Err(error @ ServeError::Disk { .. }) => {
            assert!(error.to_string().contains("/proc/no-such"))
        }
        other => panic!("{other:?}"),
    }
}
