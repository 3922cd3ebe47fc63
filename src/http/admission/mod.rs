//! The work that is left for an admitted request: its charge, its slots in flight, and the headers of its response.

mod in_flight_slot;
mod on_response;

pub use in_flight_slot::{InFlightSlot, SlotGuard};
pub(super) use in_flight_slot::{Slots, slots};
pub(super) use on_response::{Charge, ChargeIf, OnResponse};
