//! The choice of cells and units.

use super::cells::UnitCells;
use crate::algorithm::cell_window::StrictLimit;
use crate::quota::Quota;
use crate::time::HORIZON;

/// The least width of a cell, in nanoseconds.
const MIN_CELL: u64 = 10;

/// A choice of cells and units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) cells: UnitCells<StrictLimit>,
    /// N, the cells of a window.
    count: u64,
    /// L − u + 1, for the lowest limit: the permits that N + 1 cells surely hold before a request for one permit is denied.
    admitted: u64,
}

impl Choice {
    /// Whether this choice guarantees more permits per window: (L − u + 1)·N/(N + 1).
    fn is_better_than(&self, other: &Self) -> bool {
        let of = |this: &Self, that: &Self| {
            u128::from(this.admitted) * u128::from(this.count) * u128::from(that.count + 1)
        };
        of(self, other) > of(other, self)
    }
}

/// Returns the cells and the unit with the largest guaranteed share for a client with the limit `lowest`, at most that of the
/// quota. The smaller of two units that guarantee the same is chosen. `None` if no unit leaves enough bits for the ticks.
pub(super) fn choose(quota: Quota, lowest: u64) -> Option<Choice> {
    let bits = u64::BITS - quota.limit().leading_zeros();
    (0..bits)
        .filter_map(|unit_bits| most_cells(quota, lowest, unit_bits))
        .reduce(|best, next| if next.is_better_than(&best) { next } else { best })
}

/// The most cells that fit beside units of 2^`unit_bits` permits.
fn most_cells(quota: Quota, lowest: u64, unit_bits: u32) -> Option<Choice> {
    let fitting = |count: u64| {
        let width = quota.window_nanos().div_ceil(count);
        let cells = UnitCells::strict(quota.limit(), count, unit_bits, width, HORIZON / width)?;
        (quota.window_nanos() / count >= MIN_CELL).then_some(cells)
    };
    let (count, cells) = (1..62).rev().find_map(|count| Some((count, fitting(count)?)))?;
    Some(Choice {
        cells,
        count,
        admitted: (lowest + 1).saturating_sub(cells.unit()),
    })
}
