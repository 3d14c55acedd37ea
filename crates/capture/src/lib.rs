//! Captures of packets: reads them, follows every TCP connection, and sums up the rest. Whatever is read is treated as
//! hostile; memory is bounded, and nothing here does I/O but what it is given to read.

mod analysis;
mod anonymise;
mod dns;
mod export;
mod filter;
mod flows;
mod followed;
mod graphs;
mod icmp;
mod packet;
mod passing;
mod read;
mod sides;
mod sieve;
mod source;
mod sums;
mod table;
mod tcp;
#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod testing;
mod tls;
mod watch;
mod wireless;

pub use analysis::{Analysis, Named};
pub use anonymise::Anonymiser;
pub use export::{Folder, Form, Rows, Xplot};
pub use filter::{Filter, FilterError, Instruction, Program};
pub use followed::{Followed, Observer};
pub use passing::{PassingFlow, Totals, Viewer};
pub use read::{Frame, ReadError, Reader, Told};
pub use sides::Sides;
pub use sieve::Sieve;
pub use source::{Next, Source};
pub use watch::{Keeper, Watch};
