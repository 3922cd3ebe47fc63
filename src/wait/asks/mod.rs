#![doc = include_str!("protocol.md")]

mod admission;
mod ask_slots;
mod gate;
mod shared_fair;
mod shared_source;

pub use admission::SharedAdmission;
pub use shared_fair::SharedFair;
pub use shared_source::SharedSource;
