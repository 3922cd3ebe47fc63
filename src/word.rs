//! The packed words of the algorithms, as values.
//!
//! Every word is the 64 bits of one atomic. Its fields have widths that follow from the quota, so
//! each kind of word comes with a layout. All words are zero when fresh.

mod lap;
mod mark;
mod packed;

pub(crate) use lap::{Head, LapLayout, Place, Slot};
pub(crate) use mark::{Mark, MarkLayout};
pub(crate) use packed::{Packed, PackedLayout};
