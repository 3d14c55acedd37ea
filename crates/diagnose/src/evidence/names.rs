//! Questions to name servers.

use plumb_model::protocol::Protocol;
use plumb_model::results::port::NOBODYS_ADDRESS;

use super::Idle;
use crate::Case;

/// Questions to one name server, as probes of it.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) asked: Idle<'a>,
}

impl Names<'_> {
    /// Whether the address is the one that no host has.
    pub(crate) fn is_nobodys(self) -> bool {
        self.asked.result.address == NOBODYS_ADDRESS.to_string()
    }
}

impl<'a> Case<'a> {
    /// Those to every server that was asked, in the order in which programs ask them.
    pub(crate) fn name_servers(&self) -> impl Iterator<Item = Names<'a>> + use<'a> {
        let asked = self.probes_by(Protocol::Dns);
        asked.map(|asked| Names { asked })
    }
}
