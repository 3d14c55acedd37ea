//! Charts, drawn by hand as SVG fragments for a page. Colours come from the page's style sheet by
//! class, so that a chart is light or dark with the page; text from outside never enters one
//! unescaped.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod canvas;
pub(crate) mod cdf;
mod limit;
mod polyline;
pub(crate) mod series;
pub(crate) mod timeline;
