//! What the laboratory says on standard error.

use crate::stderr::say_as;

pub(super) fn complain(error: &dyn std::fmt::Display) {
    say_as("plumb lab", error);
}
