//! What charts are drawn with.

use std::fmt::Write;

use plumb_model::printable;

/// Width of every chart, in the units of its view box; the page scales it.
pub(crate) const WIDTH: f64 = 960.0;

/// Width of a letter, about: the text is set by the reader's machine.
pub(crate) const LETTER: f64 = 6.8;

/// A chart being drawn.
pub(crate) struct Canvas {
    body: String,
}

/// How text stands at its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(crate) fn new() -> Self {
        Self {
            body: String::new(),
        }
    }

    pub(crate) fn rule(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    pub(crate) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.push(format_args!(r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#));
    }

    /// A path of the given data; nothing when there is none.
    pub(crate) fn path(&mut self, class: &str, data: &str) {
        if !data.is_empty() {
            self.push(format_args!(r#"<path class="{class}" d="{data}"/>"#));
        }
    }

    /// One line of text.
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// The chart, with what it shows in words for those who cannot see it.
    pub(crate) fn finish(self, height: f64, description: &str) -> String {
        let (description, body) = (escape(description), self.body);
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{description}\">\n{body}</svg>"
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Text from outside as it may stand between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable::line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            '/' => escaped.push_str("&#x2f;"),
            c => escaped.push(c),
        }
    }
    escaped
}
