//! The worst window of each algorithm over many arrivals, beside its limit and its bound.

use ringgate::ConfigError;

use crate::run::{self, LIMIT, WINDOW};
use crate::svg::{self, Anchor, Svg};

const LEFT: f64 = 160.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 44.0;
const LANE: f64 = 30.0;

/// Silences of up to 1.2 windows in steps of 10 ms, each followed by a request every millisecond for three windows.
fn worst(algorithm: &ringgate::AnyAlgorithm) -> u64 {
    let silences = (0..=WINDOW * 6 / 5).step_by(10);
    let runs = silences.map(|silent| {
        let admitted = run::admitted(algorithm, silent..=silent + 3 * WINDOW);
        run::most(&admitted)
    });
    runs.max().unwrap_or(0)
}

pub(crate) fn draw() -> Result<String, ConfigError> {
    let lanes = run::lanes()?;
    let bottom = TOP + LANE * lanes.len() as f64;
    let mut svg = Svg::new(
        760.0,
        bottom + 30.0,
        "The worst window of each algorithm against its limit",
    );
    svg.text(
        LEFT,
        16.0,
        Anchor::Start,
        "Most admissions in any second, limit 20. Silences of 0 to 1.2 s, then constant load.",
    );
    let x = |count: u64| LEFT + (RIGHT - LEFT) * count as f64 / (2 * LIMIT) as f64;
    for (number, lane) in lanes.iter().enumerate() {
        let top = TOP + LANE * number as f64 + 6.0;
        let most = worst(&lane.algorithm);
        let bound = run::bound(&lane.algorithm);
        svg.rect(LEFT, top, x(most.min(LIMIT)) - LEFT, LANE - 12.0, svg::ADMITTED);
        if most > LIMIT {
            svg.rect(x(LIMIT), top, x(most) - x(LIMIT), LANE - 12.0, svg::OVER);
        }
        svg.text(LEFT - 10.0, top + 13.0, Anchor::End, lane.name);
        svg.text(
            RIGHT + 12.0,
            top + 13.0,
            Anchor::Start,
            &format!("{most}, at most {bound}"),
        );
    }
    svg.axis(LEFT, TOP, LEFT, bottom);
    svg.dashes(x(LIMIT), TOP - 4.0, x(LIMIT), bottom, svg::LIMIT);
    for count in [0, LIMIT, 2 * LIMIT] {
        svg.text(x(count), bottom + 18.0, Anchor::Middle, &format!("{count}"));
    }
    svg.text(x(LIMIT), TOP - 8.0, Anchor::Middle, "the limit");
    Ok(svg.finish())
}
