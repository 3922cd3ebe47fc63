//! Parts and looks, made of what the rules say.

use alloc::sync::Arc;

use super::answer::Look;
use super::store::{Counting, Found, Part, Verdict};
use super::store_error::{StoreError, StoreErrorKind};
use crate::rules::{Full, Mode, Planned};

/// That the store has said something of every part.
pub(super) fn complete(verdict: &Verdict, parts: &[Part]) -> Result<(), StoreError> {
    if verdict.found().len() == parts.len() {
        return Ok(());
    }
    let (found, asked) = (verdict.found().len(), parts.len());
    let detail = alloc::format!("{found} answers to {asked} questions");
    Err(StoreError::new(StoreErrorKind::Confused, detail))
}

pub(super) fn part(planned: &Planned<'_>) -> Part {
    Part {
        tag: planned.tag,
        rule: Arc::clone(planned.name),
        number: planned.number,
        counting: planned.cells.map_or(Counting::Log, Counting::Cells),
        limit: planned.limit,
        window: planned.quota.window(),
        permits: planned.permits,
        enforced: planned.enforced,
        reserve: 0,
        leased: matches!(planned.mode, Mode::Lease { .. } | Mode::Sync { .. }),
    }
}

pub(super) fn look((planned, found): (&Planned<'_>, &Found)) -> Look {
    Look {
        remaining: found.remaining(),
        retry_after: found.retry_after(),
        ..unknown(planned)
    }
}

pub(super) fn look_here(planned: &Planned<'_>, full: &Full) -> Look {
    Look {
        remaining: full.remaining,
        retry_after: full.retry_after,
        ..unknown(planned)
    }
}

/// What is known of a quota before anybody has looked.
pub(super) fn unknown(planned: &Planned<'_>) -> Look {
    Look {
        rule: Arc::clone(planned.name),
        quota: planned.quota,
        limit: planned.limit,
        permits: planned.permits,
        remaining: 0,
        retry_after: None,
        enforced: planned.enforced,
    }
}
