//! By what alarms are sent, as the file has it.

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use crate::deliver::delivery;
use crate::deliver::kinds;

/// A delivery of the file.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub name: String,
    pub by: Arc<dyn delivery::Delivery>,
}

/// What deliveries of all kinds have; the rest is of its kind.
#[derive(Deserialize)]
pub(super) struct Entry {
    name: Spanned<String>,
    kind: Spanned<String>,
    #[serde(flatten)]
    own: toml::Table,
}

impl Entry {
    /// The delivery, beside those that were read before it.
    pub(super) fn delivery(&self, others: &[Delivery]) -> Result<Delivery, (Range<usize>, String)> {
        let name = self.name.get_ref().trim();
        if name.is_empty() || name.contains(char::is_control) {
            return Err((
                self.name.span(),
                "a delivery has a name, without control characters".into(),
            ));
        }
        if others.iter().any(|other| other.name == name) {
            return Err((
                self.name.span(),
                format!("another delivery is called '{name}'"),
            ));
        }
        let by = kinds::delivery(self.kind.get_ref(), self.own.clone())
            .map_err(|why| (self.kind.span(), format!("delivery '{name}': {why}")))?;
        Ok(Delivery {
            name: name.to_owned(),
            by: by.into(),
        })
    }
}
