use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use ::http::Extensions;

/// The slots in flight of a request. Dropping the last reference releases them, and wakes the requests that wait for them.
pub(in crate::http) type Slots = Arc<dyn Any + Send + Sync>;

/// Returns slots that are released by this function.
pub(in crate::http) fn slots(release: impl FnOnce() + Send + Sync + 'static) -> Slots {
    Arc::new(Held(Some(release)))
}

/// Slots in flight, with the function that releases them, which is called on drop.
struct Held<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Held<F> {
    fn drop(&mut self) {
        if let Some(release) = self.0.take() {
            release();
        }
    }
}

/// The slot [in flight](crate::Rule::in_flight) of a request, which a handler can hold longer than the request.
///
/// The layer inserts it into the extensions of a request that holds a slot. By itself it holds nothing: the slot is released with
/// the response, or with the end of its body ([`until_body_end`](crate::http::RateLimitLayer::until_body_end)). Both are too
/// early for a connection that is upgraded, such as a WebSocket: its response 101 has no body. The handler then calls
/// [`hold`](Self::hold), and keeps the guard as long as the connection.
///
/// If several layers limit requests in flight, it stands for the slots of all of them.
///
/// # Examples
///
/// A handler that upgrades the connection. A handler of axum can take the slot as an argument, `Option<Extension<InFlightSlot>>`.
///
/// ```
/// use ringgate::http::InFlightSlot;
///
/// # fn upgrade(_: impl Future<Output = ()> + Send + 'static) -> http::Response<()> { http::Response::new(()) }
/// # async fn serve_socket() {}
/// fn handler(request: &http::Request<()>) -> http::Response<()> {
///     let slot = request.extensions().get::<InFlightSlot>();
///     let guard = slot.and_then(InFlightSlot::hold);
///     upgrade(async move {
///         serve_socket().await;
///         // The slot is free when the socket has ended, or this future is dropped.
///         drop(guard);
///     })
/// }
/// # let _ = handler;
/// ```
#[derive(Clone, Debug, Default)]
pub struct InFlightSlot {
    slots: Vec<Weak<dyn Any + Send + Sync>>,
}

/// Holds the slot of a request until it is dropped. From [`InFlightSlot::hold`].
#[must_use = "dropping the guard releases the slot"]
pub struct SlotGuard {
    slots: Vec<Slots>,
}

impl InFlightSlot {
    /// Holds the slot until the guard, and all other guards of the request, are dropped. The slot is never released earlier than
    /// without a guard.
    ///
    /// Returns `None` if the slot was released already, because the response body has ended.
    #[must_use]
    pub fn hold(&self) -> Option<SlotGuard> {
        let slots: Vec<_> = self.slots.iter().filter_map(Weak::upgrade).collect();
        (!slots.is_empty()).then_some(SlotGuard { slots })
    }

    /// Adds these slots to those that the request holds.
    pub(super) fn insert(slots: &Slots, extensions: &mut Extensions) {
        let held = extensions.get_or_insert_default::<Self>();
        held.slots.push(Arc::downgrade(slots));
    }
}

impl fmt::Debug for SlotGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlotGuard").field(&self.slots.len()).finish()
    }
}
