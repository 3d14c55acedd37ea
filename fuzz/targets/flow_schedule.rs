//! A flow as a client asks for it, and the loop of its sender: no input may make one that outlives its
//! session.
#![no_main]

use plumb_load::udp::schedule::Schedule;
use plumb_wire::native::control::flow::udp::{Pattern, Times, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_model::direction::OneDirection;
use plumb_wire::native::control::frame::decode_body;

/// The longest session that a responder allows by itself.
const LASTS_NS: u64 = 600_000_000_000;

/// What one round of a sender takes at least, so that there are as many of them as here.
const ROUND_NS: u64 = 10_000_000;

fn number(bytes: &mut &[u8]) -> Option<f64> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(f64::from_be_bytes(*first))
}

/// The same numbers as they are, since JSON has neither NaN nor infinity.
fn raw(mut bytes: &[u8]) -> Option<UdpFlow> {
    let (kind, rest) = bytes.split_first()?;
    bytes = rest;
    let pattern = match kind % 4 {
        0 => Pattern::Constant {
            pps: number(&mut bytes)?,
        },
        1 => Pattern::Poisson {
            pps: number(&mut bytes)?,
        },
        2 => Pattern::OnOff {
            pps: number(&mut bytes)?,
            on_s: number(&mut bytes)?,
            off_s: number(&mut bytes)?,
            times: if kind & 4 == 0 {
                Times::Fixed
            } else {
                Times::Exponential
            },
        },
        _ => Pattern::Trace {
            packets: std::iter::from_fn(|| Some((number(&mut bytes)?, 100))).collect(),
        },
    };
    Some(UdpFlow {
        gso: (kind & 8 != 0).then_some(u16::from(kind >> 4)),
        ..UdpFlow::new(100, pattern)
    })
}

fn run(flow: UdpFlow, is_checked: bool) {
    let Some(mut schedule) = Schedule::of(&flow) else {
        return;
    };
    let flows = Flows {
        count: 1,
        role: OneDirection::Down,
        flow: Flow::Udp(flow),
    };
    if is_checked && flows.check().is_err() {
        return;
    }
    let mut now_ns = 0;
    while now_ns < LASTS_NS {
        schedule.skip(now_ns);
        let due_ns = schedule.departure().due_ns;
        assert!(due_ns >= now_ns, "{flows:?}");
        now_ns = due_ns.max(now_ns + ROUND_NS);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(flow) = raw(bytes) {
        run(flow, false);
    }
    if let Ok(flow) = decode_body::<UdpFlow>(bytes) {
        run(flow, true);
    }
});
