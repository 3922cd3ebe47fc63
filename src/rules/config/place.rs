use alloc::vec::Vec;
use core::cell::Cell;

/// Where something stands in a text: line and column from 1 on, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// Where the lines of a text begin.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// The last place that was asked for: most are asked for in the order of the text, and lines may be long.
    last: Cell<(usize, Place)>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: core::iter::once(0).chain(after).collect(),
            last: Cell::new((0, Place::START)),
        }
    }

    /// The place of the character that begins `offset` bytes into the text.
    pub(super) fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset);
        let (from, column) = match self.last.get() {
            (from, place) if place.line == line && from <= offset => (from, place.column),
            _ => (self.starts[line - 1], 1),
        };
        let between = self.text.get(from..offset).unwrap_or_default();
        let column = column + between.chars().count();
        let place = Place { line, column };
        self.last.set((offset, place));
        place
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Place};

    #[test]
    fn places_are_the_same_in_whichever_order_they_are_asked_for() {
        let text = "aé\n\nß: µs\r\nx";
        let offsets = || text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
        let alone = |offset| Lines::of(text).place(offset);
        let lines = Lines::of(text);
        for offset in offsets().chain(offsets().rev()).chain(offsets().step_by(3)) {
            assert_eq!(lines.place(offset), alone(offset), "{offset}");
        }
        assert_eq!(alone(text.find('s').unwrap_or(0)), Place { line: 3, column: 5 });
        assert_eq!(alone(text.len()), Place { line: 4, column: 2 });
    }
}
