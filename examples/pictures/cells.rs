//! What is left of the limit by a strict ring that is always asked, by its cells.

use core::time::Duration;

use ringgate::{ConfigError, CounterRing, Quota};

use crate::run::{self, WINDOW};
use crate::svg::{self, Anchor, Svg};

/// A thousandth of a window is a permit, so that arrivals every millisecond are just the limit.
const ALLOWED: u64 = 500;
const WINDOWS: u64 = 61 * 6;

const LEFT: f64 = 160.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 44.0;
const LANE: f64 = 30.0;

/// Of 1,000 that would be allowed, so many are admitted.
fn admitted(cells: u64) -> Result<u64, ConfigError> {
    let quota = Quota::new(ALLOWED, Duration::from_millis(WINDOW))?;
    let ring = CounterRing::builder(quota).cells(cells).build()?;
    let all = run::admitted(&ring.into(), 0..WINDOWS * WINDOW);
    Ok(all.len() as u64 * 1_000 / (ALLOWED * WINDOWS))
}

pub(crate) fn draw() -> Result<String, ConfigError> {
    let rings = [1, 2, 5, 10, 20, 60];
    let bottom = TOP + LANE * rings.len() as f64;
    let mut svg = Svg::new(
        760.0,
        bottom + 10.0,
        "What a strict ring lets through when it is always asked, by its cells",
    );
    svg.text(
        LEFT,
        16.0,
        Anchor::Start,
        "Asked at twice the limit for ever: what of 1,000 a strict ring admits, by its cells.",
    );
    let x = |count: u64| LEFT + (RIGHT - LEFT) * count as f64 / 1_000.0;
    for (number, cells) in rings.into_iter().enumerate() {
        let top = TOP + LANE * number as f64 + 6.0;
        let passed = admitted(cells)?;
        svg.rect(LEFT, top, x(passed) - LEFT, LANE - 12.0, svg::ADMITTED);
        let name = if cells == 1 {
            "1 cell".to_owned()
        } else {
            format!("{cells} cells")
        };
        svg.text(LEFT - 10.0, top + 13.0, Anchor::End, &name);
        svg.text(RIGHT + 12.0, top + 13.0, Anchor::Start, &format!("{passed}"));
    }
    svg.axis(LEFT, TOP, LEFT, bottom);
    svg.dashes(x(1_000), TOP - 4.0, x(1_000), bottom, svg::LIMIT);
    svg.text(x(1_000), TOP - 8.0, Anchor::Middle, "the limit");
    Ok(svg.finish())
}
