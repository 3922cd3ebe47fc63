use alloc::sync::Arc;

/// The treatment of a request that lacks the rule's key: see [`Key::optional`](crate::Key::optional).
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::rules::{OnMissingKey, RuleSetBuilder};
/// use ringgate::{Key, ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::optional("user", OnMissingKey::Deny, |user: &Option<&str>, key| {
///     user.hash(key);
///     user.is_some()
/// });
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("user", "10/s".parse()?).by(&user))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check(&Some("alice")).is_ok());
/// let denied = rules.check(&None).unwrap_err();
/// assert!(denied.violations().any(|quota| quota.lacks_key));
/// // A later retry would also be denied.
/// assert_eq!(denied.retry_after(), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// All such requests count together, as if they had the same key. This is the default, so that a client cannot evade a limit by
    /// omitting a header.
    #[default]
    Share,
    /// The request is denied, as if its key were on the rule's `deny` list.
    Deny,
    /// The rule does not apply to the request.
    Skip,
    /// The request is denied as with [`Deny`](Self::Deny). The cause is the server, which should provide the key of every request.
    ///
    /// The HTTP layer rejects such requests with status 500. This is the layer's default for client addresses, which a server may
    /// not have been configured to provide.
    Fail,
}

impl OnMissingKey {
    /// Whether a request without the key is denied.
    pub(crate) const fn denies(self) -> bool {
        match self {
            Self::Deny | Self::Fail => true,
            Self::Share | Self::Skip => false,
        }
    }
}

/// The treatment of one request that lacks a key.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) on_missing: OnMissingKey,
    /// Why the request lacks the key, if the key knows it.
    pub(crate) cause: Option<MissingCause>,
    /// Whether the part of the request that has the key is ambiguous. The request is denied then, whatever the key's treatment of
    /// requests without it.
    pub(crate) is_ambiguous: bool,
}

/// Why a request lacks a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingCause {
    /// The missing part, and the accepted values.
    pub(crate) text: Arc<str>,
    /// The part of the request that was given instead, for the log.
    pub(crate) given: Option<Arc<str>>,
}

/// Returns the treatment of a request that lacks the key. The argument is the treatment that was set for the key.
pub(crate) type MissingFn<R> = dyn Fn(&R, Option<OnMissingKey>) -> Missing + Send + Sync;

impl Missing {
    pub(crate) const fn of(on_missing: OnMissingKey) -> Self {
        Self {
            on_missing,
            cause: None,
            is_ambiguous: false,
        }
    }

    /// The treatment of a request whose key cannot be read.
    pub(crate) const fn ambiguous(cause: MissingCause) -> Self {
        Self {
            on_missing: OnMissingKey::Deny,
            cause: Some(cause),
            is_ambiguous: true,
        }
    }

    /// The first treatment of an ambiguous key, or else the first that denies, or else the first one. `on_missing` replaces it, unless
    /// the key is ambiguous.
    pub(crate) fn first_denial(parts: impl Iterator<Item = Self>, on_missing: Option<OnMissingKey>) -> Self {
        let rank = |part: &Self| (part.is_ambiguous, part.on_missing.denies());
        let first = parts.reduce(|first, next| if rank(&next) > rank(&first) { next } else { first });
        let first = first.unwrap_or_else(|| Self::of(OnMissingKey::default()));
        match on_missing {
            Some(on_missing) if !first.is_ambiguous => Self { on_missing, ..first },
            Some(_) | None => first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that cannot be read is reported, wherever it is among parts that are missing.
    #[test]
    fn an_ambiguous_part_comes_first() {
        let cause = MissingCause {
            text: "a header in one line".into(),
            given: None,
        };
        let ambiguous = || Missing::ambiguous(cause.clone());
        for parts in [
            [Missing::of(OnMissingKey::Deny), ambiguous()],
            [ambiguous(), Missing::of(OnMissingKey::Fail)],
            [Missing::of(OnMissingKey::Skip), ambiguous()],
        ] {
            let first = Missing::first_denial(parts.into_iter(), Some(OnMissingKey::Share));
            assert!(first.is_ambiguous && first.on_missing == OnMissingKey::Deny);
        }
        let parts = [OnMissingKey::Skip, OnMissingKey::Fail, OnMissingKey::Deny].map(Missing::of);
        let first = Missing::first_denial(parts.into_iter(), None);
        assert!(first.on_missing == OnMissingKey::Fail);
    }
}
