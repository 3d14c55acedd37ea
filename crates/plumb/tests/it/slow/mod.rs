//! What takes too long to be tried before every change; `make test-slow` does. tests/README.md says what stands in
//! for each of them in `make test`.

mod alarms;
mod browser;
mod captures;
mod clocks;
mod line_framing;
mod loads;
mod places;
mod prometheus;
mod scenarios;
mod segments;
mod stock_kernel;
mod truth;
mod twin;
mod verdict;
