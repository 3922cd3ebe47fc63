use alloc::boxed::Box;
use alloc::sync::Arc;
use core::mem;

use ::http::Response;
use ::http::request::Parts;

use super::body::Metering;
use super::in_flight_slot::{HeldSlots, InFlightSlot};
use super::reserved::Reserved;
use crate::http::answer::{AdmittedHeaders, Decision, HeaderValues};
use crate::http::config::{ChargeIf, Config};
use crate::http::rules::{Grant, HttpRules};

/// The work that remains when the inner service has responded to an admitted request.
pub(super) enum OnResponse<S: HttpRules> {
    Nothing,
    AddHeaders(Box<HeaderValues>),
    Settle(Box<Settlement<S>>),
}

/// The charge and the headers of an admitted request, until there is a response.
pub(super) struct Settlement<S: HttpRules> {
    pub(super) reserved: Reserved<S>,
    pub(super) charge_if: Option<Arc<ChargeIf>>,
    pub(super) headers: AdmittedHeaders,
}

/// Records the decision in an admitted request, and returns the work that is left for its response.
#[inline]
pub(super) fn record_admission<S: HttpRules, R>(
    config: &Config<S, R>,
    grant: Grant<S>,
    head: &mut Parts,
) -> OnResponse<S> {
    let Grant {
        charge,
        at,
        limited,
        headers,
    } = grant;
    if config.decision_extension {
        head.extensions.insert(Decision {
            at,
            admitted: true,
            limited,
        });
    }
    match charge {
        None => headers.map_or(OnResponse::Nothing, OnResponse::AddHeaders),
        Some(charge) => settle_later(config, charge, headers, head),
    }
}

#[inline(never)]
fn settle_later<S: HttpRules, R>(
    config: &Config<S, R>,
    mut charge: S::Charge,
    headers: AdmittedHeaders,
    head: &mut Parts,
) -> OnResponse<S> {
    let slots = S::take_slots(&mut charge).map(|held| {
        Arc::new(HeldSlots::<S> {
            queue: config.settings.queue.clone(),
            held: Some(held),
        })
    });
    if let Some(slots) = &slots {
        InFlightSlot::insert(slots, &mut head.extensions);
    }
    OnResponse::Settle(Box::new(Settlement {
        reserved: Reserved {
            rules: Arc::clone(&config.rules),
            queue: config.settings.queue.clone(),
            cost: config.body_cost.clone(),
            charge: Some(charge),
            bytes: 0,
            slots,
        },
        charge_if: config.charge_if.clone(),
        headers,
    }))
}

impl<S: HttpRules> OnResponse<S> {
    #[inline(never)]
    pub(super) fn apply<B, M: Metering<B, S>>(&mut self, mut response: Response<B>) -> Response<M::Body> {
        match mem::replace(self, Self::Nothing) {
            Self::Nothing => M::meter(response, None),
            Self::AddHeaders(mut headers) => {
                headers.add_to(response.headers_mut());
                M::meter(response, None)
            }
            Self::Settle(settlement) => {
                let Settlement {
                    mut reserved,
                    charge_if,
                    headers,
                } = *settlement;
                let (mut head, body) = response.into_parts();
                if let Some(charge_if) = charge_if
                    && !charge_if(&head)
                {
                    reserved.refund();
                }
                if let Some(mut headers) = headers {
                    headers.add_to(&mut head.headers);
                }
                M::meter(Response::from_parts(head, body), Some(reserved))
            }
        }
    }
}
