//! What takes too long to be tried before every change; `make test-slow` does. tests/README.md says what stands in
//! for each of them in `make test`.

mod browser;
mod scenarios;
mod stock_kernel;
mod truth;
mod verdict;
