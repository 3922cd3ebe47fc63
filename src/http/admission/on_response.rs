use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use ::http::request::Parts;
use ::http::{Response, response};

use super::in_flight_slot::{InFlightSlot, Slots};
use crate::http::answer::HeaderValues;
use crate::rules::Cost;

/// The charge of an admitted request, with the rules that it belongs to.
pub(in crate::http) trait Charge: Send + Sync {
    /// Takes the slots in flight. `None` if it holds none.
    fn take_slots(&mut self) -> Option<Slots>;

    /// Refunds a charge that holds no slots.
    fn refund(self: Box<Self>);

    /// Settles the rules that have this cost: replaces their charge by the actual amount.
    fn settle(self: Box<Self>, cost: &Cost<Parts>, actual: u64);
}

/// The function that decides by the response whether a request is charged.
pub(in crate::http) type ChargeIf = dyn Fn(&response::Parts) -> bool + Send + Sync;

/// The work that remains when the inner service has responded to an admitted request: its headers, its charge, which is refunded, or
/// settled by the bytes of a body, and its slots in flight.
///
/// Dropping it settles the rules that have the cost, by the bytes that were counted so far. Without a cost, the permits stay charged.
/// Then the slots are released, unless a [`SlotGuard`](super::SlotGuard) holds them.
#[derive(Default)]
#[expect(unnameable_types, reason = "an argument of a sealed trait")]
pub struct OnResponse {
    pub(in crate::http) headers: HeaderValues,
    pub(in crate::http) charge: Option<Box<dyn Charge>>,
    charge_if: Option<Arc<ChargeIf>>,
    cost: Option<Cost<Parts>>,
    pub(in crate::http) bytes: u64,
    slots: Option<Slots>,
}

impl OnResponse {
    /// Prepares to settle the charge of the request, if there is one.
    #[inline(never)]
    pub(in crate::http) fn reserve(
        &mut self,
        charge_if: Option<&Arc<ChargeIf>>,
        cost: Option<&Cost<Parts>>,
        head: &mut Parts,
    ) {
        if let Some(charge) = &mut self.charge {
            self.slots = charge.take_slots();
            self.charge_if = charge_if.cloned();
            self.cost = cost.cloned();
        }
        if let Some(slots) = &self.slots {
            InFlightSlot::insert(slots, &mut head.extensions);
        }
    }

    #[inline(never)]
    pub(in crate::http) fn apply<B>(&mut self, mut response: Response<B>) -> Response<B> {
        if let Some(charge_if) = self.charge_if.take() {
            let (head, body) = response.into_parts();
            if !charge_if(&head)
                && let Some(charge) = self.charge.take()
            {
                charge.refund();
            }
            response = Response::from_parts(head, body);
        }
        self.headers.add_to(response.headers_mut());
        response
    }
}

impl fmt::Debug for OnResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnResponse")
            .field("headers", &self.headers)
            .field("cost", &self.cost)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for OnResponse {
    fn drop(&mut self) {
        if let (Some(cost), Some(charge)) = (&self.cost, self.charge.take()) {
            charge.settle(cost, self.bytes);
        }
        // A slot is released after the settlement.
        drop(self.slots.take());
    }
}
