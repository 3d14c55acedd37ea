//! The two directions of a link, with the cells that they share.

use std::collections::BTreeMap;

use super::{Chain, ChainError, Named, seed_of};
use crate::spec::{Built, ChainSpec};
use crate::time::Time;

/// Builds the two directions of a link, whose time starts at zero; the seeds decide whatever is
/// random in them. A kind of cell that both directions share is written in both, with the same
/// name and settings.
///
/// # Errors
/// When two cells of a direction have one name, or a shared cell is not in both.
pub fn build_link(
    up: &ChainSpec,
    down: &ChainSpec,
    [up_seed, down_seed]: [u64; 2],
) -> Result<[Chain; 2], ChainError> {
    let mut other_ends = BTreeMap::new();
    let mut up_chain = Chain::new(up_seed);
    for named in &up.0 {
        match named.cell.build(seed_of(up_seed, &named.name), Time::ZERO) {
            Built::Own(cell) => up_chain.put(Time::ZERO, None, Named::own(named, cell))?,
            Built::Shared([this, other]) if down.0.contains(named) => {
                up_chain.put(Time::ZERO, None, Named::end(named, this))?;
                other_ends.insert(&named.name, other);
            }
            Built::Shared(_) => return Err(ChainError::unpaired(named)),
        }
    }
    let mut down_chain = Chain::new(down_seed);
    for named in &down.0 {
        if let Some(end) = other_ends.remove(&named.name) {
            down_chain.put(Time::ZERO, None, Named::end(named, end))?;
        } else {
            down_chain.insert(Time::ZERO, None, named)?;
        }
    }
    Ok([up_chain, down_chain])
}

/// Builds a chain by itself.
#[cfg(test)]
pub(crate) fn build(spec: &ChainSpec, seed: u64) -> Result<Chain, ChainError> {
    build_link(spec, &ChainSpec::default(), [seed, 0]).map(|[chain, _]| chain)
}
