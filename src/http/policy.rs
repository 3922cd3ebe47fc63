use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use ::http::request::Parts;
use smallvec::SmallVec;

use crate::clock::Clock;
use crate::rules::{Refused, RulePeek, RuleSet};
use crate::time::Nanos;

/// One quota of one rule, as a client is told of it.
///
/// Its [name](Self::name) is the rule's when the rule has one quota, and otherwise the rule's with the window:
/// `uploads-10s`, `uploads-60s`. While a reload is pending that changes a window, the rule has the old one
/// too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPolicy<'a> {
    name: Cow<'a, str>,
    rule: &'a str,
    limit: u64,
    window: Duration,
    remaining: u64,
    more_after: Option<Duration>,
    violated: bool,
    #[cfg(feature = "tokio")]
    full: bool,
    lacks_key: bool,
}

impl<'a> QuotaPolicy<'a> {
    fn new(peek: &RulePeek<'a>) -> Self {
        let remaining = peek.remaining();
        Self {
            name: Cow::Borrowed(peek.rule()),
            rule: peek.rule(),
            limit: peek.limit(),
            window: peek.quota().window(),
            remaining,
            more_after: peek.room_after(remaining.saturating_add(1)),
            violated: false,
            #[cfg(feature = "tokio")]
            full: remaining < peek.permits(),
            lacks_key: peek.lacks_key(),
        }
    }

    /// The policy's name, which no other has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'a str {
        self.rule
    }

    /// The limit, in permits: that of the key's tier, if it is in one.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The permits that one request would still get.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// How long until it would get more, if nobody else asked; `None`: never, nothing is spent, or the key is refused
    /// whatever it has spent.
    #[must_use]
    pub const fn more_after(&self) -> Option<Duration> {
        self.more_after
    }

    /// Whether it had no room for the request that was refused.
    #[must_use]
    pub const fn is_violated(&self) -> bool {
        self.violated
    }

    /// Whether the request was refused because it has none of the rule's key.
    #[must_use]
    pub const fn lacks_key(&self) -> bool {
        self.lacks_key
    }
}

/// As many as most rule sets have, without an allocation.
type Policies<'a> = SmallVec<[QuotaPolicy<'a>; 4]>;

/// The policies that are about a request and enforced, in the order in which rules are decided: as they are, at the
/// reading that the request was judged at.
pub(super) fn policies<'a, C: Clock>(
    rules: &'a RuleSet<Parts, C>,
    request: &'a Parts,
    at: Nanos,
) -> Policies<'a> {
    let mut policies = Policies::new();
    for peek in rules.peek_at(request, at).filter(RulePeek::is_enforced) {
        let policy = QuotaPolicy::new(&peek);
        let same = |other: &&mut QuotaPolicy<'_>| other.rule == policy.rule && other.window == policy.window;
        match policies.iter_mut().find(same) {
            // While a reload is pending: the one that holds.
            Some(other) if other.remaining <= policy.remaining => {}
            Some(other) => *other = policy,
            None => policies.push(policy),
        }
    }
    for at in 0..policies.len() {
        let rule = policies[at].rule;
        if policies.iter().filter(|other| other.rule == rule).count() > 1 {
            policies[at].name = Cow::Owned(format!("{rule}-{}", short(policies[at].window)));
        }
    }
    policies
}

/// As [`policies`], with those marked that a request was refused by.
pub(super) fn violated<'a, C: Clock>(
    rules: &'a RuleSet<Parts, C>,
    refused: &Refused<'a, Parts>,
    request: &'a Parts,
) -> Vec<QuotaPolicy<'a>> {
    let mut policies = policies(rules, request, refused.at()).into_vec();
    for violation in refused.violations() {
        let window = violation.quota().window();
        let of = |policy: &&mut QuotaPolicy<'_>| policy.rule == violation.rule() && policy.window == window;
        if let Some(policy) = policies.iter_mut().find(of) {
            policy.violated = true;
        }
    }
    policies
}

/// As [`policies`], with those marked that have no room for the request, or would not if it did not wait.
#[cfg(feature = "tokio")]
pub(super) fn full<'a, C: Clock>(
    rules: &'a RuleSet<Parts, C>,
    request: &'a Parts,
    at: Nanos,
) -> Vec<QuotaPolicy<'a>> {
    let mut policies = policies(rules, request, at).into_vec();
    for policy in &mut policies {
        policy.violated = policy.full;
    }
    policies
}

/// A window in the largest of the units that divides it, of those up to seconds.
fn short(window: Duration) -> String {
    let nanos = window.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let unit = units.iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    unit.map_or_else(String::new, |(unit, name)| format!("{}{name}", nanos / unit))
}

/// Whole seconds, rounded up, one at the least: whoever comes back after so many is never early.
pub(super) const fn whole_seconds(wait: Duration) -> u64 {
    let whole = wait.as_secs();
    let up = if wait.subsec_nanos() > 0 {
        whole.saturating_add(1)
    } else {
        whole
    };
    if up == 0 { 1 } else { up }
}

/// A text with everything in it but printable ASCII, and the percent sign, written as `%C3%A9`: different texts stay
/// different.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |byte| matches!(byte, b' '..=b'~') && byte != b'%';
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(written)
}
