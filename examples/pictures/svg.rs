//! Pictures in a page of the documentation. Text and lines take the colour of the page, and all other colours are of
//! medium lightness, so that pictures are readable in its light and dark themes.

use core::fmt::Write;

/// Colour of admissions.
pub(crate) const ADMITTED: &str = "#3b8fd4";
/// Colour of the limit.
pub(crate) const LIMIT: &str = "#2a9d63";
/// Colour of admissions above the limit.
pub(crate) const OVER: &str = "#e0663c";

/// A picture that is being drawn. It has no empty line, which would end it in Markdown.
pub(crate) struct Svg {
    width: f64,
    height: f64,
    title: &'static str,
    body: String,
}

/// The position of a text relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Formats a coordinate in tenths of a unit, so that it is equal on all machines.
fn number(value: f64) -> String {
    let tenths = (value * 10.0).round();
    let text = format!("{:.1}", tenths / 10.0);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64, title: &'static str) -> Self {
        Self {
            width,
            height,
            title,
            body: String::new(),
        }
    }

    fn line_of(&mut self, text: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{text}");
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (number(x), number(y));
        self.line_of(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"currentColor\">{text}</text>"
        ));
    }

    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        self.line_of(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"
        ));
    }

    /// Draws a thin straight line in the colour of the text.
    pub(crate) fn axis(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.line_of(&format!(
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"currentColor\" stroke-opacity=\"0.4\" fill=\"none\"/>"
        ));
    }

    /// Draws a dashed straight line.
    pub(crate) fn dashes(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, colour: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.line_of(&format!(
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"{colour}\" stroke-width=\"1.5\" \
             stroke-dasharray=\"5 3\" fill=\"none\"/>"
        ));
    }

    /// Draws short vertical lines from `y` downwards.
    pub(crate) fn ticks(&mut self, xs: impl IntoIterator<Item = f64>, y: f64, height: f64, colour: &str) {
        let mut path = String::new();
        for x in xs {
            let _ = write!(path, "M{} {}v{}", number(x), number(y), number(height));
        }
        self.line_of(&format!(
            "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"none\"/>"
        ));
    }

    /// Fills the area between a step line and `floor`. Each point starts a step of its height.
    pub(crate) fn steps(&mut self, points: &[(f64, f64)], end: f64, floor: f64, colour: &str) {
        let mut path = String::new();
        for (x, y) in points {
            let turn = if path.is_empty() {
                format!("M{} {}", number(*x), number(floor))
            } else {
                format!("H{}", number(*x))
            };
            let _ = write!(path, "{turn}V{}", number(*y));
        }
        self.line_of(&format!(
            "<path d=\"{path}H{}V{}Z\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>",
            number(end),
            number(floor),
        ));
    }

    /// Returns the picture as a block of HTML, which Markdown does not change.
    pub(crate) fn finish(self) -> String {
        let (width, height) = (number(self.width), number(self.height));
        format!(
            "<div style=\"overflow-x:auto\">\n<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{title}\" \
             viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             style=\"max-width:100%;min-width:560px;height:auto\" font-family=\"sans-serif\" font-size=\"13\">\n{body}</svg>\n</div>\n\n",
            title = self.title,
            body = self.body,
        )
    }
}
