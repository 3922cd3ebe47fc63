use core::fmt;
use core::time::Duration;

use super::Rules;
use super::group::Subject;
use crate::algorithm::AnyAlgorithm;
use crate::decision::Peek;
use crate::quota::Quota;
use crate::time::Nanos;

/// A look at one quota of one rule, for one request.
///
/// # Concurrency
///
/// As [`Peek`]: each method looks when it is called.
///
/// # Examples
///
/// ```
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check("request").is_ok());
/// for look in rules.peek("request") {
///     assert_eq!((look.rule(), look.limit(), look.remaining()), ("all", 2, 1));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a peek works out nothing until it is asked"]
pub struct RulePeek<'a> {
    rule: &'a str,
    quota: Quota,
    limit: u64,
    member: usize,
    subject: Subject,
    peek: Peek<'a, AnyAlgorithm>,
}

impl<R: ?Sized> Rules<R> {
    pub(super) fn peek<'a>(&'a self, request: &'a R, now: Nanos) -> impl Iterator<Item = RulePeek<'a>> {
        (0..).zip(&self.groups).flat_map(move |(place, group)| {
            let members = (0..).zip(&group.members);
            members.filter_map(move |(member, _)| self.look(request, place, member, now))
        })
    }

    /// Looks at a member of a group; `None`: it is not about the request.
    pub(super) fn look(&self, request: &R, group: u16, member: u16, now: Nanos) -> Option<RulePeek<'_>> {
        let group = &self.groups[usize::from(group)];
        let place = usize::from(member);
        let member = &group.members[place];
        let subject = group.subject(request, &self.seeds)?;
        Some(RulePeek {
            rule: &self.names[usize::from(member.rule)].name,
            quota: member.quota,
            limit: group.limit(place, &subject),
            member: place,
            subject,
            peek: group.peek(&subject, now),
        })
    }
}

impl<'a> RulePeek<'a> {
    /// The rule's name.
    #[must_use]
    pub const fn rule(&self) -> &'a str {
        self.rule
    }

    /// Which of the rule's quotas it is.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// The limit, in permits: that of the key's tier, if it is in one.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether a refusal by the rule counts: it is not in the shadow for this key.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.subject.enforced
    }

    /// Whether the request has none of the rule's key, and the rule refuses it for that ([`Missing::Refuse`]).
    ///
    /// [`Missing::Refuse`]: crate::Missing::Refuse
    #[must_use]
    pub const fn lacks_key(&self) -> bool {
        self.subject.lacks_key && self.subject.refused
    }

    /// The permits that the request costs.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.subject.permits
    }

    /// The most permits that one request would get.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        if self.subject.refused {
            return 0;
        }
        self.peek.room_of(self.member)
    }

    /// The permits that still count, for the rule and all that it is decided in one step with.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.peek.spent()
    }

    /// How long until `permits` would be admitted by the rule, and all that it is decided in one step with, if nobody
    /// else asked; `None`: never.
    #[must_use]
    pub fn retry_after(&self, permits: u64) -> Option<Duration> {
        if self.subject.refused {
            return None;
        }
        self.peek.retry_after(permits)
    }

    /// How long until this quota has room for `permits` if nobody else asked, whatever other quotas say that it is decided
    /// in one step with; `None`: never.
    #[must_use]
    pub fn room_after(&self, permits: u64) -> Option<Duration> {
        if self.subject.refused {
            return None;
        }
        self.peek.room_after(self.member, permits)
    }
}

impl fmt::Debug for RulePeek<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulePeek")
            .field("rule", &self.rule)
            .field("quota", &self.quota)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
