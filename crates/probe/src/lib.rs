//! Thin traffic: probes, stamped by the kernel, and what they show of a path.
//!
//! A folder for each question: how long round trips take ([`ping`], and [`sweep`] for many targets at once), where
//! packets go ([`path`]), how large they may be ([`mtu`]), what the lines carry ([`capacity`]); how long a silent
//! connection is kept is a file ([`idle`]), and what a gateway reports of its line another ([`gateway`]). What they share stands beside them: one TCP connection in its parts
//! ([`exchange`]), whose certificates TLS trusts ([`root_store`]), and who stands at a hop ([`hop`]).

pub mod capacity;
mod deadline;
pub mod exchange;
pub mod gateway;
pub mod get;
pub mod hop;
pub mod idle;
pub mod mail;
pub mod mtu;
pub mod page;
pub mod path;
pub mod ping;
pub mod post;
pub mod root_store;
pub mod sweep;

pub use ping::log::ProbeLog;
pub use ping::pattern::Pattern;
pub use ping::plan::{Key, Pace, Plan, ProbeError, Sizes};
pub use ping::probing::Probing;
pub use ping::progress::{Progress, ProgressHandle, Seen};
pub use ping::sample::{Exchange, FarClock, FarEnd, Phases, Said, Sample};
pub use root_store::{Trust, TrustError};
