//! What bears on a measurement: both ends, and the laboratory.

use plumb_model::run::{HostFacts, LabBackend, LabChange, LabClock, Run};

use crate::number::{self, ABSENT};
use crate::registry::shown;
use crate::show::Ends;
use crate::table::Kind::Text;
use crate::table::Table;

/// What bears on the measurement at both ends; all that is known of them is in the Run.
pub(crate) fn table(run: &Run) -> Table {
    let here = &run.local.host;
    let far = run.target.as_ref().and_then(|target| target.host.as_ref());
    let mut table = Table::new(
        if far.is_some() {
            "Both ends"
        } else {
            "This end"
        },
        &[("", Text), ("this host", Text), ("far host", Text)],
    );
    if far.is_none() {
        table.columns.truncate(2);
    }
    let mut fact = |name: &str, get: Tell<'_>| {
        let cells = [Some(here), far].into_iter().flatten().map(get);
        let cells: Vec<_> = cells.collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells
                .into_iter()
                .map(|cell| cell.unwrap_or_else(|| ABSENT.to_owned()));
            table.row(std::iter::once(name.to_owned()).chain(cells));
        }
    };
    let said = |text: &String| (!text.is_empty()).then(|| text.clone());
    fact("plumb", &|h| said(&h.plumb));
    fact("system", &|h| said(&h.kernel));
    let what = bears(run);
    if what.tcp {
        tcp(&mut fact);
    }
    if what.clock_source {
        fact("clock source", &|h| h.clock_source.clone());
    }
    if what.clock {
        fact("clock", &|h| {
            h.clock_synchronised.map(|yes| {
                if yes {
                    "synchronised"
                } else {
                    "not synchronised"
                }
                .to_owned()
            })
        });
    }
    table
}

/// Of all that is known of both ends, what the measurements of a Run hang on.
fn bears(run: &Run) -> Ends {
    // A Run without measurements is about the host.
    let none = run.measurements.is_empty();
    let start = Ends {
        tcp: none,
        clock_source: none,
        clock: none,
    };
    run.measurements.iter().fold(start, |all, measurement| {
        let of = shown(measurement).bears();
        Ends {
            tcp: all.tcp || of.tcp,
            clock_source: all.clock_source || of.clock_source,
            clock: all.clock || of.clock,
        }
    })
}

/// A fact of a host as text, where it is known.
type Tell<'a> = &'a dyn Fn(&HostFacts) -> Option<String>;

/// How TCP is set.
fn tcp(fact: &mut dyn FnMut(&str, Tell<'_>)) {
    let said = |text: &String| (!text.is_empty()).then(|| text.clone());
    let three = |sizes: [u64; 3]| sizes.map(|size| size.to_string()).join(" ");
    fact("congestion control", &|h| h.congestion_control.clone());
    fact("available", &|h| said(&h.congestion_controls.join(" ")));
    fact("tcp_rmem, bytes", &|h| h.tcp_rmem_bytes.map(three));
    fact("tcp_wmem, bytes", &|h| h.tcp_wmem_bytes.map(three));
    fact("tcp_adv_win_scale", &|h| {
        h.tcp_adv_win_scale.map(|v| v.to_string())
    });
    let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
    fact("window scaling", &|h| h.window_scaling.map(switch));
    fact("selective acknowledgements", &|h| h.sack.map(switch));
    fact("timestamps", &|h| h.timestamps.map(switch));
}

/// What made a laboratory another network than its scenario: a sentence for each time.
fn changed(changes: &[LabChange]) -> String {
    let alike = changes.chunk_by(|a, b| a.at == b.at);
    let sentence = |together: &[LabChange]| {
        let each = together.iter().map(|change| match &change.before {
            Some(before) => format!("{} from {before} to {}", change.setting, change.after),
            None => format!("{} to {}", change.setting, change.after),
        });
        let each = each.collect::<Vec<_>>().join(", ");
        let at = together.first().map_or("", |change| &change.at);
        format!(" Changed at {at}: {each}.")
    };
    alike.map(sentence).collect()
}

/// The laboratory in one line, with its own error.
pub(crate) fn lab(run: &Run) -> Option<String> {
    run.local.lab.as_ref().map(|lab| {
        let clock = match lab.clock {
            LabClock::Real => "",
            LabClock::Virtual => " in virtual time",
        };
        let late = lab.lateness_s.map_or_else(String::new, |d| {
            format!(
                "; it delivered packets late by {} (p50), {} (p99)",
                number::seconds(d.p50),
                number::seconds(d.p99)
            )
        });
        let pieces = match lab.piece_error_s {
            0.0 => String::new(),
            longest => format!(
                "; large segments crossed whole, which kept packets up to {} longer",
                number::seconds(longest)
            ),
        };
        let starved = match lab.starved_ratio {
            little if little < 0.01 => String::new(),
            ratio => format!(
                "; programs waited more than a millisecond for a processor {:.0} % of the time",
                ratio * 100.0
            ),
        };
        let stolen = match lab.stolen_ratio {
            little if little < 0.01 => String::new(),
            ratio => format!(
                "; the hypervisor took the processors for {:.0} % of the time in which programs wanted to run",
                ratio * 100.0
            ),
        };
        let drawn = match &lab.drawn {
            none if none.is_empty() => String::new(),
            drawn => {
                let each: Vec<_> = drawn.iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!(" of --vary ({})", each.join(", "))
            }
        };
        let changes = changed(&lab.changes);
        let by = match lab.backend {
            LabBackend::Emulated => "",
            LabBackend::Kernel => ", its links carried by the kernel",
        };
        let notes: String = lab
            .notes
            .iter()
            .map(|note| format!(" Note: {note}."))
            .collect();
        format!(
            "Measured in the laboratory{clock}: scenario {}, seed {}{drawn}{by}{late}{pieces}{starved}{stolen}.{changes}{notes}",
            lab.scenario, lab.seed
        )
    })
}
