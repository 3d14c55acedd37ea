//! A series of a target that has several, as a target of its own for whatever shows or judges it.

use super::kind::{FarEnd, Kind, Probed};
use crate::unit::Unit;

#[derive(Debug)]
pub(crate) struct Series(pub(crate) Unit);

impl Kind for Series {
    fn probe(&self, _far: &FarEnd<'_>) -> Result<Probed, String> {
        Err("it is measured with its target".to_owned())
    }

    fn unit(&self) -> Unit {
        self.0
    }

    fn is_series(&self) -> bool {
        true
    }
}
