//! The server's clock, against this machine's.

use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use redis::Value;
use serde::Serialize;

use super::finding::{Finding, Level};
use super::wire::{Trouble, Wire, text};

const CHECK: &str = "clock";

/// How long it is looked at, and how often.
const WATCHED: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(10);

/// What a clock that is adjusted with care, or a processor's, may gain or lose meanwhile, in microseconds.
const SLACK: i128 = 5_000;
/// From this difference on one of two clocks is wrong, in microseconds.
const APART: i128 = 1_000_000;
/// From this difference on the clocks of a cluster are worth a word, in microseconds.
const APART_IN_CLUSTER: i128 = 100_000;

/// One reading: by this machine's clock it was made after `asked` and before `heard`. All in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Reading {
    asked: i128,
    heard: i128,
    said: i128,
}

/// What was seen of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Seen {
    readings: usize,
    /// How far it is ahead of this machine's: no less than, and no more than. After its last jump.
    ahead_us: (i128, i128),
    /// How much further it went than time, in jumps.
    jumped_us: i128,
    /// How much it went back.
    went_back_us: i128,
}

/// Looks at it for a while; `None`: TIME is refused.
pub(super) async fn watch(wire: Wire) -> Result<Option<Seen>, Trouble> {
    // This machine's own clock is read once: it may jump as well.
    let (began, wall) = (Instant::now(), SystemTime::now());
    let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let wall = i128::try_from(wall).unwrap_or(0);
    let now = || wall + i128::try_from(began.elapsed().as_micros()).unwrap_or(i128::MAX);
    let mut readings = Vec::new();
    while readings.is_empty() || began.elapsed() < WATCHED {
        let asked = now();
        match wire.ask(&["TIME"]).await {
            Ok(answer) => match micros(&answer) {
                Some(said) => readings.push(Reading {
                    asked,
                    heard: now(),
                    said,
                }),
                None => return Ok(None),
            },
            Err(Trouble::Error(_)) => return Ok(None),
            Err(silent) => return Err(silent),
        }
        tokio::time::sleep(EVERY).await;
    }
    Ok(Some(conclude(&readings)))
}

fn micros(answer: &Value) -> Option<i128> {
    let Value::Array(parts) = answer else { return None };
    let number = |at: usize| text(parts.get(at)?)?.parse::<i128>().ok();
    Some(number(0)? * 1_000_000 + number(1)?)
}

/// Each reading bounds how far the clock is ahead. As long as it is steady, all bounds agree.
fn conclude(readings: &[Reading]) -> Seen {
    let mut seen = Seen {
        readings: readings.len(),
        ahead_us: (i128::MIN, i128::MAX),
        jumped_us: 0,
        went_back_us: 0,
    };
    for reading in readings {
        let (least, most) = (reading.said - reading.heard, reading.said - reading.asked);
        let (low, high) = seen.ahead_us;
        if least > high.saturating_add(SLACK) {
            seen.jumped_us += least - high;
            seen.ahead_us = (least, most);
        } else if most < low.saturating_sub(SLACK) {
            seen.went_back_us += low - most;
            seen.ahead_us = (least, most);
        } else {
            // What is within the slack moves the bounds along.
            let (low, high) = (low.max(least), high.min(most));
            seen.ahead_us = if low <= high { (low, high) } else { (least, most) };
        }
    }
    seen
}

/// Of one server.
pub(super) fn judge(seen: &Seen) -> Finding {
    let (low, high) = seen.ahead_us;
    let (ahead, within) = (low.midpoint(high), (high - low) / 2);
    let than = if ahead < 0 { "behind" } else { "ahead of" };
    let mut found = format!(
        "its TIME is {} {than} this machine's, give or take {}",
        length(ahead),
        length(within)
    );
    if let Some(moved) = moved(seen) {
        return finding_of_move(seen, format!("{found}; {moved}"));
    }
    found += &format!("; steady for {WATCHED:?}");
    if low > APART || high < -APART {
        return Finding::new(
            CHECK,
            Level::Note,
            found,
            "Only the server's time counts, in every mode, so the difference does no harm. But one of the two is wrong: if it is the \
             server's, and is set right at once, forward ends windows early (L more once), and back makes limits stricter \
             for up to a window and a cell.",
        )
        .advise("Let the server's clock be set right slowly (chrony or ntpd, without a step), or before anybody decides by it.");
    }
    Finding::new(
        CHECK,
        Level::Ok,
        found,
        "Only the server's time counts: windows are measured by it, and the difference does no harm. Lease, sync: of a \
         node's own clock only how long a term has lasted is taken, never the time of day.",
    )
}

/// Of the primaries of a cluster, by their names.
pub(super) fn judge_cluster(seen: &[(String, Seen)]) -> Option<Finding> {
    let (first, others) = seen.split_first()?;
    if others.is_empty() {
        return Some(judge(&first.1));
    }
    let moved_by = seen.iter().filter_map(|(node, seen)| {
        let found = format!("{node}: {}", moved(seen)?);
        Some(finding_of_move(seen, found))
    });
    if let Some(worst) = moved_by.max_by_key(|finding| finding.level) {
        return Some(worst);
    }
    // The largest difference that is certain, and the largest that may be.
    let least = |(_, seen): &(String, Seen)| seen.ahead_us.0;
    let most = |(_, seen): &(String, Seen)| seen.ahead_us.1;
    let certain = seen.iter().map(least).max()? - seen.iter().map(most).min()?;
    let possible = seen.iter().map(most).max()? - seen.iter().map(least).min()?;
    let found = format!(
        "the clocks of {} primaries differ by {} at the most; steady for {WATCHED:?}",
        seen.len(),
        length(possible)
    );
    let means = "A slot that moves, or fails over, is judged by another clock from then on: a window may be shorter by as much \
                 as the two differ.";
    Some(match certain > APART_IN_CLUSTER {
        true => Finding::new(CHECK, Level::Warning, found, means)
            .advise("Have the clocks of all nodes kept by the same source (chrony or ntpd)."),
        false => Finding::new(CHECK, Level::Ok, found, means),
    })
}

/// What a clock has done that it should not.
fn moved(seen: &Seen) -> Option<String> {
    let (ahead, back) = (length(seen.jumped_us), length(seen.went_back_us));
    match (seen.jumped_us > 0, seen.went_back_us > 0) {
        (false, false) => None,
        (true, false) => Some(format!("it jumped ahead by {ahead} within {WATCHED:?}")),
        (false, true) => Some(format!("it went back by {back} within {WATCHED:?}")),
        (true, true) => Some(format!(
            "it jumped ahead by {ahead} and went back by {back} within {WATCHED:?}"
        )),
    }
}

fn finding_of_move(seen: &Seen, found: String) -> Finding {
    let (level, means) = if seen.jumped_us > 0 {
        (
            Level::Problem,
            "A clock that jumps ahead ends windows early: L more for each time. One that goes back makes limits stricter for \
             up to a window and a cell. Lease: one that jumps ahead ends holds early too, which nodes still spend until their \
             terms are over.",
        )
    } else {
        (
            Level::Warning,
            "A clock that goes back makes limits stricter for up to a window and a cell, and never looser.",
        )
    };
    Finding::new(CHECK, level, found, means).advise(
        "Have the server's clock set right slowly (chrony or ntpd, without a step); look at its machine.",
    )
}

/// Microseconds, as people write them.
fn length(micros: i128) -> String {
    let micros = micros.unsigned_abs();
    match micros {
        0..10_000 => format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10),
        10_000..10_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{} s", micros / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of a clock that is so far ahead, 10 ms apart, each of which took 2 ms.
    fn readings(ahead: &[i128]) -> Vec<Reading> {
        let reading = |(at, ahead): (i128, &i128)| Reading {
            asked: at * 10_000,
            heard: at * 10_000 + 2_000,
            said: at * 10_000 + 1_000 + ahead,
        };
        (0..).zip(ahead).map(reading).collect()
    }

    #[test]
    fn a_steady_clock_is_no_news() {
        let seen = conclude(&readings(&[300; 100]));
        assert_eq!(
            (seen.ahead_us, seen.jumped_us, seen.went_back_us),
            ((-700, 1300), 0, 0)
        );
        assert_eq!(judge(&seen).level, Level::Ok);
        // One that is set right slowly.
        let slewed: Vec<i128> = (0..100).map(|at| at * 50).collect();
        let seen = conclude(&readings(&slewed));
        assert_eq!((seen.jumped_us, seen.went_back_us), (0, 0));
        // An answer that took long says little, and nothing wrong.
        let mut late = readings(&[300; 100]);
        late[50].heard += 3_000_000;
        late[50].said += 2_900_000;
        assert_eq!(conclude(&late).jumped_us, 0);
    }

    #[test]
    fn jumps_are_seen() {
        let mut ahead = [300; 100];
        ahead[40..].fill(300 + 500_000);
        let seen = conclude(&readings(&ahead));
        // No more than it was, and no less by more than the readings took.
        assert!((498_000..=500_000).contains(&seen.jumped_us), "{seen:?}");
        assert_eq!(judge(&seen).level, Level::Problem);
        ahead[40..].fill(300 - 500_000);
        let seen = conclude(&readings(&ahead));
        assert!((498_000..=500_000).contains(&seen.went_back_us), "{seen:?}");
        assert_eq!(seen.jumped_us, 0);
        assert_eq!(judge(&seen).level, Level::Warning);
        assert!(judge(&seen).found.contains("went back by 498 ms"), "{seen:?}");
    }

    #[test]
    fn a_clock_that_is_far_off_is_noted() {
        for (ahead, level) in [
            (900_000, Level::Ok),
            (-900_000, Level::Ok),
            (1_100_000, Level::Note),
            (-3_600_000_000, Level::Note),
        ] {
            assert_eq!(judge(&conclude(&readings(&[ahead; 3]))).level, level, "{ahead}");
        }
    }

    #[test]
    fn clocks_of_a_cluster_are_compared() {
        let of = |ahead: &[i128]| -> Vec<(String, Seen)> {
            let nodes = ahead.iter().enumerate();
            nodes
                .map(|(node, &ahead)| (format!("n{node}"), conclude(&readings(&[ahead; 3]))))
                .collect()
        };
        let level = |ahead: &[i128]| judge_cluster(&of(ahead)).map(|finding| finding.level);
        assert_eq!(level(&[]), None);
        // Whatever this machine's clock says.
        assert_eq!(level(&[9_000_000, 9_050_000, 9_020_000]), Some(Level::Ok));
        assert_eq!(level(&[0, 200_000, 0]), Some(Level::Warning));
    }
}
