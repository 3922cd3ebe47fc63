//! What a caller learns beside the decision, worked out from the state when it is asked for.

use crate::decision::{Receipt, Refusal};

mod admitted;
mod denied;
mod held;
mod peek;

pub use admitted::Admitted;
pub use denied::Denied;
pub use peek::Peek;

#[cfg(feature = "striped")]
pub(crate) use denied::never;
pub(crate) use held::Held;

/// Joins a plain decision with the state that it was about.
#[inline(always)]
pub(crate) fn answer<'a, A>(
    algorithm: &'a A,
    held: Held<'a>,
    decision: Result<Receipt, Refusal>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    match decision {
        Ok(receipt) => Ok(Admitted::new(Peek::new(algorithm, held, receipt.at()), receipt)),
        Err(refusal) => Err(Denied::new(
            Peek::new(algorithm, held, refusal.at()),
            refusal.permits(),
        )),
    }
}
