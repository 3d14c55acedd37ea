//! What changes a machine asks first.

use std::io::IsTerminal as _;

use crate::output::ask;
use crate::usage::wrong;

/// Asks, where there is a terminal to ask on.
pub(crate) fn agreed(yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(wrong(
            "this changes the machine, and there is no terminal to ask on: add --yes; nothing was changed",
        ));
    }
    Ok(ask("Change this machine so?")?)
}
