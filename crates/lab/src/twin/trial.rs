//! What a fix of a finding changes in the twin: its typed action, or where it has none the change that its advice asks of a box which
//! the twin has.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{
    Action, Actor, Cause, Finding, Fix, InterfaceChange, Place, ShaperAction,
};
use plumb_model::results::rehearsal::RehearsedFix;
use plumb_model::run::Run;
use toml::{Table, Value};

use super::made::{NAME, Twin};
use crate::scenario::{Scenario, ScenarioError};

/// Fixes that are tried together, and what they change.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub fixes: Vec<RehearsedFix>,
    /// What is changed, or why nothing can be: a clause that follows "because".
    pub change: Result<Change, String>,
}

/// What a trial changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The twin's router shapes.
    Shape(Vec<ShaperAction>),
    /// The twin is another scenario.
    Scenario(String),
    /// The load's senders run another congestion control.
    CongestionControl(String),
}

/// What can be tried of a Run in its twin: each fix by itself, and all shapers together where there are several.
pub fn trials(run: &Run, twin: &Twin) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut shapers: Vec<(RehearsedFix, ShaperAction)> = Vec::new();
    for finding in &run.findings {
        for (number, fix) in finding.fixes.iter().enumerate() {
            let named = RehearsedFix {
                cause: finding.cause,
                place: finding.place,
                fix: number as u64,
                on: fix.on,
                summary: fix.summary.clone(),
            };
            let change = match &fix.action {
                Some(action) => typed(action, fix, twin),
                None => advised(finding, fix, twin),
            };
            if let Ok(Change::Shape(shaper)) = &change {
                shapers.extend(shaper.iter().map(|shaper| (named.clone(), shaper.clone())));
            }
            trials.push(Trial {
                fixes: vec![named],
                change,
            });
        }
    }
    let directions = |one| shapers.iter().any(|(_, shaper)| shaper.direction == one);
    if directions(OneDirection::Up) && directions(OneDirection::Down) {
        let (fixes, shapers) = shapers.into_iter().unzip();
        trials.push(Trial {
            fixes,
            change: Ok(Change::Shape(shapers)),
        });
    }
    trials
}

fn typed(action: &Action, fix: &Fix, twin: &Twin) -> Result<Change, String> {
    match (action, fix.on) {
        (Action::Shaper(shaper), _) => Ok(Change::Shape(vec![shaper.clone()])),
        (Action::Sysctl(set), Actor::ThisHost | Actor::FarHost) => match set.key.as_str() {
            "net.ipv4.tcp_congestion_control" => Ok(Change::CongestionControl(set.value.clone())),
            key if !key.starts_with("net.ipv") => {
                Err(format!("a node of a lab has no {key} of its own"))
            }
            key => edited(twin, |scenario| {
                let node = match fix.on {
                    Actor::FarHost => "server",
                    _ => "client",
                };
                let node = named(scenario, "node", node)?;
                let settings = node.entry("sysctl").or_insert_with(|| Table::new().into());
                let value = Value::String(set.value.clone());
                settings.as_table_mut()?.insert(key.to_owned(), value);
                Some(())
            }),
        },
        (Action::Interface(set), Actor::ThisHost) => match set.change {
            InterfaceChange::MtuBytes(bytes) => edited(twin, |scenario| {
                let lan = named(scenario, "link", "lan")?;
                lan.insert("mtu".to_owned(), i64::from(bytes).into());
                Some(())
            }),
            _ => Err("an interface of a lab has no such setting".to_owned()),
        },
        (_, on) => Err(format!(
            "the twin does not have the settings of the {}",
            on.name()
        )),
    }
}

/// What advice without a typed action asks of a box that the twin has.
fn advised(finding: &Finding, fix: &Fix, twin: &Twin) -> Result<Change, String> {
    use Cause as C;
    let far = matches!(fix.on, Actor::Provider);
    let direction = match finding.place {
        Place::Uplink => Some(OneDirection::Up),
        Place::Downlink => Some(OneDirection::Down),
        _ => None,
    };
    let removes = |cell: &'static str| {
        edited(twin, |scenario| {
            let mut any = false;
            for direction in [OneDirection::Up, OneDirection::Down] {
                any |= of_line(scenario, direction, cell).is_some();
                cells(scenario, direction)?.retain(|value| !is_cell(value, cell));
            }
            any.then_some(())
        })
    };
    match (finding.cause, direction) {
        (
            C::BufferbloatUp | C::BufferbloatDown | C::ShallowQueue | C::QueueTargetLow,
            Some(direction),
        ) if far => edited(twin, |scenario| {
            let shaper = of_line(scenario, direction, "shaper")?;
            shaper.insert("queue".to_owned(), "fq_codel".into());
            Some(())
        }),
        (C::Policer, Some(direction)) if far => edited(twin, |scenario| {
            let policer = of_line(scenario, direction, "policer")?;
            let rate = policer.get("rate")?.clone();
            cells(scenario, direction)?.retain(|value| !is_cell(value, "policer"));
            let shaper = of_line(scenario, direction, "shaper")?;
            shaper.insert("rate".to_owned(), rate);
            shaper.insert("queue".to_owned(), "fq_codel".into());
            Some(())
        }),
        (C::PerFlowLimit, Some(_)) if far => removes("flow-limit"),
        (C::UdpLimited, Some(_)) if far => removes("udp-limit"),
        (C::PacketRateLimited, Some(_)) => removes("packet_rate"),
        (C::WindowScalingStripped, _) => removes("no-wscale"),
        (C::SackStripped, _) => removes("no-sack"),
        (C::TimestampsStripped, _) => removes("no-timestamps"),
        (C::Outage, _) => removes("outage"),
        (C::Handover, _) => removes("handover"),
        (C::PmtudBlackHole, _) if fix.on == Actor::Router => edited(twin, |scenario| {
            let least = [OneDirection::Up, OneDirection::Down].into_iter();
            let sizes: Vec<i64> = least
                .filter_map(|direction| {
                    of_line(scenario, direction, "mtu")?
                        .get("bytes")?
                        .as_integer()
                })
                .collect();
            let segment = sizes.into_iter().min()? - HEADERS_BYTES;
            for direction in [OneDirection::Up, OneDirection::Down] {
                let clamp = [
                    ("type", Value::from("mss_clamp")),
                    ("bytes", segment.into()),
                ];
                let clamp = clamp.map(|(key, value)| (key.to_owned(), value));
                cells(scenario, direction)?.insert(0, Table::from_iter(clamp).into());
            }
            Some(())
        }),
        (C::PmtudBlackHole, _) if far => edited(twin, |scenario| {
            let mut any = false;
            for direction in [OneDirection::Up, OneDirection::Down] {
                if let Some(mtu) = of_line(scenario, direction, "mtu") {
                    mtu.insert("icmp".to_owned(), true.into());
                    any = true;
                }
            }
            any.then_some(())
        }),
        _ => Err("plumb does not know what it would change in the twin".to_owned()),
    }
}

/// Headers of IPv4 and TCP, in bytes.
const HEADERS_BYTES: i64 = 40;

/// The twin's scenario with a change; `change` returns nothing where the twin lacks what it would change.
fn edited(twin: &Twin, change: impl FnOnce(&mut Table) -> Option<()>) -> Result<Change, String> {
    let lacks = || "the twin does not have what it would change".to_owned();
    let mut scenario: Table = twin.text.parse().map_err(|_| lacks())?;
    change(&mut scenario).ok_or_else(lacks)?;
    let text = scenario.to_string();
    Scenario::parse(&text, NAME)
        .map_err(|error: ScenarioError| format!("the lab does not take it ({error})"))?;
    Ok(Change::Scenario(text))
}

/// The element of that name in one of the scenario's lists.
fn named<'a>(scenario: &'a mut Table, list: &str, name: &str) -> Option<&'a mut Table> {
    let mut all = scenario.get_mut(list)?.as_array_mut()?.iter_mut();
    all.find_map(|element| {
        let element = element.as_table_mut()?;
        let is_it = element.get("name").and_then(Value::as_str) == Some(name);
        is_it.then_some(element)
    })
}

fn cells(scenario: &mut Table, direction: OneDirection) -> Option<&mut Vec<Value>> {
    named(scenario, "link", "line")?
        .get_mut(direction.name())?
        .as_array_mut()
}

/// The cell of that name or type in a direction of the line.
fn of_line<'a>(
    scenario: &'a mut Table,
    direction: OneDirection,
    name: &str,
) -> Option<&'a mut Table> {
    let mut all = cells(scenario, direction)?.iter_mut();
    all.find(|cell| is_cell(cell, name))?.as_table_mut()
}

fn is_cell(cell: &Value, name: &str) -> bool {
    let field = |key: &str| cell.get(key).and_then(Value::as_str);
    field("name").or(field("type")) == Some(name)
}
