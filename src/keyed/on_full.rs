/// The treatment of a new key when all entries that it could have belong to keys whose windows still
/// run.
///
/// A key that has an entry keeps it, and the permits that it has spent, until its window is over. Only
/// [`Forget`](Self::Forget) makes an exception.
///
/// # Examples
///
/// ```
/// use ringgate::keyed::{AnyKey, OnFull};
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_hour(5)?)?)
///     .capacity(100)
///     .on_full(OnFull::Deny)
///     .build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))?;
/// let admitted = (0..10_000_u64).filter(|key| limiter.check(key).is_ok()).count();
/// // No more keys than entries, and each of them has got its permit.
/// assert_eq!(admitted as u64, limiter.counts().tracked);
/// assert!(limiter.counts().overflowed > 9_000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFull {
    /// Such keys share one catch-all limiter of the same quota, which is stricter for them and never looser.
    ///
    /// A key that it has admitted gets an entry of its own only when that admission no longer counts, and is denied in between,
    /// so the bound holds for every key. For each key that is denied in this way, one in 13 of the other new keys of the same 64
    /// entries is denied, too. The retry time of a denial is the catch-all's, or that of the key's own entry if the catch-all no
    /// longer decides by then. An entry may come free earlier.
    #[default]
    Share,
    /// Such keys are denied until an entry comes free.
    Deny,
    /// Such keys are admitted without being counted: no bound holds for them.
    Admit,
    /// Such a key takes over the entry in which the fewest permits are spent. It begins with the permits of
    /// that entry that still count one cell later (with a fixed window, with none). The forgotten key begins
    /// anew, so it may exceed the bound by the permits that it had spent. An entry changes its owner in
    /// this way at most once in a cell. If no entry can, the key shares the catch-all.
    ///
    /// A refund is forfeited if it would move the state back in time, as a refund by [`Gcra`](crate::Gcra) does. The
    /// entry may pass to another key before that time has come.
    ///
    /// A forgotten key may get the same entry again, with the permits that still count in it. A refund of one of its earlier
    /// charges subtracts that charge from them.
    Forget,
}
