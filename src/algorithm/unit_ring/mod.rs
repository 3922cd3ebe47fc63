//! A strict counter ring in one word, for any limit.
//!
#![doc = include_str!("protocol.md")]

mod cells;
mod choose;
mod ring;
#[cfg(test)]
mod tests;
mod word;

pub(super) use cells::UnitCells;
pub use ring::UnitRing;
