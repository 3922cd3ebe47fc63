use crate::time::Nanos;

/// A decision without a receipt. It fits into two registers.
pub(crate) struct StateDecision {
    /// The caller's reading of the clock. The state may have decided at a newer time.
    pub(crate) at: Nanos,
    outcome: StateOutcome,
}

/// Whether the request was admitted, and whether the overflow policy decided, because the key found no entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StateOutcome {
    Admitted,
    Denied,
    AdmittedByOverflow,
    DeniedByOverflow,
}

impl StateDecision {
    #[inline(always)]
    pub(super) const fn new(at: Nanos, admitted: bool, overflow: bool) -> Self {
        let outcome = match (admitted, overflow) {
            (true, false) => StateOutcome::Admitted,
            (false, false) => StateOutcome::Denied,
            (true, true) => StateOutcome::AdmittedByOverflow,
            (false, true) => StateOutcome::DeniedByOverflow,
        };
        Self { at, outcome }
    }

    /// Whether the request was admitted, and not by the overflow policy.
    #[inline(always)]
    pub(crate) const fn is_admitted_by_entry(&self) -> bool {
        matches!(self.outcome, StateOutcome::Admitted)
    }

    #[inline(always)]
    pub(crate) const fn is_admitted(&self) -> bool {
        matches!(
            self.outcome,
            StateOutcome::Admitted | StateOutcome::AdmittedByOverflow
        )
    }

    /// Whether the overflow policy decided, because the key found no entry.
    #[inline(always)]
    pub(crate) const fn is_overflow(&self) -> bool {
        matches!(
            self.outcome,
            StateOutcome::AdmittedByOverflow | StateOutcome::DeniedByOverflow
        )
    }
}
