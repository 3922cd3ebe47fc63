use core::time::Duration;

use crate::algorithm::{BlockLength, Violations};
use crate::quota::Quota;

/// The block of a key that violates a rule too often, for [`Rule::block`](crate::Rule::block).
///
/// A *violation* is a request that the rule denies by its limit. The first violation of a key opens a window. If the key reaches
/// the number of violations in its window, it is blocked from that violation on: the rule denies all its requests, unless they cost nothing. A violation
/// after the window, or after the block, opens a new window. So an interval of one window can have up to 2n − 2 violations without a
/// block, where n is the number that begins one.
///
/// Times are rounded to 10 ms: a window may begin, and a block may end, up to 10 ms earlier or later.
///
/// # What is a violation
///
/// - A denial of an enforced key counts for each rule that denied, as in [`RuleCounts::denied`](crate::rules::RuleCounts). A rule
///   in the shadow, or in the shadow for this key, counts none and blocks none.
/// - A request that is denied while its key is blocked is no violation. It changes nothing, unless the block
///   [extends](Self::extend_on_retry).
/// - A denial by the `deny` list, for a missing key, or by a lower limit of zero is no violation.
/// - A denial of a key without an entry in the full table is no violation, because other keys may have caused it.
/// - A request to a `Fair`, or to an HTTP layer that lets requests wait, violates no rule, also if it is denied in the end.
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use core::time::Duration;
/// use ringgate::rules::{Block, RuleSetBuilder};
/// use ringgate::{Key, ManualClock, Quota, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::new("user", |user: &str, key| user.hash(key));
/// // Three denials in a minute block a user for ten minutes.
/// let block = Block::new(Quota::per_minute(3)?, Duration::from_secs(600));
/// let clock = ManualClock::new();
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("logins", "2/s".parse()?).by(&user).block(block))
///     .build_with(clock.clone(), [1, 2, 3, 4])?;
/// assert!(rules.check("alice").is_ok() && rules.check("alice").is_ok());
/// for _ in 0..3 {
///     assert!(rules.check("alice").is_err());
/// }
/// // The limit has capacity again, but the user is blocked.
/// clock.advance(Duration::from_secs(60));
/// let denied = rules.check("alice").unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(540)));
/// assert!(rules.check("bob").is_ok());
///
/// assert_eq!(rules.unblock("alice"), 1);
/// assert!(rules.check("alice").is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a block does nothing until it is in a rule"]
#[non_exhaustive]
pub struct Block {
    /// The violations that begin a block, and their window.
    pub after: Quota,
    /// The duration of the first block of a key.
    pub duration: Duration,
    /// The factor by which a further block is longer than the one before. 1 without [`escalate`](Self::escalate).
    pub factor: u32,
    /// The longest duration of a block. Equal to `duration` without [`escalate`](Self::escalate).
    pub ceiling: Duration,
    /// The time after which a key is forgiven: see [`escalate`](Self::escalate).
    pub forgive_after: Duration,
    /// Whether a retry [extends](Self::extend_on_retry) the block.
    pub extends: bool,
}

impl Block {
    /// The shortest block, and the shortest window of violations.
    pub(crate) const MIN: Duration = Duration::from_secs(1);

    /// The longest block.
    pub(crate) const MAX: Duration = Quota::MAX_WINDOW;

    /// Creates a block that begins at the last of `after` violations in a window, and lasts for `duration`.
    ///
    /// The rule set checks the ranges: 1 to 65,535 violations in a window of a second or more, and a block of a second to 366 days.
    pub const fn new(after: Quota, duration: Duration) -> Self {
        Self {
            after,
            duration,
            factor: 1,
            ceiling: duration,
            forgive_after: Duration::ZERO,
            extends: false,
        }
    }

    /// Makes repeated blocks longer: the k-th block of a key lasts `factor`^(k − 1) times as long as the first, but at most
    /// `ceiling`.
    ///
    /// A key is forgiven if its next violation comes `forgive_after` or more after both the end of its last block and the
    /// beginning of its last window of violations. Then k begins at one again. So a key that keeps opening windows is not
    /// forgiven.
    ///
    /// From the 31st block on, the duration does not grow. The rule set checks the ranges: a factor of at least 2, a ceiling
    /// from the first block to 366 days, and a time of up to 366 days until a key is forgiven.
    pub const fn escalate(mut self, factor: u32, ceiling: Duration, forgive_after: Duration) -> Self {
        self.factor = factor;
        self.ceiling = ceiling;
        self.forgive_after = forgive_after;
        self
    }

    /// Lets a retry extend the block: a request that is denied while its key is blocked begins the time of the block anew.
    ///
    /// By default a retry extends nothing.
    pub const fn extend_on_retry(mut self) -> Self {
        self.extends = true;
        self
    }

    /// The algorithm of the block.
    pub(crate) fn violations(&self) -> Violations {
        let length = BlockLength {
            first: self.duration,
            factor: self.factor,
            ceiling: self.ceiling,
        };
        Violations::new(self.after, length, self.forgive_after, self.extends)
    }
}
