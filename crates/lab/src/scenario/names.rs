//! What the directions of links, and the cells in them, are called.

use std::fmt;

use plumb_model::direction::OneDirection;
use serde::Deserialize;

/// The cell that is added where a cell of this name is set and none is there; its kind, too.
pub const SHAPER: &str = "shaper";

/// A direction of a link, written `LINK.up` or `LINK.down`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct LinkEnd {
    pub link: String,
    pub way: OneDirection,
}

impl TryFrom<String> for LinkEnd {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = || format!("'{text}' is not a direction of a link: write LINK.up or LINK.down");
        let (link, way) = text.split_once('.').ok_or_else(wrong)?;
        Ok(Self {
            link: link.to_owned(),
            way: way.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.link, self.way)
    }
}

/// A cell of a link, written `LINK.up.CELL` or `LINK.down.CELL`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct CellPath {
    pub end: LinkEnd,
    pub cell: String,
}

impl TryFrom<String> for CellPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let path = text.rsplit_once('.').and_then(|(end, cell)| {
            Some(Self {
                end: LinkEnd::try_from(end.to_owned()).ok()?,
                cell: cell.to_owned(),
            })
        });
        path.ok_or_else(|| {
            format!(
                "'{text}' names no cell: write LINK.up.CELL or LINK.down.CELL, such as wan.up.shaper"
            )
        })
    }
}

impl fmt::Display for CellPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.end, self.cell)
    }
}
