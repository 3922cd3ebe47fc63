use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use ::http::Response;
use ::http::request::Parts;

use super::body::Metering;
use super::in_flight_slot::InFlightSlot;
use crate::http::answer::{Decision, HeaderValues};
use crate::http::config::{ChargeIf, Settings};
use crate::http::rules::{Admission, Charge, Slots};
use crate::rules::Cost;

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
    pub(super) bytes: u64,
    slots: Option<Slots>,
}

impl Admission {
    /// Records the decision in an admitted request, and returns the work that is left for its response.
    #[inline]
    pub(super) fn record<C>(self, settings: &Settings<C>, head: &mut Parts) -> Option<Box<OnResponse>> {
        if settings.decision_extension {
            head.extensions.insert(Decision {
                at: self.at,
                admitted: true,
                limited: self.limited,
            });
        }
        let mut on_response = self.on_response;
        if let Some(on_response) = &mut on_response {
            on_response.reserve(settings, head);
        }
        on_response
    }
}

impl OnResponse {
    /// Prepares to settle the charge of the request, if there is one.
    #[inline(never)]
    fn reserve<C>(&mut self, settings: &Settings<C>, head: &mut Parts) {
        if let Some(charge) = &mut self.charge {
            self.slots = charge.take_slots();
            self.charge_if.clone_from(&settings.charge_if);
            self.cost.clone_from(&settings.body_cost);
        }
        if let Some(slots) = &self.slots {
            InFlightSlot::insert(slots, &mut head.extensions);
        }
    }

    #[inline(never)]
    pub(super) fn apply<B, M: Metering<B>>(
        mut self: Box<Self>,
        mut response: Response<B>,
    ) -> Response<M::Body> {
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
        M::meter(response, Some(self))
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
