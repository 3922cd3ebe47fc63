use std::time::Duration;

use arbitrary::Arbitrary;
use ringgate::Nanos;

/// Fifteen years in nanoseconds: until then decisions are compared with the references. Later only
/// the promises hold.
pub const HORIZON: u64 = 15 * 365 * 24 * 3600 * 1_000_000_000;

/// How the clock moves between two calls.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Step {
    Stay,
    Nanos(u16),
    /// In 256ths of the window.
    Parts(u8),
    /// To the edge of a cell or a whole window after a past reading, or just beside it.
    Edge {
        ago: u8,
        beside: i8,
    },
    Windows(u8),
    Back(u8),
    Jump(u64),
}

impl Step {
    /// The next reading. `past` are those before, oldest first; `cell` is the width of the algorithm's cells.
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
                // Within 2 units of a timestamp ring, mostly exactly.
                Nanos::new(edge.saturating_add_signed(i64::from(beside / 32)))
            }
            Self::Windows(windows) => later(width.saturating_mul(windows.into())),
            Self::Back(parts) => Nanos::new(now.get().saturating_sub(width / 64 * u64::from(parts))),
            Self::Jump(nanos) => Nanos::new(nanos),
        }
    }
}
