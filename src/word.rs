//! The packed words of the algorithms, as values.
//!
//! Every word is the 64 bits of one atomic. Its fields have widths that follow from the quota, so
//! each kind of word comes with a layout. All words are zero when fresh.

/// Bits that the first word of every algorithm keeps to (packed ring, control of a wide ring, head of a log,
/// GCRA's word): the two bits above them are clear.
///
/// They belong to whoever keeps the words: a table marks an entry there that passes from one key to another, in
/// the word whose exchange decides. So the mark and the decision cannot miss each other.
pub(crate) const FIRST_WORD_BITS: u32 = 62;

mod lap;
mod mark;
mod packed;
#[cfg(feature = "keyed")]
mod staged;

pub(crate) use lap::{Head, LapLayout, Place, Slot};
pub(crate) use mark::{Mark, MarkLayout};
pub(crate) use packed::{Packed, PackedLayout};
#[cfg(feature = "keyed")]
pub(crate) use staged::{Stage, Staged};
