//! Pictures that stand in a page of the documentation: text and lines take the page's own colour, so that they can be read
//! in its light and dark themes, and the others are between light and dark.

use core::fmt::Write;

/// What was admitted.
pub(crate) const ADMITTED: &str = "#3b8fd4";
/// The limit.
pub(crate) const LIMIT: &str = "#2a9d63";
/// What is more than the limit.
pub(crate) const OVER: &str = "#e0663c";

/// A picture in the making. It has no empty line, which would end it in Markdown.
pub(crate) struct Svg {
    width: f64,
    height: f64,
    title: &'static str,
    body: String,
}

/// Where a text is, beside the point that it is put at.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Tenths of a unit are fine enough, and the same on every machine.
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

    /// A straight line in the colour of the text, thin.
    pub(crate) fn axis(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.line_of(&format!(
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"currentColor\" stroke-opacity=\"0.4\" fill=\"none\"/>"
        ));
    }

    /// A straight line of dashes.
    pub(crate) fn dashes(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, colour: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.line_of(&format!(
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"{colour}\" stroke-width=\"1.5\" \
             stroke-dasharray=\"5 3\" fill=\"none\"/>"
        ));
    }

    /// Short upright lines from `y` down.
    pub(crate) fn ticks(&mut self, xs: impl IntoIterator<Item = f64>, y: f64, height: f64, colour: &str) {
        let mut path = String::new();
        for x in xs {
            let _ = write!(path, "M{} {}v{}", number(x), number(y), number(height));
        }
        self.line_of(&format!(
            "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"none\"/>"
        ));
    }

    /// What is under a line of steps, down to `floor`: each point says how high it goes from there on.
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

    /// The picture, as a block of HTML that Markdown leaves alone.
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
