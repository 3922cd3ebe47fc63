use alloc::vec::Vec;
use core::time::Duration;

use super::quota_status::QuotaStatus;
use crate::time::Nanos;

/// A denial by local or shared rules, with the values that an observer needs.
///
/// It is a [`Denied`](super::Denied), or a rejection of the HTTP layer.
pub trait Denial {
    /// The clock reading at which this process denied the request.
    fn denied_at(&self) -> Nanos;

    /// The time from the denial until all rules would admit the request, if no other request came before. `None` if they never
    /// would, or if the time is unknown.
    fn retry_after(&self) -> Option<Duration>;

    /// The status of every quota that denied the request. This call allocates.
    fn violated_quotas(&self) -> Vec<QuotaStatus>;

    /// Returns whether the store of shared rules did not answer, and a rule denies requests then. The default is `false`.
    fn is_unavailable(&self) -> bool {
        false
    }
}
