use alloc::vec::Vec;
use core::cell::Cell;

/// A position in a text: line and column, counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Position {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// The offsets at which the lines of a text begin.
pub(crate) struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// The last result, from which the next lookup counts: most are in the order of the text, and a line may be long.
    last: Cell<(usize, Position)>,
}

impl<'t> LineIndex<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: core::iter::once(0).chain(after).collect(),
            last: Cell::new((0, Position::START)),
        }
    }

    /// The position of the character at a byte offset.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|&start| start <= offset);
        let (from, column) = match self.last.get() {
            (from, position) if position.line == line && from <= offset => (from, position.column),
            _ => (self.starts[line - 1], 1),
        };
        let between = self.text.get(from..offset).unwrap_or_default();
        let column = column + between.chars().count();
        let position = Position { line, column };
        self.last.set((offset, position));
        position
    }
}

#[cfg(test)]
mod tests {
    use super::{LineIndex, Position};

    #[test]
    fn positions_do_not_depend_on_the_order_of_lookups() {
        let text = "aé\n\nß: µs\r\nx";
        let offsets = || text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
        let alone = |offset| LineIndex::of(text).position(offset);
        let lines = LineIndex::of(text);
        for offset in offsets().chain(offsets().rev()).chain(offsets().step_by(3)) {
            assert_eq!(lines.position(offset), alone(offset), "{offset}");
        }
        assert_eq!(
            alone(text.find('s').unwrap_or(0)),
            Position { line: 3, column: 5 }
        );
        assert_eq!(alone(text.len()), Position { line: 4, column: 2 });
    }
}
