use super::svg::{Drawing, WIDTH};
use super::{Panel, class};

const LEFT: f64 = 62.0;
/// Where the lines end, and their names begin.
const RIGHT: f64 = WIDTH - 265.0;
/// The least between two names.
const NAME: f64 = 15.0;

/// Lines on a logarithmic scale with their names beside their ends, one panel below the other.
pub(super) fn draw(panels: &[Panel]) -> Drawing {
    let mut drawing = Drawing::new();
    for panel in panels {
        let top = drawing.height;
        let inner = (NAME * panel.series.len() as f64).max(190.0);
        draw_panel(&mut drawing, panel, top + 44.0, inner);
        drawing.text(
            12.0,
            top + 26.0,
            "title",
            "start",
            &format!("{} ({})", panel.title, panel.unit),
        );
        drawing.height = top + 44.0 + inner + 40.0;
    }
    drawing
}

fn draw_panel(drawing: &mut Drawing, panel: &Panel, top: f64, height: f64) {
    let values = || panel.series.iter().flat_map(|series| &series.values);
    let least = values().copied().fold(f64::INFINITY, f64::min).max(1e-3);
    let most = values().copied().fold(least * 2.0, f64::max);
    let (low, high) = (least.log10() - 0.05, most.log10() + 0.05);
    let down = |value: f64| top + height * (high - value.max(least).log10()) / (high - low);
    let steps = (panel.across.len().max(2) - 1) as f64;
    let along = |index: usize| LEFT + 20.0 + (RIGHT - LEFT - 40.0) * index as f64 / steps;

    for decade in low.floor() as i32..=high.ceil() as i32 {
        for factor in [1.0, 2.0, 5.0] {
            let value = factor * 10_f64.powi(decade);
            if value.log10() < low || value.log10() > high || (factor > 1.0 && high - low > 2.5) {
                continue;
            }
            let y = down(value);
            drawing.line("grid", (LEFT, y), (RIGHT, y));
            drawing.text(LEFT - 6.0, y + 4.0, "", "end", &figure(value));
        }
    }
    for (index, place) in panel.across.iter().enumerate() {
        drawing.text(along(index), top + height + 20.0, "", "middle", place);
    }

    let mut order: Vec<usize> = (0..panel.series.len()).collect();
    let end = |index: usize| down(panel.series[index].values.last().copied().unwrap_or(least));
    order.sort_by(|&this, &other| end(this).total_cmp(&end(other)));
    let names = apart(
        &order.iter().map(|&index| end(index)).collect::<Vec<_>>(),
        top,
        height,
    );
    // Ours last, above the others.
    for pass in ["floor", "rival", "governor", "ours"] {
        for (&index, &name) in order.iter().zip(&names) {
            let series = &panel.series[index];
            let class = class(series.name, series.side);
            if class != pass {
                continue;
            }
            let points: Vec<(f64, f64)> = (series.values.iter().enumerate())
                .map(|(place, &value)| (along(place), down(value)))
                .collect();
            let last = points[points.len() - 1];
            drawing.path(&format!("line {class}"), &points);
            drawing.line(&format!("lead {class}"), last, (RIGHT + 10.0, name));
            let value = series.values.last().copied().unwrap_or_default();
            let text = format!("{} {}", series.name, figure(value));
            drawing.text(RIGHT + 14.0, name + 4.0, class, "start", &text);
        }
    }
}

/// The wanted heights, moved apart so that names do not cover each other.
fn apart(wanted: &[f64], top: f64, height: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for index in 1..places.len() {
        places[index] = places[index].max(places[index - 1] + NAME);
    }
    let mut floor = top + height;
    for place in places.iter_mut().rev() {
        *place = place.min(floor);
        floor = *place - NAME;
    }
    places
}

fn figure(value: f64) -> String {
    if value >= 1e6 {
        format!("{:.0}M", value / 1e6)
    } else if value >= 10_000.0 {
        format!("{:.0}k", value / 1e3)
    } else if value >= 10.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').into()
    }
}
