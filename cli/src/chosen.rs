//! The sliding count of a few keys over time.

use std::collections::HashMap;

use serde::Serialize;

use crate::calendar::millis;
use crate::failure::Failure;
use crate::judge::Judged;
use crate::layout::time_of_word;
use crate::plan::Entry;
use crate::span::Span;
use crate::window::Window;

/// A count at a time, in milliseconds since 1970.
pub(crate) type Point = (i64, u64);

/// What was asked and what was admitted of one key, in the window that ends at each time.
#[derive(Debug, Serialize)]
pub(crate) struct Curves {
    pub(crate) asked: Vec<Point>,
    pub(crate) admitted: Vec<Point>,
}

/// The curves of one key.
#[derive(Debug)]
pub(crate) struct KeyCurves {
    /// From the first request to the last.
    pub(crate) whole: Curves,
    /// Where these are thinned: six windows before and after the time at which most was asked for.
    pub(crate) near: Option<Curves>,
}

/// The most points of a curve, and of one around a peak.
const MOST: usize = 2_000;
const MOST_NEAR: usize = 500;

/// Windows before and after a peak that are near it.
const NEAR: i64 = 6;

/// The curves of some keys, each of an entry by its place.
pub(crate) fn curves(
    judged: &mut Judged,
    entries: &[Entry],
    keys: &[(usize, u64)],
    span: Span,
) -> Result<Vec<KeyCurves>, Failure> {
    let (from, to) = (millis(span.first), millis(span.last));
    let pair = |entry: usize, from, to, most| {
        Some([(); 2].map(|()| Following::new(entries[entry].window(), from, to, most)))
    };
    let whole = keys
        .iter()
        .map(|&(entry, _)| pair(entry, from, to, MOST))
        .collect();
    let whole = follow(judged, entries, keys, span, whole)?;
    let near = keys.iter().zip(&whole).map(|(&(entry, _), followed)| {
        let (curves, thinned) = followed.as_ref()?;
        let higher = |best: Point, next: Point| if next.1 > best.1 { next } else { best };
        let (peak, _) = curves.asked.iter().copied().reduce(higher).filter(|_| *thinned)?;
        let far = NEAR * millis(entries[entry].window()).max(1);
        pair(entry, from.max(peak - far), to.min(peak + far), MOST_NEAR)
    });
    let near: Vec<_> = near.collect();
    let near = if near.iter().any(Option::is_some) {
        follow(judged, entries, keys, span, near)?
    } else {
        keys.iter().map(|_| None).collect()
    };
    let both = whole.into_iter().flatten().zip(near);
    Ok(both
        .map(|((whole, _), near)| KeyCurves {
            whole,
            near: near.map(|(curves, _)| curves),
        })
        .collect())
}

/// Follows what was asked and admitted of those keys that have a pair, and says of each whether it had to be thinned.
fn follow(
    judged: &mut Judged,
    entries: &[Entry],
    keys: &[(usize, u64)],
    span: Span,
    mut following: Vec<Option<[Following; 2]>>,
) -> Result<Vec<Option<(Curves, bool)>>, Failure> {
    let mut of_entry: HashMap<usize, HashMap<u64, usize>> = HashMap::new();
    for (number, &(entry, key)) in keys.iter().enumerate() {
        of_entry.entry(entry).or_default().insert(key, number);
    }
    judged.visit(|record, verdict| {
        for (&place, chosen) in &of_entry {
            let entry = &entries[place];
            let Some(&number) = chosen.get(&entry.key_of(record)) else {
                continue;
            };
            let Some([asked, admitted]) = following[number].as_mut().filter(|_| verdict.is_about(place))
            else {
                continue;
            };
            let (time, permits) = (time_of_word(record[0]), entry.cost_of(record));
            asked.push(time, permits);
            if !verdict.is_refused() {
                admitted.push(time, permits);
            }
        }
        Ok(())
    })?;
    let ended = following.into_iter().map(|pair| {
        let [(asked, asked_thinned), (admitted, admitted_thinned)] = pair?.map(|one| one.end(span.last));
        Some((Curves { asked, admitted }, asked_thinned || admitted_thinned))
    });
    Ok(ended.collect())
}

/// Follows one sliding count.
#[derive(Debug)]
struct Following {
    window: Window,
    /// All points, while they are not too many.
    points: Option<Vec<Point>>,
    stretches: Vec<Option<Stretch>>,
    /// The time of which points are kept, in milliseconds, and the count that held before it.
    from: i64,
    to: i64,
    before: Option<u64>,
    /// The most points, and milliseconds of one stretch.
    most: usize,
    length: i64,
}

/// What is kept of a stretch of time: where the count was largest, and where it ended.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    largest: Point,
    last: Point,
}

impl Following {
    fn new(window: i64, from: i64, to: i64, most: usize) -> Self {
        let stretches = most / 2;
        Self {
            window: Window::new(window),
            points: Some(Vec::new()),
            stretches: vec![None; stretches],
            from,
            to,
            before: None,
            most,
            length: (to - from) / i64::try_from(stretches).unwrap_or(1) + 1,
        }
    }

    fn push(&mut self, time: i64, permits: u64) {
        self.let_go(time);
        self.window.push(time, permits);
        self.point((millis(time), self.window.sum()));
    }

    /// What no longer counts makes the count fall.
    fn let_go(&mut self, until: i64) {
        while let Some(end) = self.window.leave(until) {
            self.point((millis(end), self.window.sum()));
        }
    }

    fn point(&mut self, point: Point) {
        if point.0 < self.from {
            self.before = Some(point.1);
            return;
        }
        if point.0 > self.to {
            return;
        }
        if let Some(points) = &mut self.points {
            match points.last_mut() {
                // The largest of one millisecond stays.
                Some(last) if last.0 == point.0 => last.1 = last.1.max(point.1),
                _ => points.push(point),
            }
            if points.len() > self.most {
                self.points = None;
            }
        }
        let place = usize::try_from((point.0 - self.from) / self.length).unwrap_or(0);
        let Some(stretch) = self.stretches.get_mut(place) else {
            return;
        };
        match stretch {
            Some(stretch) => {
                if point.1 > stretch.largest.1 {
                    stretch.largest = point;
                }
                stretch.last = point;
            }
            none => {
                *none = Some(Stretch {
                    largest: point,
                    last: point,
                });
            }
        }
    }

    /// All points, and whether they had to be thinned.
    fn end(mut self, until: i64) -> (Vec<Point>, bool) {
        self.let_go(until);
        let thinned = self.points.is_none();
        let mut points = self.points.unwrap_or_else(|| {
            let stretches = self.stretches.into_iter().flatten();
            let points = stretches.flat_map(|stretch| {
                let last = (stretch.last != stretch.largest).then_some(stretch.last);
                [stretch.largest].into_iter().chain(last)
            });
            points.collect()
        });
        let first = points.first().is_none_or(|first| first.0 > self.from);
        if let Some(before) = self.before.filter(|_| first) {
            points.insert(0, (self.from, before));
        }
        (points, thinned)
    }
}

#[cfg(test)]
mod tests {
    use super::{Following, MOST};

    const MILLI: i64 = 1_000_000;

    #[test]
    fn a_count_rises_with_requests_and_falls_a_window_later() {
        let mut following = Following::new(10 * MILLI, 0, 100, MOST);
        for time in [0, 3, 3, 12, 50] {
            following.push(time * MILLI, 1);
        }
        assert_eq!(
            following.end(100 * MILLI),
            (
                vec![
                    (0, 1),
                    (3, 3),
                    (10, 2),
                    // One comes; a millisecond later two go.
                    (12, 3),
                    (13, 1),
                    (22, 0),
                    (50, 1),
                    (60, 0)
                ],
                false
            )
        );
    }

    #[test]
    fn a_part_begins_with_what_held_before_it() {
        for (from, to, expected) in [
            (5, 20, vec![(5, 2), (10, 1), (13, 0)]),
            (3, 3, vec![(3, 2)]),
            (20, 90, vec![(20, 0)]),
        ] {
            let mut following = Following::new(10 * MILLI, from, to, MOST);
            for time in [0, 3, 91] {
                following.push(time * MILLI, 1);
            }
            assert_eq!(following.end(100 * MILLI), (expected, false), "{from} to {to}");
        }
    }

    #[test]
    fn a_thinned_curve_keeps_the_largest_of_each_stretch() {
        let length = 1_000_000;
        let mut following = Following::new(10 * MILLI, 0, length, MOST);
        for time in 0..=length {
            following.push(time * MILLI, 1);
            if time == 123_456 {
                following.push(time * MILLI, 90);
            }
        }
        let (points, thinned) = following.end(length * MILLI);
        assert!(thinned);
        assert!(
            points.len() <= MOST && points.len() > MOST / 3,
            "{}",
            points.len()
        );
        assert!(points.contains(&(123_456, 100)));
        assert!(points.is_sorted_by_key(|point| point.0));
    }
}
