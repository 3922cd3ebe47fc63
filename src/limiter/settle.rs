use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::own_words::OwnWords;
use crate::receipt::{ChargedTo, Receipt, Settled};
use crate::sync::Shared;

/// Settles an estimate at its actual cost.
pub(super) fn settle(
    algorithm: &impl Algorithm,
    words: &OwnWords,
    clock: &impl Clock,
    receipt: &Receipt,
    actual: u64,
) -> Settled {
    let is_ours = receipt.charged_to() == ChargedTo::Limiter(words.number());
    let words = Shared::new(words.get());
    if let Some(excess) = receipt.permits().checked_sub(actual) {
        if excess == 0 || (is_ours && algorithm.refund(words, receipt, excess)) {
            Settled::Exact
        } else {
            Settled::Forfeited(excess)
        }
    } else {
        let debt = actual - receipt.permits();
        match debt - algorithm.charge(words, clock.now(), debt) {
            0 => Settled::Exact,
            forgiven => Settled::Forgiven(forgiven),
        }
    }
}
