use super::admitted::Admitted;
use super::denied::Denied;
use super::peek::Peek;
use super::state_ref::StateRef;
use crate::receipt::Receipt;
use crate::time::Nanos;

/// Joins a plain decision with the state that it was about.
#[inline(always)]
pub(crate) fn answer<'a, A>(
    algorithm: &'a A,
    state: StateRef<'a>,
    now: Nanos,
    permits: u64,
    receipt: Option<Receipt>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    match receipt {
        Some(receipt) => Ok(Admitted::new(Peek::new(algorithm, state, receipt.at()), receipt)),
        None => Err(Denied::new(Peek::new(algorithm, state, now), permits)),
    }
}
