//! What a load phase carried in one direction over TCP: rates, how they came about, what the
//! senders said of themselves.

mod limit;

use plumb_model::context::Phase;
use plumb_model::order::sort_few;
use plumb_model::results::{Direction, SlowStartEnd, TcpSender, ThroughputResult};
use plumb_model::run::{Measurement, Run};
use plumb_model::units::si;

use crate::carried::{Carried, CarriedBy, Segments};
use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::context;
use crate::kinds::loaded_latency;
use crate::number::{self, Scale};
use crate::phase::flow_in_phase;
use crate::registry::{Found, all};
use crate::show::{Place, Show, Tables, Trace};
use crate::table::{Table, blank};

type Row<'a> = Found<'a, ThroughputResult>;

impl Show for ThroughputResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let mut rows: Vec<Row<'_>> = all(run).collect();
        let place = |row: &Row<'_>| (row.phase, row.result.direction == Direction::Down);
        sort_few(&mut rows, |a, b| place(a).cmp(&place(b)));
        tables.add(Place::Rates, [rates(&rows)]);
        tables.detail(Place::Rates, [transfer(&rows)]);
        tables.add(Place::Rates, [shares(&rows)]);
        tables.fold(streams(&rows));
        tables.detail(Place::Senders, [senders(&rows), limits(&rows), tls(&rows)]);
    }

    fn carried(&self) -> Option<Carried<'_>> {
        Some(Carried {
            direction: self.direction,
            cpu: &self.cpu,
            by: CarriedBy::Tcp(Segments {
                bytes: self.bytes,
                retransmits: self.tcp.retransmits,
                min_rtt_s: self.tcp.min_rtt_s,
                max_srtt_s: self.tcp.max_srtt_s,
                mss_bytes: self.tcp.mss_bytes,
                cc: &self.cc,
                streams: &self.streams,
            }),
        })
    }

    /// What each direction carried by itself, and what limited it.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let rows = all::<Self>(run).filter(|row| {
            let alone = row.phase == row.result.direction.into();
            alone && row.measurement.context.experiment.is_none()
        });
        let others = |load: &Measurement, direction: Direction| {
            let mut loaded = loaded_latency::loaded(run);
            let beside = loaded.find(|(measurement, latency)| {
                latency.direction == direction
                    && measurement.context.experiment.is_none()
                    // Several Runs may be one: a sentence has figures of one of them.
                    && measurement.context.run == load.context.run
            });
            beside.map(|(_, latency)| latency.increase_s.p95.max(0.0))
        };
        rows.filter_map(|row| {
            limit::sentence(
                row.measurement,
                others(row.measurement, row.result.direction),
            )
        })
        .collect()
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn rate(&self) -> Option<(Direction, f64)> {
        Some((self.direction, self.bps))
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let retransmits = self.tcp.retransmits as f64;
        Quantities::of(phase, None)
            .direction(self.direction)
            .number("bps", ChangeUnit::Bps, self.bps)
            .number("steady_bps", ChangeUnit::Bps, self.steady_bps)
            .number("tcp.retransmits", ChangeUnit::Count, retransmits)
            .found
    }

    fn trace(&self, series: &str) -> Option<Trace> {
        (series == "bps").then_some(Trace::Rate(self.direction))
    }

    fn hangs_on_length(&self) -> bool {
        true
    }

    fn load(&self) -> Option<String> {
        Some(format!(
            "{} × {} {}",
            self.streams.len(),
            self.cc,
            self.direction.name()
        ))
    }

    fn ended_early(&self, phase: Phase) -> Vec<String> {
        let flow = flow_in_phase(phase, self.direction);
        let failed = self
            .streams
            .iter()
            .filter_map(|stream| Some((stream.id, stream.error.as_ref()?)));
        failed
            .map(|(id, error)| format!("{flow}, stream {id} ended early: {error}"))
            .collect()
    }
}

impl Row<'_> {
    /// The name of its row: what flowed, and beside what.
    fn name(&self) -> String {
        self.flow(self.result.direction)
    }

    /// Whether the sending end's record is there: it goes missing with a far end that goes away.
    fn has_sender(&self) -> bool {
        !self.result.cc.is_empty()
    }
}

/// What each direction carried.
fn rates(rows: &[Row<'_>]) -> Table {
    let scale = Scale::rates(rows.iter().map(|row| row.result.bps));
    Table::of(format!("Rate, {}", scale.unit), rows)
        .text("", |row| row.name())
        .num("received", |row| scale.show(Some(row.result.bps)))
        .num("after 2 s", |row| scale.show(row.result.steady_bps))
        .num("data", |row| number::bytes(row.result.bytes as f64))
        .num("flows", |row| row.result.streams.len())
        .num("Jain", |row| {
            let sharing = row.result.sharing.as_ref();
            let index = sharing.and_then(|sharing| sharing.jain_index);
            blank(index.map(|index| format!("{index:.3}")))
        })
        .num("CPU here", |row| {
            row.result.cpu.local_ratio.map(number::percent)
        })
        .num("CPU far", |row| {
            row.result.cpu.remote_ratio.map(number::percent)
        })
        .noted("Payload that reached the receiver; CPU is of one core.")
}

/// How a rate came about: its beginning, what it cost, and what a file had to do with it.
fn transfer(rows: &[Row<'_>]) -> Table {
    let per_gb = |seconds: Option<f64>| {
        blank(seconds.map(|seconds| format!("{} s/GB", number::plain(seconds))))
    };
    let share = |ratio: Option<f64>| blank(ratio.map(number::percent));
    // Runs of before have none of this.
    let known = rows.iter().filter(|row| {
        let (cpu, files) = (&row.result.cpu, row.result.files);
        let files = files.and_then(|files| files.read_wait_ratio.or(files.write_wait_ratio));
        let cost = cpu.local_s_per_gb.or(cpu.remote_s_per_gb);
        row.result.slow_start.is_some() || cost.or(files).is_some()
    });
    Table::of("Slow start, cost and files", known)
        .text("", |row| row.name())
        .num("slow start", |row| {
            blank(row.result.slow_start.map(|start| {
                // Nothing but the rate shows such an end.
                let sign = match start.ended_by {
                    SlowStartEnd::Ssthresh => "",
                    SlowStartEnd::RatePlateau => " *",
                };
                format!("{}{sign}", number::seconds(start.duration_s))
            }))
        })
        .num("data in it", |row| {
            let start = row.result.slow_start;
            blank(start.map(|start| number::bytes(start.bytes as f64)))
        })
        .num("rate after", |row| {
            let after = row.result.slow_start.and_then(|s| s.rate_after_bps);
            blank(after.map(|rate| si(rate, "bit/s")))
        })
        .num("CPU here", |row| per_gb(row.result.cpu.local_s_per_gb))
        .num("CPU far", |row| per_gb(row.result.cpu.remote_s_per_gb))
        .num("file read", |row| {
            share(row.result.files.and_then(|files| files.read_wait_ratio))
        })
        .num("file written", |row| {
            share(row.result.files.and_then(|files| files.write_wait_ratio))
        })
        .noting(transfer_notes(rows))
}

/// What must be known to read how the rates came about.
fn transfer_notes(rows: &[Row<'_>]) -> Vec<&'static str> {
    let any = |holds: fn(&ThroughputResult) -> bool| rows.iter().any(|row| holds(row.result));
    let plateau = |r: &ThroughputResult| {
        r.slow_start
            .is_some_and(|start| start.ended_by == SlowStartEnd::RatePlateau)
    };
    let all = [
        (
            any(|r| r.files.is_some_and(|files| files.limits())),
            "The disk limits: more than half of the time a file was waited for.",
        ),
        (
            any(|r| r.zero_copy_send),
            "Zero-copy send (sendfile): the result does not represent an application that writes what it made.",
        ),
        (
            any(|r| r.discard_receive),
            "Received data was dropped unseen (MSG_TRUNC): the result does not represent an application that reads.",
        ),
        (
            any(plateau),
            "* No loss or delay ended slow start; the rate just stopped growing.",
        ),
        (
            any(|r| r.files.is_some()),
            "Files: share of time in which they were waited for.",
        ),
    ];
    all.into_iter()
        .filter_map(|(holds, note)| holds.then_some(note))
        .collect()
}

/// How different flows beside each other shared a direction.
fn shares(rows: &[Row<'_>]) -> Table {
    // Not where classes of traffic were compared: they have a table of their own.
    let shared = || {
        rows.iter().filter_map(|row| {
            let sharing = row.result.sharing.as_ref()?;
            let several = sharing.groups.len() > 1 && context::has_flows(row.measurement);
            several.then(|| (row.name(), sharing))
        })
    };
    let groups = shared().flat_map(|(flow, sharing)| {
        let groups = sharing.groups.iter();
        groups.map(move |group| (flow.clone(), group))
    });
    let evenness: Vec<_> = shared()
        .filter_map(|(flow, sharing)| {
            let (whole, each) = (sharing.jain_index?, sharing.jain_index_each_second.as_ref()?);
            Some(format!(
                "{flow}: Jain's index of all flows is {whole:.3} over the whole phase, and {:.3} to {:.3} second by second",
                each.min, each.max
            ))
        })
        .collect();
    Table::of("Shares of flows side by side", groups)
        .text("", |(flow, _)| flow.clone())
        .text("flows", |(_, group)| {
            format!("{} × {}", group.streams, group.cc)
        })
        .num("rate", |(_, group)| number::rate(group.bps))
        .num("share", |(_, group)| number::percent(group.share_ratio))
        .num("if even", |(_, group)| {
            number::percent(group.even_share_ratio)
        })
        .noting((!evenness.is_empty()).then(|| format!("{}.", evenness.join("; "))))
}

/// Every stream by itself, where a phase had more than one.
fn streams(rows: &[Row<'_>]) -> Table {
    let streams: Vec<_> = rows
        .iter()
        .filter(|row| row.result.streams.len() > 1)
        .flat_map(|row| row.result.streams.iter().map(move |s| (row.name(), s)))
        .collect();
    let scale = Scale::rates(streams.iter().map(|(_, stream)| stream.bps));
    Table::of(format!("Streams, {}", scale.unit), &streams)
        .text("", |(name, _)| name.clone())
        .num("stream", |(_, stream)| stream.id)
        .num("received", |(_, stream)| scale.show(Some(stream.bps)))
        .num("data", |(_, stream)| number::bytes(stream.bytes as f64))
        .num("retransmits", |(_, stream)| stream.retransmits)
        .text("ended early", |(_, stream)| blank(stream.error.as_ref()))
        .done()
}

/// What the sending TCPs said of themselves.
fn senders(rows: &[Row<'_>]) -> Table {
    Table::of("TCP senders", rows.iter().filter(|row| row.has_sender()))
        .text("", |row| row.name())
        .text("cc", |row| row.result.cc.clone())
        .num("retransmits", |row| row.result.tcp.retransmits)
        .num("min RTT", |row| {
            row.result.tcp.min_rtt_s.map(number::seconds)
        })
        .num("max SRTT", |row| {
            row.result.tcp.max_srtt_s.map(number::seconds)
        })
        .num("in flight", |row| {
            number::bytes(row.result.tcp.max_in_flight_bytes as f64)
        })
        .num("MSS", |row| format!("{} B", row.result.tcp.mss_bytes))
        .text("with", |row| agreed(&row.result.tcp))
        .done()
}

/// What both ends agreed on beyond plain TCP.
fn agreed(sender: &TcpSender) -> String {
    let all = [
        (sender.ecn, true, "ECN"),
        (sender.fast_open, true, "Fast Open"),
        (sender.mptcp, true, "MPTCP"),
        // Every TCP has these, so that their absence is what is worth a word.
        (sender.window_scaling, false, "no window scaling"),
        (sender.sack, false, "no SACK"),
        (sender.timestamps, false, "no timestamps"),
    ];
    let had: Vec<_> = all
        .into_iter()
        .filter_map(|(had, worth, name)| (had == Some(worth)).then_some(name))
        .collect();
    had.join(", ")
}

/// Where the senders' time went, and the buffers that bound them.
fn limits(rows: &[Row<'_>]) -> Table {
    let rows: Vec<_> = rows.iter().filter(|row| row.has_sender()).collect();
    let size = |value: Option<u64>| value.map(|v| number::bytes(v as f64));
    let mut notes: Vec<String> = Vec::new();
    for row in &rows {
        let of_plumb = [
            context::pacing_bps(row.measurement).map(|bps| {
                format!(
                    "Streams were paced at {} each (--pacing): TCP counts waiting for that as network.",
                    number::rate(bps)
                )
            }),
            context::is_rpm(row.measurement).then(|| {
                "With --rpm plumb itself leaves hardly anything unsent in the socket (TCP_NOTSENT_LOWAT), so that requests do not wait there: that is 'app', and does not slow a stream down."
                    .to_owned()
            }),
        ];
        for note in of_plumb.into_iter().flatten() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Table::of(
        "What limited the senders (share of time), and their buffers",
        rows,
    )
    .text("", |row| row.name())
    .num("network", |row| {
        number::percent(row.result.tcp.limited.network_ratio)
    })
    .num("rwnd", |row| {
        number::percent(row.result.tcp.limited.rwnd_ratio)
    })
    .num("sndbuf", |row| {
        number::percent(row.result.tcp.limited.sndbuf_ratio)
    })
    .num("app", |row| {
        number::percent(row.result.tcp.limited.app_ratio)
    })
    .num("send buf", |row| size(row.result.tcp.send_buffer_bytes))
    .num("recv buf", |row| {
        size(row.result.tcp_receiver.receive_buffer_bytes)
    })
    .num("window", |row| {
        size(row.result.tcp_receiver.max_window_bytes)
    })
    .noting(notes)
}

/// Cipher and handshakes of every encrypted direction.
fn tls(rows: &[Row<'_>]) -> Table {
    let rows: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.name(), row.result.tls.as_ref()?)))
        .collect();
    let scale = Scale::seconds(rows.iter().map(|(_, tls)| tls.handshake_s.p50));
    let time = |value: f64| format!("{} {}", scale.show(Some(value)), scale.unit);
    Table::of("Encryption", &rows)
        .text("", |(name, _)| name.clone())
        .text("cipher suite", |(_, tls)| tls.cipher_suite.clone())
        .num("handshakes", |(_, tls)| tls.handshake_s.count)
        .num("median", |(_, tls)| time(tls.handshake_s.p50))
        .num("max", |(_, tls)| time(tls.handshake_s.max))
        .noted("Encrypted by the programs, not by their kernels (no kTLS).")
}
