use std::fmt::Write;
use std::path::Path;

/// How wide every plot is.
pub(super) const WIDTH: f64 = 760.0;

/// Colours by class, for either background.
const STYLE: &str = "
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 15px; }
.page { fill: #ffffff; }
.grid { stroke: #d0d7de; fill: none; }
.ours { stroke: #0969da; fill: #0969da; }
.governor { stroke: #bc4c00; fill: #bc4c00; }
.rival { stroke: #6e7781; fill: #6e7781; }
.floor { stroke: #1a7f37; fill: #1a7f37; }
.mark { stroke: #cf222e; stroke-width: 3; }
.line { fill: none; stroke-width: 1.5; }
.line.ours, .line.governor { stroke-width: 2.5; }
.line.floor { stroke-dasharray: 5 4; }
.lead { stroke-width: 0.7; opacity: 0.6; }
text.ours, text.governor, text.rival, text.floor { stroke: none; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.page { fill: #0d1117; }
.grid { stroke: #30363d; }
.ours { stroke: #58a6ff; fill: #58a6ff; }
.governor { stroke: #f0883e; fill: #f0883e; }
.rival { stroke: #9198a1; fill: #9198a1; }
.floor { stroke: #3fb950; fill: #3fb950; }
.mark { stroke: #ff7b72; }
.line { fill: none; }
}
";

/// An SVG in the making.
pub(super) struct Drawing {
    body: String,
    pub(super) height: f64,
}

impl Drawing {
    pub(super) fn new() -> Self {
        Self {
            body: String::new(),
            height: 0.0,
        }
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(&format!("line {class}"), &[from, to]);
    }

    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut list = String::new();
        for (x, y) in points {
            write!(list, "{x:.1},{y:.1} ").expect("a string takes all");
        }
        self.push(format_args!(
            "<polyline class=\"{class}\" points=\"{}\"/>",
            list.trim()
        ));
    }

    pub(super) fn bar(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64) {
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes all");
    }
}

pub(super) fn write(path: &Path, drawing: &Drawing) {
    let (height, body) = (drawing.height, &drawing.body);
    let text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\">\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"100%\" \
         height=\"100%\"/>\n{body}</svg>\n"
    );
    std::fs::write(path, text).expect("the plot can be written");
}
