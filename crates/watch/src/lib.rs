//! Measuring on a schedule: what to probe stands in one file ([`config`]) and is of a kind of [`target`], when in [`schedule`], the history is kept in
//! one database ([`store`]), and [`page`] shows it, with its outages ([`outage`]) and alarms ([`alarm`]), which
//! [`deliver`] sends; several of them measure each other in a [`mesh`]; [`remote_write`] sends the metrics. [`watching`] runs it all.

pub mod access;
pub mod alarm;
pub mod availability;
mod columns;
pub mod config;
pub mod deliver;
pub mod distribution;
pub mod export;
pub mod flows;
mod glob;
pub mod mesh;
mod metrics;
pub mod month;
pub mod outage;
pub mod page;
mod probe;
pub mod remote_write;
pub mod report;
pub mod sample;
pub mod schedule;
mod silence;
mod snmp;
pub mod store;
mod sweep;
pub mod target;
pub mod unit;
pub mod watching;
