use super::admitted::Admitted;
use super::denied::Denied;
use super::peek::Peek;
use super::state_ref::StateRef;
use crate::algorithm::Algorithm;
use crate::receipt::Receipt;
use crate::time::Nanos;

/// Takes as many of `permits` as there is capacity for, by calls of `check` for fewer and fewer permits. A denial is that of a
/// request for one permit.
pub(crate) fn take_up_to<'a, A: Algorithm>(
    permits: u64,
    mut check: impl FnMut(u64) -> Result<Admitted<'a, A>, Denied<'a, A>>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    let mut permits = permits;
    loop {
        let decided = check(permits);
        match decided {
            // The capacity left is less than `permits`, unless permits were refunded meanwhile.
            Err(denied) if permits > 1 => permits = denied.remaining().clamp(1, permits - 1),
            decided => return decided,
        }
    }
}

/// Combines the result of an algorithm with the state that it was decided by, at the reading `now`.
#[inline(always)]
pub(crate) fn answer<'a, A>(
    algorithm: &'a A,
    state: StateRef<'a>,
    now: Nanos,
    permits: u64,
    receipt: Option<Receipt>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    answer_at(algorithm, state, now, now, permits, receipt)
}

/// Combines the result of an algorithm with the state that it was decided by, at the time `now`. The caller's reading of the
/// clock may be older, because a state of a table may begin later.
#[inline(always)]
pub(crate) fn answer_at<'a, A>(
    algorithm: &'a A,
    state: StateRef<'a>,
    now: Nanos,
    reading: Nanos,
    permits: u64,
    receipt: Option<Receipt>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    match receipt {
        Some(receipt) => Ok(Admitted::new(Peek::new(algorithm, state, receipt.at()), receipt)),
        None => Err(Denied::new(
            Peek::read_at(algorithm, state, now, reading),
            permits,
        )),
    }
}
