use super::admitted::Admitted;
use super::denied::Denied;
use super::peek::Peek;
use super::state_ref::StateRef;
use crate::algorithm::Algorithm;
use crate::receipt::Receipt;
use crate::time::Nanos;

/// Admits as many of `permits` as `check` does, by requests for fewer and fewer permits. A denial is that of one permit.
pub(crate) fn take_up_to<'a, A: Algorithm>(
    permits: u64,
    mut check: impl FnMut(u64) -> Result<Admitted<'a, A>, Denied<'a, A>>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    let mut permits = permits;
    loop {
        let decided = check(permits);
        match decided {
            // The capacity left is at least one permit less than was denied, unless permits were refunded meanwhile.
            Err(denied) if permits > 1 => permits = denied.remaining().clamp(1, permits - 1),
            decided => return decided,
        }
    }
}

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
