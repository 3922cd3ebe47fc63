//! The sliding counts of the top keys over time.

use serde::Serialize;

use crate::failure::Failure;
use crate::input::time::calendar::millis;
use crate::replay::evaluator::Evaluated;
use crate::replay::span::Span;
use crate::replay::window::Window;
use crate::rules::PlanEntry;
use crate::rules::record_layout::time_of_word;

/// A count at a time, in milliseconds since 1970.
pub(crate) type Point = (i64, u64);

/// The requested and the admitted permits of one key in the window that ends at each time.
#[derive(Debug, Serialize)]
pub(crate) struct SlidingCounts {
    pub(crate) asked: Vec<Point>,
    pub(crate) admitted: Vec<Point>,
}

/// The sliding counts of one key.
#[derive(Debug)]
pub(crate) struct KeyCounts {
    /// From the first request to the last.
    pub(crate) whole: SlidingCounts,
    /// The counts from six windows before the peak of the requests to six windows after it, if `whole` is thinned.
    pub(crate) near: Option<SlidingCounts>,
}

/// The largest number of points of a count.
const MAX_POINTS: usize = 2_000;

/// The largest number of points of a count around a peak.
const MAX_POINTS_NEAR: usize = 500;

/// Windows before and after a peak.
const NEAR: i64 = 6;

/// The sliding counts of keys, each given by the position of its entry and its hash.
pub(crate) fn sliding_counts(
    evaluated: &mut Evaluated,
    entries: &[PlanEntry],
    keys: &[(usize, u64)],
    span: Span,
) -> Result<Vec<KeyCounts>, Failure> {
    let (from, to) = (millis(span.first), millis(span.last));
    let pair = |entry: usize, from, to, max_points| {
        Some([(); 2].map(|()| SlidingCount::new(entries[entry].window(), from, to, max_points)))
    };
    let whole = keys
        .iter()
        .map(|&(entry, _)| pair(entry, from, to, MAX_POINTS))
        .collect();
    let whole = follow(evaluated, entries, keys, span, whole)?;
    let near = keys.iter().zip(&whole).map(|(&(entry, _), followed)| {
        let (curves, thinned) = followed.as_ref()?;
        let higher = |best: Point, next: Point| if next.1 > best.1 { next } else { best };
        let (peak, _) = curves.asked.iter().copied().reduce(higher).filter(|_| *thinned)?;
        let far = NEAR * millis(entries[entry].window()).max(1);
        pair(entry, from.max(peak - far), to.min(peak + far), MAX_POINTS_NEAR)
    });
    let near: Vec<_> = near.collect();
    let near = if near.iter().any(Option::is_some) {
        follow(evaluated, entries, keys, span, near)?
    } else {
        keys.iter().map(|_| None).collect()
    };
    let both = whole.into_iter().flatten().zip(near);
    Ok(both
        .map(|((whole, _), near)| KeyCounts {
            whole,
            near: near.map(|(curves, _)| curves),
        })
        .collect())
}

/// Computes the requested and the admitted counts of the keys with a pair, and whether they were thinned.
fn follow(
    evaluated: &mut Evaluated,
    entries: &[PlanEntry],
    keys: &[(usize, u64)],
    span: Span,
    mut following: Vec<Option<[SlidingCount; 2]>>,
) -> Result<Vec<Option<(SlidingCounts, bool)>>, Failure> {
    evaluated.visit(|record, verdict| {
        for (&(index, key), pair) in keys.iter().zip(&mut following) {
            let entry = &entries[index];
            if let Some([asked, admitted]) = pair
                && entry.key_of(record) == key
                && verdict.applies(index)
            {
                let (time, permits) = (time_of_word(record[0]), entry.cost_of(record));
                asked.push(time, permits);
                if !verdict.is_denied() {
                    admitted.push(time, permits);
                }
            }
        }
        Ok(())
    })?;
    let ended = following.into_iter().map(|pair| {
        let [(asked, asked_thinned), (admitted, admitted_thinned)] = pair?.map(|one| one.end(span.last));
        Some((
            SlidingCounts { asked, admitted },
            asked_thinned || admitted_thinned,
        ))
    });
    Ok(ended.collect())
}

/// One sliding count.
#[derive(Debug)]
struct SlidingCount {
    window: Window,
    /// All points; `None` if there are too many.
    points: Option<Vec<Point>>,
    stretches: Vec<Option<Stretch>>,
    /// The first and the last time of a point, in milliseconds.
    from: i64,
    to: i64,
    /// The count before the first point.
    before: Option<u64>,
    max_points: usize,
    /// The length of a stretch, in milliseconds.
    length: i64,
}

/// The points of a stretch of time: the largest and the last.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    largest: Point,
    last: Point,
}

impl SlidingCount {
    fn new(window: i64, from: i64, to: i64, max_points: usize) -> Self {
        let stretches = max_points / 2;
        Self {
            window: Window::new(window),
            points: Some(Vec::new()),
            stretches: vec![None; stretches],
            from,
            to,
            before: None,
            max_points,
            length: (to - from) / i64::try_from(stretches).unwrap_or(1) + 1,
        }
    }

    fn push(&mut self, time: i64, permits: u64) {
        self.let_go(time);
        self.window.push(time, permits);
        self.point((millis(time), self.window.sum()));
    }

    /// Adds a point for each expiry up to a time.
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
                // A millisecond keeps its largest count.
                Some(last) if last.0 == point.0 => last.1 = last.1.max(point.1),
                _ => points.push(point),
            }
            if points.len() > self.max_points {
                self.points = None;
            }
        }
        let index = usize::try_from((point.0 - self.from) / self.length).unwrap_or(0);
        let Some(stretch) = self.stretches.get_mut(index) else {
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

    /// Ends the count; returns its points, and whether they were thinned.
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
    use super::{MAX_POINTS, SlidingCount};

    const MILLI: i64 = 1_000_000;

    #[test]
    fn a_count_rises_with_requests_and_falls_a_window_later() {
        let mut following = SlidingCount::new(10 * MILLI, 0, 100, MAX_POINTS);
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
                    // One request arrives; a millisecond later two expire.
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
    fn a_part_begins_with_the_count_before_it() {
        for (from, to, expected) in [
            (5, 20, vec![(5, 2), (10, 1), (13, 0)]),
            (3, 3, vec![(3, 2)]),
            (20, 90, vec![(20, 0)]),
        ] {
            let mut following = SlidingCount::new(10 * MILLI, from, to, MAX_POINTS);
            for time in [0, 3, 91] {
                following.push(time * MILLI, 1);
            }
            assert_eq!(following.end(100 * MILLI), (expected, false), "{from} to {to}");
        }
    }

    #[test]
    fn a_thinned_count_keeps_the_largest_of_each_stretch() {
        let length = 1_000_000;
        let mut following = SlidingCount::new(10 * MILLI, 0, length, MAX_POINTS);
        for time in 0..=length {
            following.push(time * MILLI, 1);
            if time == 123_456 {
                following.push(time * MILLI, 90);
            }
        }
        let (points, thinned) = following.end(length * MILLI);
        assert!(thinned);
        assert!(
            points.len() <= MAX_POINTS && points.len() > MAX_POINTS / 3,
            "{}",
            points.len()
        );
        assert!(points.contains(&(123_456, 100)));
        assert!(points.is_sorted_by_key(|point| point.0));
    }
}
