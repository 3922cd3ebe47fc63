use alloc::sync::Arc;
use core::fmt;

use super::ask_slots::States;
use crate::shared::{Admitted, Charges, SharedRules};

/// The admission of a request by shared rules, with the rules that have decided, and that its charges belong to.
///
/// [`SharedFair::refund`](super::SharedFair::refund) and [`SharedFair::settle`](super::SharedFair::settle) need it. Dropping it leaves
/// the permits charged, and releases its slots of rules that limit [requests in flight](crate::Rule::in_flight), which a waiter finds
/// within a second.
pub struct SharedAdmission<R: ?Sized> {
    pub(crate) rules: Arc<SharedRules<R>>,
    pub(crate) admitted: Admitted<Charges<R>>,
    /// The states that it needs, whose waiters are woken when its charges end.
    pub(crate) states: States,
}

impl<R: ?Sized> SharedAdmission<R> {
    /// Returns the decision.
    pub const fn admitted(&self) -> &Admitted<Charges<R>> {
        &self.admitted
    }
}

impl<R: ?Sized> fmt::Debug for SharedAdmission<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedAdmission")
            .field("admitted", &self.admitted)
            .finish_non_exhaustive()
    }
}
