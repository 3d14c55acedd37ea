//! Values beside each other as bars, each with its name and the value in words.

use super::axis::{Axis, drawable};
use super::canvas::{Anchor, Canvas, Drawing, LETTER, Width};

pub(crate) struct Bar {
    pub(crate) name: String,
    /// Classes of its colour.
    pub(crate) class: String,
    /// How long it is; none where there is only the text.
    pub(crate) value: Option<f64>,
    pub(crate) text: String,
}

const TOP: f64 = 6.0;
const ROW: f64 = 22.0;
const THICKNESS: f64 = 14.0;
/// Between the name, the bar and the text.
const GAP: f64 = 8.0;

/// The chart; `None` when there is nothing to draw.
pub(crate) fn render(description: &str, bars: &[Bar]) -> Option<Drawing> {
    (!bars.is_empty()).then(|| Drawing::of(|width| draw(description, bars, width)))
}

fn draw(description: &str, bars: &[Bar], width: Width) -> String {
    let widest = |text: fn(&Bar) -> &str| {
        let letters = bars.iter().map(|bar| text(bar).chars().count());
        letters.max().unwrap_or(0) as f64 * LETTER
    };
    // A name that is too long is left to run into its bar, rather than to leave no room for any.
    let left = (widest(|bar| &bar.name) + GAP).min(width.units() * 0.6);
    let right = (width.units() - widest(|bar| &bar.text) - GAP).max(left + GAP);
    let values = bars.iter().filter_map(|bar| bar.value.and_then(drawable));
    let most = values
        .reduce(f64::max)
        .filter(|most| *most > 0.0)
        .unwrap_or(1.0);
    let axis = Axis::linear((0.0, most), (left, right));
    let mut canvas = Canvas::new(width);
    let mut y = TOP;
    for bar in bars {
        canvas.text(
            "label",
            (left - GAP, y + THICKNESS - 2.0),
            Anchor::End,
            &bar.name,
        );
        let end = bar
            .value
            .and_then(drawable)
            .map_or(left, |v| axis.position(v));
        canvas.rect(
            &format!("fill {}", bar.class),
            (left, y),
            (end - left, THICKNESS),
        );
        let at = (end + GAP / 2.0, y + THICKNESS - 2.0);
        canvas.text("label", at, Anchor::Start, &bar.text);
        y += ROW;
    }
    canvas.finish(y, description)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn bar(name: &str, value: Option<f64>) -> Bar {
        Bar {
            name: name.to_owned(),
            class: "up".to_owned(),
            value,
            text: "7 s".to_owned(),
        }
    }

    #[test]
    fn the_longest_bar_ends_before_its_text_and_one_without_a_value_has_no_length() {
        let svg = render("a chart", &[bar("one", Some(2.0)), bar("two", None)]).unwrap();
        let widths: Vec<&str> = svg.wide.split("width=\"").skip(1).collect();
        assert!(widths.iter().any(|rest| rest.starts_with("0.0\"")));
        let longest = 960.0 - 3.0 * LETTER - GAP - (3.0 * LETTER + GAP);
        let is_longest = |rest: &&str| rest.starts_with(&format!("{longest:.1}\""));
        assert!(widths.iter().any(is_longest), "{}", svg.wide);
        assert_eq!(render("nothing", &[]), None);
    }

    proptest! {
        #[test]
        fn any_values_draw(bits in proptest::collection::vec(proptest::option::of(any::<u64>()), 1..20)) {
            let bars: Vec<Bar> = bits.into_iter().map(|b| bar("<&>", b.map(f64::from_bits))).collect();
            let svg = render("a chart", &bars).unwrap().both();
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<&>"));
        }
    }
}
