//! What charts are drawn with.

use std::fmt::Write;

use plumb_model::printable;

/// For how wide a page a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Wide,
    /// A phone held upright.
    Narrow,
}

impl Width {
    /// In the units of the view box, which the page scales: on a phone about one unit for each CSS pixel, so that
    /// the letters stay as large as in the text.
    pub(crate) fn units(self) -> f64 {
        match self {
            Self::Wide => 960.0,
            Self::Narrow => 360.0,
        }
    }

    /// How many ticks an axis of time has room for.
    pub(crate) fn ticks(self) -> usize {
        match self {
            Self::Wide => 12,
            Self::Narrow => 5,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// A chart once for each width; the page shows the one that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawing {
    pub(crate) wide: String,
    pub(crate) narrow: String,
}

impl Drawing {
    pub(crate) fn of(draw: impl Fn(Width) -> String) -> Self {
        Self {
            wide: draw(Width::Wide),
            narrow: draw(Width::Narrow),
        }
    }

    /// Both, as they stand in a page.
    pub(crate) fn both(&self) -> String {
        format!("{}{}", self.wide, self.narrow)
    }
}

/// Width of a letter, about: the text is set by the reader's machine.
pub(crate) const LETTER: f64 = 6.8;

/// Height of a row of a legend.
pub(crate) const LEGEND_LINE: f64 = 18.0;

/// Width of the sample of a line before its name, and between a name and the next sample.
const LEGEND_SAMPLE: f64 = 26.0;
const LEGEND_GAP: f64 = 16.0;

/// Where the entries of a legend begin: how far to the right, and in which row.
fn legend_places(left: f64, right: f64, entries: &[(String, String)]) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (left, 0);
    let place = |(_, name): &(String, String)| {
        let takes = LEGEND_SAMPLE + LETTER * name.chars().count() as f64;
        if x > left && x + takes > right {
            (x, row) = (left, row + 1);
        }
        let place = (x, row);
        x += takes + LEGEND_GAP;
        place
    };
    entries.iter().map(place).collect()
}

/// How many rows a legend takes.
pub(crate) fn legend_rows(left: f64, right: f64, entries: &[(String, String)]) -> usize {
    legend_places(left, right, entries)
        .last()
        .map_or(0, |(_, row)| row + 1)
}

/// A chart being drawn.
pub(crate) struct Canvas {
    width: Width,
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
    pub(crate) fn new(width: Width) -> Self {
        Self {
            width,
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
        let (width, class) = (self.width.units(), self.width.class());
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" aria-label=\"{description}\">\n{body}</svg>"
        )
    }

    /// Names of lines from the left on, in as many rows as they take; each is a class and a name. Returns where the rows end.
    pub(crate) fn legend(
        &mut self,
        (left, top): (f64, f64),
        right: f64,
        entries: &[(String, String)],
    ) -> f64 {
        let mut last = top;
        for ((class, name), (x, row)) in entries.iter().zip(legend_places(left, right, entries)) {
            let y = top + LEGEND_LINE * row as f64;
            self.rule(
                &format!("line {class}"),
                (x, y - 4.0),
                (x + LEGEND_SAMPLE - 6.0, y - 4.0),
            );
            self.text("label", (x + LEGEND_SAMPLE, y), Anchor::Start, name);
            last = y;
        }
        last
    }

    /// A mark at the top of the plot: the line continues beyond it.
    pub(crate) fn beyond(&mut self, (x, y): (f64, f64)) {
        self.path("cut", &format!("M{x:.1} {y:.1}l3.5 6h-7z"));
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
