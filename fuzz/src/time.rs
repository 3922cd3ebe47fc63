use std::time::Duration;

use arbitrary::Arbitrary;
use ringgate::Nanos;

/// Fourteen years in nanoseconds. Later decisions are only checked against the bounds, not against the reference: the time of
/// GCRA ends after fifteen years.
pub const HORIZON: u64 = 14 * 365 * 24 * 3600 * 1_000_000_000;

/// A change of the clock between two calls.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Step {
    Stay,
    Nanos(u16),
    /// In 256ths of the window.
    Parts(u8),
    /// To the next edge of a cell, or to a whole window after an earlier reading, or a few nanoseconds beside either.
    Edge {
        ago: u8,
        beside: i8,
    },
    Windows(u8),
    Back(u8),
    Jump(u64),
}

impl Step {
    /// Returns the next reading. `past` has the earlier readings, oldest first. `cell` is the width of a cell.
    pub fn from(self, past: &[Nanos], window: Duration, cell: Duration) -> Nanos {
        let now = past.last().copied().unwrap_or_default();
        let (width, cell) = (window.as_nanos() as u64, cell.as_nanos() as u64);
        let later = |nanos| now.saturating_add(Duration::from_nanos(nanos));
        match self {
            Self::Stay => now,
            Self::Nanos(nanos) => later(nanos.into()),
            Self::Parts(parts) => later(width / 256 * u64::from(parts)),
            Self::Edge { ago, beside } => {
                let edge = match past.len().checked_sub(1 + usize::from(ago) / 2) {
                    Some(at) if ago % 2 == 1 => past[at].get().saturating_add(width),
                    _ => (now.get() / cell + 1).saturating_mul(cell),
                };
                // At most 4 ns beside the edge.
                Nanos::new(edge.saturating_add_signed(i64::from(beside / 32)))
            }
            Self::Windows(windows) => later(width.saturating_mul(windows.into())),
            Self::Back(parts) => Nanos::new(now.get().saturating_sub(width / 64 * u64::from(parts))),
            Self::Jump(nanos) => Nanos::new(nanos),
        }
    }
}
