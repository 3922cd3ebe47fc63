//! Admissions of a strict ring under constant load, by number of cells.

use core::time::Duration;

use ringgate::{ConfigError, CounterRing, Quota};

use crate::run::{self, WINDOW};
use crate::svg::{self, Anchor, Svg};

/// Half of the arrivals, which come every millisecond.
const LIMIT: u64 = 500;
const WINDOWS: u64 = 61 * 6;

const LEFT: f64 = 160.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 44.0;
const LANE: f64 = 30.0;

/// Returns the admissions per 1,000 permits of the limit.
fn admitted(cells: u64) -> Result<u64, ConfigError> {
    let quota = Quota::new(LIMIT, Duration::from_millis(WINDOW))?;
    let ring = CounterRing::builder(quota).cells(cells).build()?;
    let all = run::admitted(&ring.into(), 0..WINDOWS * WINDOW);
    Ok(all.len() as u64 * 1_000 / (LIMIT * WINDOWS))
}

pub(crate) fn draw() -> Result<String, ConfigError> {
    let rings = [1, 2, 5, 10, 20, 60];
    let bottom = TOP + LANE * rings.len() as f64;
    let mut svg = Svg::new(
        760.0,
        bottom + 10.0,
        "Admissions of a strict ring under constant load, by number of cells",
    );
    svg.text(
        LEFT,
        16.0,
        Anchor::Start,
        "Constant load of twice the limit: admissions per 1,000 permits of the limit.",
    );
    let x = |count: u64| LEFT + (RIGHT - LEFT) * count as f64 / 1_000.0;
    for (number, cells) in rings.into_iter().enumerate() {
        let top = TOP + LANE * number as f64 + 6.0;
        let share = admitted(cells)?;
        svg.rect(LEFT, top, x(share) - LEFT, LANE - 12.0, svg::ADMITTED);
        let name = if cells == 1 {
            "1 cell".to_owned()
        } else {
            format!("{cells} cells")
        };
        svg.text(LEFT - 10.0, top + 13.0, Anchor::End, &name);
        svg.text(RIGHT + 12.0, top + 13.0, Anchor::Start, &format!("{share}"));
    }
    svg.axis(LEFT, TOP, LEFT, bottom);
    svg.dashes(x(1_000), TOP - 4.0, x(1_000), bottom, svg::LIMIT);
    svg.text(x(1_000), TOP - 8.0, Anchor::Middle, "the limit");
    Ok(svg.finish())
}
