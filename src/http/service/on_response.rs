use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use ::http::Response;
use ::http::request::Parts;

use super::body::Metering;
use super::in_flight_slot::InFlightSlot;
use crate::http::answer::{Decision, HeaderValues, QuotaHeaders, QuotaPolicy};
use crate::http::config::{ChargeIf, Settings};
use crate::http::rules::{Admission, Charge, Slots};
use crate::rules::Cost;

/// The work that remains when the inner service has responded to an admitted request. Its box keeps the futures of requests small.
#[derive(Default)]
pub(in crate::http) struct OnResponse {
    headers: HeaderValues,
    reserved: Option<Reserved>,
}

/// A charge that is refunded, or settled by the bytes of a body, and the slots in flight of the request.
///
/// Dropping it settles the rules that have the cost, by the bytes that were counted so far. Without a cost, the permits stay charged.
/// Then the slots are released, unless a [`SlotGuard`](super::SlotGuard) holds them.
#[expect(unnameable_types, reason = "an argument of a sealed trait")]
pub struct Reserved {
    charge: Option<Box<dyn Charge>>,
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
        match self.charge {
            None => self.on_response,
            Some(charge) => Some(settle_later(settings, charge, self.on_response, head)),
        }
    }
}

#[inline(never)]
fn settle_later<C>(
    settings: &Settings<C>,
    mut charge: Box<dyn Charge>,
    on_response: Option<Box<OnResponse>>,
    head: &mut Parts,
) -> Box<OnResponse> {
    let slots = charge.take_slots();
    if let Some(slots) = &slots {
        InFlightSlot::insert(slots, &mut head.extensions);
    }
    let mut on_response = on_response.unwrap_or_default();
    on_response.reserved = Some(Reserved {
        charge: Some(charge),
        charge_if: settings.charge_if.clone(),
        cost: settings.body_cost.clone(),
        bytes: 0,
        slots,
    });
    on_response
}

impl OnResponse {
    /// The headers are written in place, because they are too large to move.
    pub(in crate::http) fn with_headers(headers: QuotaHeaders, policies: &[QuotaPolicy<'_>]) -> Box<Self> {
        let mut on_response = Box::<Self>::default();
        headers.write_admission(policies, &mut on_response.headers);
        on_response
    }

    #[inline(never)]
    pub(super) fn apply<B, M: Metering<B>>(
        mut self: Box<Self>,
        mut response: Response<B>,
    ) -> Response<M::Body> {
        let mut reserved = self.reserved.take();
        if let Some(Reserved {
            charge,
            charge_if: Some(charge_if),
            ..
        }) = &mut reserved
        {
            let (head, body) = response.into_parts();
            if !charge_if(&head)
                && let Some(charge) = charge.take()
            {
                charge.refund();
            }
            response = Response::from_parts(head, body);
        }
        self.headers.add_to(response.headers_mut());
        M::meter(response, reserved)
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved")
            .field("cost", &self.cost)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let (Some(cost), Some(charge)) = (&self.cost, self.charge.take()) {
            charge.settle(cost, self.bytes);
        }
        // A slot is released after the settlement.
        drop(self.slots.take());
    }
}
