use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::quota_status::QuotaStatus;
use crate::time::Nanos;

/// A denial by local or shared rules, with the values that an observer needs.
///
/// [`Denied`](super::Denied) is one. So are a denial of shared rules and a rejection of the HTTP layer.
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

/// Writes a reason and the quotas that denied a request. With `spent`, each has its permits left.
pub(crate) fn write_violations(
    f: &mut fmt::Formatter<'_>,
    reason: &str,
    violations: &[QuotaStatus],
    spent: bool,
) -> fmt::Result {
    for (index, violation) in violations.iter().enumerate() {
        let before = if index == 0 { reason } else { ", " };
        write!(f, "{before}{}", violation.rule)?;
        if violation.is_block {
            f.write_str(" (blocked)")?;
        } else if spent {
            let (remaining, limit) = (violation.remaining, violation.limit);
            write!(
                f,
                " ({remaining} of {limit} {} left)",
                violation.quota.per_window()
            )?;
        }
    }
    Ok(())
}

/// Writes when a request may be admitted. `awaits_slot` is whether another request has to end first.
pub(crate) fn write_retry(
    f: &mut fmt::Formatter<'_>,
    retry_after: Option<Duration>,
    awaits_slot: bool,
) -> fmt::Result {
    match retry_after {
        Some(after) => write!(f, "; try again in {after:?}"),
        None if awaits_slot => f.write_str("; try again when a request has ended"),
        None => f.write_str("; never admitted"),
    }
}
