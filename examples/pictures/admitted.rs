//! Admissions of each algorithm from the same arrivals, and their number in the last window.

use ringgate::ConfigError;

use crate::run::{self, LIMIT, WINDOW};
use crate::svg::{self, Anchor, Svg};

/// Milliseconds of silence, followed by a request every 5 ms until the end.
const SILENT: u64 = 900;
pub(crate) const END: u64 = 4_000;

pub(crate) const LEFT: f64 = 160.0;
pub(crate) const RIGHT: f64 = 620.0;
pub(crate) const TOP: f64 = 44.0;
pub(crate) const LANE: f64 = 62.0;
/// Height of the curve in a lane at twice the limit.
pub(crate) const HIGH: f64 = 40.0;

pub(crate) fn draw() -> Result<String, ConfigError> {
    let lanes = run::lanes()?;
    let height = TOP + LANE * lanes.len() as f64 + 34.0;
    let mut svg = Svg::new(
        760.0,
        height,
        "Admissions of each algorithm from the same requests, and their number in the last second",
    );
    // The legend begins at the left edge, so that it ends before the head of the last column.
    svg.text(
        10.0,
        16.0,
        Anchor::Start,
        "Limit 20 per second. Silence for 0.9 s, then 200 requests per second.",
    );
    svg.text(
        10.0,
        33.0,
        Anchor::Start,
        "Ticks: admissions. Curve: admissions in the last second. Dashes: the limit.",
    );
    svg.text(RIGHT + 12.0, 33.0, Anchor::Start, "most and bound");
    let bottom = TOP + LANE * lanes.len() as f64;
    draw_seconds(&mut svg, bottom);
    for (number, lane) in lanes.iter().enumerate() {
        let floor = TOP + LANE * number as f64 + HIGH + 8.0;
        let admitted = run::admitted(&lane.algorithm, (SILENT..=END).step_by(5));
        draw_lane(&mut svg, &admitted, lane.name, floor, LIMIT);
        let most = run::most(&admitted);
        let bound = run::bound(&lane.algorithm);
        svg.text(
            RIGHT + 12.0,
            floor - 4.0,
            Anchor::Start,
            &format!("{most}, at most {bound}"),
        );
    }
    Ok(svg.finish())
}

/// Draws one lane: the admissions as ticks below [their curve](draw_curve), beside its name.
pub(crate) fn draw_lane(svg: &mut Svg, admitted: &[u64], name: &str, floor: f64, limit: u64) {
    draw_curve(svg, admitted, floor, limit);
    svg.ticks(admitted.iter().map(|&at| x(at)), floor + 1.0, 8.0, svg::ADMITTED);
    svg.text(LEFT - 10.0, floor - 4.0, Anchor::End, name);
}

/// Draws the number of admissions in the last second as a curve above `floor`, and the limit. The colour of the curve is another one
/// if more than `limit` are in one second.
pub(crate) fn draw_curve(svg: &mut Svg, admitted: &[u64], floor: f64, limit: u64) {
    let y = |count: u64| floor - HIGH * count as f64 / (2 * limit) as f64;
    // The count changes at each admission, and one window after it.
    let left = admitted.iter().map(|&at| at + WINDOW).filter(|&at| at <= END);
    let mut changes: Vec<u64> = admitted.iter().copied().chain(left).collect();
    changes.sort_unstable();
    changes.dedup();
    let points: Vec<_> = (changes.into_iter())
        .map(|at| {
            let from = admitted.partition_point(|&one| one + WINDOW <= at);
            let to = admitted.partition_point(|&one| one <= at);
            (x(at), y((to - from) as u64))
        })
        .collect();
    let colour = if run::most(admitted) > limit {
        svg::OVER
    } else {
        svg::ADMITTED
    };
    svg.steps(&points, RIGHT, floor, colour);
    svg.dashes(LEFT, y(limit), RIGHT, y(limit), svg::LIMIT);
}

/// The place of a time, in milliseconds.
pub(crate) fn x(at: u64) -> f64 {
    LEFT + (RIGHT - LEFT) * at as f64 / END as f64
}

/// Draws the seconds below the lanes.
pub(crate) fn draw_seconds(svg: &mut Svg, bottom: f64) {
    for second in 0..=END / WINDOW {
        let at = x(second * WINDOW);
        svg.axis(at, TOP, at, bottom + 4.0);
        svg.text(at, bottom + 20.0, Anchor::Middle, &format!("{second} s"));
    }
}
