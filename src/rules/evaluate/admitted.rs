use crate::rules::decided_by::DecidedBy;
use crate::time::Nanos;

/// The admission of a request by all rules, of one process or shared by many machines.
///
/// `C` is the record of its charges. [`RuleSet::check`](crate::RuleSet::check) keeps only the reading of its clock. For charges
/// that can be refunded, call [`RuleSet::reserve`](crate::RuleSet::reserve). Shared rules keep
/// [`Charges`](crate::shared::Charges).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted<C = Nanos> {
    decided_by: DecidedBy,
    pub(crate) charges: C,
}

impl<C> Admitted<C> {
    #[inline(always)]
    pub(crate) const fn new(decided_by: DecidedBy, charges: C) -> Self {
        Self { decided_by, charges }
    }

    /// Returns where the decision was made.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Returns whether any rule applied to the request: it was charged, also by a rule in the shadow, or admitted because a store
    /// did not answer.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        !matches!(self.decided_by, DecidedBy::Rules)
    }
}

impl Admitted {
    /// Returns the reading of the clock that the decision used.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.charges
    }
}
