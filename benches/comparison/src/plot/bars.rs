use super::svg::{Drawing, WIDTH};
use super::{Bar, class};

const LEFT: f64 = 285.0;
const RIGHT: f64 = WIDTH - 70.0;
const ROW: f64 = 20.0;

/// Horizontal bars from zero on, one panel below the other.
pub(super) fn draw(panels: &[(String, Vec<Bar>)]) -> Drawing {
    let mut drawing = Drawing::new();
    for (title, bars) in panels {
        let top = drawing.height + 26.0;
        drawing.text(12.0, top, "title", "start", title);
        let ends = bars.iter().map(|bar| bar.value.max(bar.mark.unwrap_or(0.0)));
        let most = ends.fold(f64::MIN_POSITIVE, f64::max);
        let place = |value: f64| LEFT + (RIGHT - LEFT) * value / most;
        for (index, bar) in bars.iter().enumerate() {
            let y = top + 14.0 + ROW * index as f64;
            let class = class(bar.name, bar.side);
            drawing.text(LEFT - 8.0, y + 13.0, "", "end", bar.name);
            let end = place(bar.value.max(0.0));
            drawing.bar(class, (LEFT, y + 3.0), (end - LEFT).max(1.0), ROW - 7.0);
            let mut after = end;
            if let Some(mark) = bar.mark {
                let x = place(mark);
                drawing.line("mark", (x, y + 1.0), (x, y + ROW - 2.0));
                after = after.max(if x < end + 60.0 { x } else { end });
            }
            let digits = if bar.value < 1000.0 { 1 } else { 0 };
            let value = format!("{:.digits$}", bar.value);
            drawing.text(after + 6.0, y + 13.0, "", "start", &value);
        }
        drawing.height = top + 14.0 + ROW * bars.len() as f64 + 12.0;
    }
    drawing
}
