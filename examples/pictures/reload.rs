//! Admissions over a reload that halves the limit, and over a new rule set in its place.

use core::error::Error;
use core::time::Duration;

use ringgate::rules::RuleSetBuilder;
use ringgate::{LiveRules, ManualClock, Nanos, Quota, Rule, RuleSet};

use crate::admitted::{self, END, LANE, LEFT, RIGHT, TOP};
use crate::run::{self, LIMIT, WINDOW};
use crate::svg::{self, Anchor, Svg};

/// The time at which the limit is halved.
const RELOAD: u64 = 1_200;
/// Seeds of the tables. They have none here, since no rule has a key.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

fn rules(limit: u64) -> Result<RuleSetBuilder<()>, ringgate::ConfigError> {
    let quota = Quota::new(limit, Duration::from_millis(WINDOW))?;
    Ok(RuleSetBuilder::new().rule(Rule::new("all", quota).cells(60)))
}

/// Requests one permit every 5 ms, and returns the times of the admissions. At the reload the rules are replaced by `replace`.
fn admitted(
    replace: impl Fn(&mut LiveRules<(), ManualClock>, &ManualClock) -> Result<(), Box<dyn Error>>,
) -> Result<Vec<u64>, Box<dyn Error>> {
    let clock = ManualClock::new();
    let mut live = LiveRules::new(rules(LIMIT)?.build_with(clock.clone(), SEEDS)?);
    let mut admitted = Vec::new();
    for at in (0..=END).step_by(5) {
        clock.set(Nanos::from_duration(Duration::from_millis(at)));
        if at == RELOAD {
            replace(&mut live, &clock)?;
        }
        if live.load().check(&()).is_ok() {
            admitted.push(at);
        }
    }
    Ok(admitted)
}

pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let lanes = [
        (
            "LiveRules::store",
            admitted(|live, _| {
                live.store(&rules(LIMIT / 2)?)?;
                Ok(())
            })?,
        ),
        (
            "a new RuleSet",
            admitted(|live, clock| {
                let fresh: RuleSet<(), ManualClock> = rules(LIMIT / 2)?.build_with(clock.clone(), SEEDS)?;
                *live = LiveRules::new(fresh);
                Ok(())
            })?,
        ),
    ];
    let bottom = TOP + LANE * lanes.len() as f64;
    let mut svg = Svg::new(
        760.0,
        bottom + 34.0,
        "Admissions in the last second over a reload that halves the limit",
    );
    svg.text(
        LEFT,
        16.0,
        Anchor::Start,
        "200 requests per second. After 1.2 s the limit of 20 per second is lowered to 10.",
    );
    svg.text(RIGHT + 12.0, 33.0, Anchor::Start, "most in a second");
    admitted::draw_seconds(&mut svg, bottom);
    for (number, (name, admitted)) in lanes.iter().enumerate() {
        let floor = TOP + LANE * (number + 1) as f64 - 14.0;
        admitted::draw_lane(&mut svg, admitted, name, floor, LIMIT);
        svg.text(
            RIGHT + 12.0,
            floor - 4.0,
            Anchor::Start,
            &format!("{}", run::most(admitted)),
        );
    }
    let at = admitted::x(RELOAD);
    svg.dashes(at, TOP, at, bottom, svg::OVER);
    Ok(svg.finish())
}
