//! `--down`, `--up`, `--both`: the directions of the load, seen from the client.

use clap::Args;
use plumb_model::results::Direction;

/// Which directions to load, in order; each given one is a phase of its own.
#[derive(Args)]
pub(crate) struct Directions {
    /// From the far end to here alone
    #[arg(short = 'R', long, alias = "reverse")]
    down: bool,
    /// From here to the far end alone
    #[arg(long)]
    up: bool,
    /// Both at once; beside --up or --down a phase of its own
    #[arg(long, alias = "bidir")]
    both: bool,
}

impl Directions {
    /// Those that were asked for, or else `otherwise`.
    pub(crate) fn or(&self, otherwise: &[Direction]) -> Vec<Direction> {
        let asked: Vec<_> = [
            (self.up, Direction::Up),
            (self.down, Direction::Down),
            (self.both, Direction::Both),
        ]
        .into_iter()
        .filter_map(|(asked, direction)| asked.then_some(direction))
        .collect();
        if asked.is_empty() {
            otherwise.to_vec()
        } else {
            asked
        }
    }
}
