//! The sliding count of a few keys over time.

use std::collections::HashMap;

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
#[derive(Debug)]
pub(crate) struct Curves {
    pub(crate) asked: Vec<Point>,
    pub(crate) admitted: Vec<Point>,
}

/// The curves of some keys, each of an entry by its place.
pub(crate) fn curves(
    judged: &mut Judged,
    entries: &[Entry],
    keys: &[(usize, u64)],
    span: Span,
) -> Result<Vec<Curves>, Failure> {
    let mut following: Vec<[Following; 2]> = keys
        .iter()
        .map(|&(entry, _)| [(); 2].map(|()| Following::new(entries[entry].window(), span)))
        .collect();
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
            if !verdict.is_about(place) {
                continue;
            }
            let (time, permits) = (time_of_word(record[0]), entry.cost_of(record));
            let [asked, admitted] = &mut following[number];
            asked.push(time, permits);
            if !verdict.is_refused() {
                admitted.push(time, permits);
            }
        }
        Ok(())
    })?;
    let ended = following.into_iter().map(|[asked, admitted]| Curves {
        asked: asked.end(span.last),
        admitted: admitted.end(span.last),
    });
    Ok(ended.collect())
}

/// The most points of a curve.
const MOST: usize = 2_000;

/// Follows one sliding count.
#[derive(Debug)]
struct Following {
    window: Window,
    /// All points, while they are not too many.
    points: Option<Vec<Point>>,
    stretches: Vec<Option<Stretch>>,
    from: i64,
    /// Milliseconds of one stretch.
    length: i64,
}

/// What is kept of a stretch of time: where the count was largest, and where it ended.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    largest: Point,
    last: Point,
}

impl Following {
    fn new(window: i64, span: Span) -> Self {
        let stretches = MOST / 2;
        let from = millis(span.first);
        Self {
            window: Window::new(window),
            points: Some(Vec::new()),
            stretches: vec![None; stretches],
            from,
            length: (millis(span.last) - from) / i64::try_from(stretches).unwrap_or(1) + 1,
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
        if let Some(points) = &mut self.points {
            match points.last_mut() {
                // The largest of one millisecond stays.
                Some(last) if last.0 == point.0 => last.1 = last.1.max(point.1),
                _ => points.push(point),
            }
            if points.len() > MOST {
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

    fn end(mut self, until: i64) -> Vec<Point> {
        self.let_go(until);
        if let Some(points) = self.points {
            return points;
        }
        let stretches = self.stretches.into_iter().flatten();
        let points = stretches.flat_map(|stretch| {
            let last = (stretch.last != stretch.largest).then_some(stretch.last);
            [stretch.largest].into_iter().chain(last)
        });
        points.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Following, MOST};
    use crate::failure::Failure;
    use crate::span::Span;

    const MILLI: i64 = 1_000_000;

    #[test]
    fn a_count_rises_with_requests_and_falls_a_window_later() -> Result<(), Failure> {
        let span = Span::new(0, 100 * MILLI, [10 * MILLI].into_iter())?;
        let mut following = Following::new(10 * MILLI, span);
        for time in [0, 3, 3, 12, 50] {
            following.push(time * MILLI, 1);
        }
        assert_eq!(
            following.end(span.last),
            [
                (0, 1),
                (3, 3),
                (10, 2),
                // One comes; a millisecond later two go.
                (12, 3),
                (13, 1),
                (22, 0),
                (50, 1),
                (60, 0)
            ]
        );
        Ok(())
    }

    #[test]
    fn a_thinned_curve_keeps_the_largest_of_each_stretch() -> Result<(), Failure> {
        let length = 1_000_000;
        let span = Span::new(0, length * MILLI, [10 * MILLI].into_iter())?;
        let mut following = Following::new(10 * MILLI, span);
        for time in 0..=length {
            following.push(time * MILLI, 1);
            if time == 123_456 {
                following.push(time * MILLI, 90);
            }
        }
        let points = following.end(span.last);
        assert!(
            points.len() <= MOST && points.len() > MOST / 3,
            "{}",
            points.len()
        );
        assert!(points.contains(&(123_456, 100)));
        assert!(points.is_sorted_by_key(|point| point.0));
        Ok(())
    }
}
