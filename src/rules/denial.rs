use alloc::vec::Vec;
use core::time::Duration;

use super::evaluate::decision::Denied;
use super::quota_status::QuotaStatus;
use crate::time::Nanos;

/// A denial by rules, whether their counts are in this process or shared by many machines: what an observer needs of it.
///
/// [`Denied`] is one. So are a denial of shared rules and a rejection of the HTTP layer.
pub trait Denial {
    /// The reading of a clock of this process at which the request was denied.
    fn denied_at(&self) -> Nanos;

    /// The time from then on after which all rules would admit the request, if no other is admitted. `None`: never, or
    /// unknown.
    fn retry_after(&self) -> Option<Duration>;

    /// The status of every quota that denied the request. Allocates.
    fn violated_quotas(&self) -> Vec<QuotaStatus>;
}

impl<R: ?Sized> Denial for Denied<'_, R> {
    fn denied_at(&self) -> Nanos {
        self.at()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }

    fn violated_quotas(&self) -> Vec<QuotaStatus> {
        self.violations().map(|quota| quota.status()).collect()
    }
}
