//! Decisions, and the answers about a state that are computed on request.

use crate::receipt::Receipt;
use crate::time::Nanos;

mod admitted;
mod denied;
mod state_ref;
mod peek;

pub use admitted::Admitted;
pub use denied::Denied;
pub use peek::Peek;

#[cfg(feature = "striped")]
pub(crate) use denied::never;
pub(crate) use state_ref::NextEntry;
pub(crate) use state_ref::StateRef;

/// Joins a plain decision with the state that it was about.
#[inline(always)]
pub(crate) fn answer<'a, A>(
    algorithm: &'a A,
    held: StateRef<'a>,
    now: Nanos,
    permits: u64,
    receipt: Option<Receipt>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    match receipt {
        Some(receipt) => Ok(Admitted::new(Peek::new(algorithm, held, receipt.at()), receipt)),
        None => Err(Denied::new(Peek::new(algorithm, held, now), permits)),
    }
}
