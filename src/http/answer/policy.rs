use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt::Write;
use core::time::Duration;

use ::http::request::Parts;
use smallvec::SmallVec;

use crate::clock::Clock;
use crate::rules::{DeniedQuotas, EnforcedQuota, KeyHashes, QuotaStatus, RuleSet};
use crate::time::Nanos;

/// One quota of one rule, with the state that is reported to the client.
///
/// If the rule has one quota, the [name](Self::name) is the rule's name. If it has several, each has a policy, whose name is made
/// of the rule and the window: `uploads-10s`, `uploads-60s`. A [block](crate::Rule::block) is a policy while it is in force, with a
/// name such as `uploads-block`. If another rule has such a name and applies to the request, a number follows: `uploads-10s-2`. While a
/// reload that changes a window is pending, the rule also has the old window.
///
/// Quotas of a rule with one window are one policy: the one of which fewer permits remain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPolicy<'a> {
    name: Cow<'a, str>,
    values: EnforcedQuota<'a>,
}

impl<'a> QuotaPolicy<'a> {
    #[inline]
    const fn new(values: EnforcedQuota<'a>) -> Self {
        Self {
            name: Cow::Borrowed(values.rule),
            values,
        }
    }

    fn of_status(status: &'a QuotaStatus) -> Self {
        Self::new(EnforcedQuota {
            rule: &status.rule,
            quota: status.quota,
            limit: status.limit,
            permits: status.permits,
            remaining: status.remaining,
            retry_after: status.retry_after,
            reset_after: status.reset_after,
            always_denied: false,
            lacks_key: status.lacks_key,
            lacks_required_key: status.lacks_required_key,
            is_block: status.is_block,
            violated: false,
        })
    }

    /// Returns the status, which borrows nothing.
    pub(super) fn status(&self) -> QuotaStatus {
        let values = &self.values;
        QuotaStatus {
            rule: values.rule.into(),
            quota: values.quota,
            limit: values.limit,
            permits: values.permits,
            remaining: values.remaining,
            retry_after: values.retry_after,
            reset_after: values.reset_after,
            is_enforced: true,
            lacks_key: values.lacks_key,
            lacks_required_key: values.lacks_required_key,
            is_block: values.is_block,
        }
    }

    /// Returns the policy's name, which is unique among the policies of the request.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the rule.
    #[must_use]
    pub const fn rule(&self) -> &'a str {
        self.values.rule
    }

    /// Returns the limit of the request in permits: a lower limit of [`Rule::limit_by`](crate::Rule::limit_by), or that of the key's
    /// tier, or that of the rule.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.values.limit
    }

    /// Returns the window. It is zero for a limit of [requests in flight](crate::Rule::in_flight).
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.values.quota.window()
    }

    /// Marks the policy as violated. If the values were read after the decision, more permits can be free than the decision saw.
    /// Then the most that it can have seen remain, and more are free now.
    fn violate(&mut self) {
        self.values.violated = true;
        let most = self.values.permits.saturating_sub(1);
        if self.values.remaining > most {
            self.values.remaining = most;
            self.values.reset_after = Some(Duration::ZERO);
        }
    }

    /// Returns whether the policy rejects the request until another request has ended.
    pub(super) const fn awaits_slot(&self) -> bool {
        self.values.violated
            && self.values.quota.is_in_flight()
            && self.values.limit > 0
            && !self.values.always_denied
    }

    /// The time for which the policy rejects the request, or shows no more permits.
    pub(super) fn rejects_for(&self) -> Option<Duration> {
        self.values.retry_after.max(self.values.reset_after)
    }

    /// The time until the policy would admit the request, if it is known.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        self.values.retry_after
    }

    /// The order in which policies bind a client that repeats its request: the number of such requests that it still admits, the
    /// permits that remain of a policy that the request does not charge, and the time until more remain, the longest first.
    pub(super) fn binding_order(&self) -> (u64, u64, Reverse<Option<Duration>>) {
        let (requests, spare) = match self.values.remaining.checked_div(self.values.permits) {
            Some(requests) => (requests, 0),
            None => (u64::MAX, self.values.remaining),
        };
        (requests, spare, Reverse(self.values.reset_after))
    }

    /// Whether it is the block of the rule.
    pub(super) const fn is_block(&self) -> bool {
        self.values.is_block
    }

    /// Whether it limits requests in flight.
    pub(super) const fn is_in_flight(&self) -> bool {
        self.values.quota.is_in_flight()
    }

    /// The window in words, after a number of permits.
    pub(super) fn per_window(&self) -> String {
        self.values.quota.per_window()
    }

    /// Returns the permits that one request could take now.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.values.remaining
    }

    /// Returns the time until [`remaining`](Self::remaining) grows if no other request is charged.
    ///
    /// Returns `None` if all permits remain, or if the key is always rejected.
    #[must_use]
    pub const fn reset_after(&self) -> Option<Duration> {
        self.values.reset_after
    }

    /// Whether the policy rejected the request.
    pub(super) const fn is_violated(&self) -> bool {
        self.values.violated
    }

    /// Whether the request was rejected because it lacks the rule's key.
    pub(super) const fn lacks_key(&self) -> bool {
        self.values.lacks_key
    }

    /// Whether the request was rejected because it lacks a key that the server should have provided.
    pub(super) const fn lacks_required_key(&self) -> bool {
        self.values.lacks_required_key
    }
}

/// The policies of one request. Up to four need no allocation, and most rule sets have no more.
pub(in crate::http) type Policies<'a> = SmallVec<[QuotaPolicy<'a>; 4]>;

/// Adds the enforced policies that apply to a request to `policies`, in evaluation order, as of `at`. With `denied`, each has its
/// retry time.
///
/// Each policy has the name of its rule, until [`assign_names`] is called. The list is an argument, because returning it would
/// move it.
pub(in crate::http) fn add_policies<'a, C: Clock>(
    policies: &mut Policies<'a>,
    rules: &'a RuleSet<Parts, C>,
    request: &'a Parts,
    at: Nanos,
    denied: bool,
    hashes: &mut KeyHashes,
) {
    let add = |values| add(policies, values);
    rules.states.enforced_quotas(request, at, denied, hashes, add);
}

/// Adds the policy of a quota with these values.
pub(in crate::http) fn add<'a>(policies: &mut Policies<'a>, values: EnforcedQuota<'a>) {
    add_stricter(policies, QuotaPolicy::new(values));
}

/// Adds a policy. While a reload is pending, a quota has two states, and the stricter one decides: the one with fewer permits left. Of two
/// with as many, it is the one that always denies, or else the one that rejects for longer.
fn add_stricter<'a>(policies: &mut Policies<'a>, policy: QuotaPolicy<'a>) {
    let same = |other: &&mut QuotaPolicy<'_>| {
        other.rule() == policy.rule()
            && other.window() == policy.window()
            && other.is_block() == policy.is_block()
    };
    let strictness = |policy: &QuotaPolicy<'_>| {
        let may_admit = !policy.values.always_denied;
        (policy.remaining(), may_admit, Reverse(policy.rejects_for()))
    };
    match policies.iter_mut().find(same) {
        Some(other) if strictness(other) <= strictness(&policy) => {}
        Some(other) => *other = policy,
        None => policies.push(policy),
    }
}

/// Names each policy after its rule, and after its window if the rule has several. A block has a name of its own. No two names are equal.
pub(super) fn assign_names(policies: &mut [QuotaPolicy<'_>]) {
    let parts: Vec<Option<String>> = policies
        .iter()
        .map(|policy| name_part(policy, policies))
        .collect();
    for index in 0..policies.len() {
        let rule = policies[index].rule();
        let Some(part) = &parts[index] else {
            policies[index].name = Cow::Borrowed(rule);
            continue;
        };
        // The names of the rules, and those that were assigned before.
        let is_taken = |name: &str| {
            let mut others = policies.iter().zip(&parts).enumerate();
            others.any(|(at, (other, part))| match part {
                None => other.rule() == name,
                Some(_) => at < index && other.name() == name,
            })
        };
        let mut name = format!("{rule}-{part}");
        let mut number = 2;
        while is_taken(&name) {
            name = format!("{rule}-{part}-{number}");
            number += 1;
        }
        policies[index].name = Cow::Owned(name);
    }
}

/// The part of a policy's name after the rule. `None` if the rule has one quota, and the policy is not its block.
fn name_part(policy: &QuotaPolicy<'_>, policies: &[QuotaPolicy<'_>]) -> Option<String> {
    let is_quota_of_rule = |other: &&QuotaPolicy<'_>| other.rule() == policy.rule() && !other.is_block();
    match (policy.is_block(), policy.is_in_flight()) {
        (true, _) => Some(String::from("block")),
        (false, _) if policies.iter().filter(is_quota_of_rule).count() <= 1 => None,
        (false, true) => Some(String::from("in-flight")),
        (false, false) => Some(short_duration(policy.window())),
    }
}

fn named(policies: Policies<'_>) -> Vec<QuotaPolicy<'_>> {
    let mut policies = policies.into_vec();
    assign_names(&mut policies);
    policies
}

/// Returns the policies of a request that rules have denied, with the values that the decision saw. Those that denied it are marked
/// as violated.
pub(in crate::http) fn denied<'a>(seen: &DeniedQuotas<'a>) -> Vec<QuotaPolicy<'a>> {
    let mut policies = Policies::new();
    seen.quotas()
        .for_each(|values| add_stricter(&mut policies, QuotaPolicy::new(*values)));
    named(policies)
}

/// Returns the policies of a request whose wait ended without an admission. Those without enough permits are marked as
/// violated. If all have enough, earlier requests in the queue come first, and the policy that binds first is marked.
pub(in crate::http) fn exhausted<'a, C: Clock>(
    rules: &'a RuleSet<Parts, C>,
    request: &'a Parts,
    at: Nanos,
) -> Vec<QuotaPolicy<'a>> {
    let mut policies = Policies::new();
    add_policies(&mut policies, rules, request, at, true, &mut KeyHashes::new());
    if !policies.iter().any(QuotaPolicy::is_violated)
        && let Some(policy) = policies.iter_mut().min_by_key(|policy| policy.binding_order())
    {
        policy.violate();
    }
    named(policies)
}

/// Returns the policies of these statuses of enforced quotas.
pub(in crate::http) fn of_statuses(statuses: &[QuotaStatus]) -> Policies<'_> {
    let mut policies = Policies::new();
    for status in statuses {
        add_stricter(&mut policies, QuotaPolicy::of_status(status));
    }
    policies
}

/// Returns the policies of these statuses. Those that denied the request are marked as violated.
#[cfg(feature = "shared")]
pub(in crate::http) fn of_denial<'a>(
    statuses: &'a [QuotaStatus],
    denied: &crate::shared::Denied<'static>,
) -> Vec<QuotaPolicy<'a>> {
    let mut policies = named(of_statuses(statuses));
    for policy in &mut policies {
        let is_violated = |violated: QuotaStatus| {
            *violated.rule == *policy.rule()
                && violated.is_block == policy.values.is_block
                && violated.quota.window() == policy.window()
        };
        if denied.violations().any(is_violated) {
            policy.violate();
            policy.values.always_denied = denied.reason() == crate::shared::Reason::Listed;
        }
    }
    policies
}

/// Returns the policies of quotas that have denied a request.
pub(in crate::http) fn of_violations(violations: &[QuotaStatus]) -> Vec<QuotaPolicy<'_>> {
    let mut policies = named(of_statuses(violations));
    policies.iter_mut().for_each(QuotaPolicy::violate);
    policies
}

/// Formats a window in the largest unit of which it is a multiple, at most seconds.
fn short_duration(window: Duration) -> String {
    let nanos = window.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let unit = units.iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    unit.map_or_else(String::new, |(unit, name)| format!("{}{name}", nanos / unit))
}

/// Returns whole seconds, rounded up, at least 1. A client that waits this long does not retry too early.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    let part = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(part).max(1)
}

/// Percent-encodes `%` and all bytes that are not printable ASCII. Different texts stay different.
pub(super) fn percent_encode(text: &str) -> Cow<'_, str> {
    let is_kept = |byte| matches!(byte, b' '..=b'~') && byte != b'%';
    if text.bytes().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_kept(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    Cow::Owned(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Quota;

    /// Of the two states that a quota has while a reload is pending, the stricter one is shown, whichever comes first.
    #[test]
    fn the_stricter_state_of_a_quota_is_shown() {
        let status = |(remaining, seconds)| QuotaStatus {
            rule: "a".into(),
            quota: Quota::per_minute(10).expect("a quota"),
            limit: 10,
            permits: 1,
            remaining,
            retry_after: None,
            reset_after: Some(Duration::from_secs(seconds)),
            is_enforced: true,
            lacks_key: false,
            lacks_required_key: false,
            is_block: false,
        };
        for (stricter, other) in [((0, 5), (1, 9)), ((0, 9), (0, 5))] {
            for both in [[stricter, other], [other, stricter]] {
                let statuses = both.map(status);
                let policies = of_statuses(&statuses);
                let shown: Vec<_> = policies.iter().map(QuotaPolicy::status).collect();
                assert_eq!(shown, [status(stricter)], "{both:?}");
            }
        }
        // One that always denies is stricter than one that rejects for longer.
        let statuses = [(0, 5), (0, 9)].map(status);
        for always in [0, 1] {
            let mut policies = Policies::new();
            for (index, status) in statuses.iter().enumerate() {
                let mut policy = QuotaPolicy::of_status(status);
                policy.values.always_denied = index == always;
                add_stricter(&mut policies, policy);
            }
            let denied: Vec<_> = policies
                .iter()
                .map(|policy| policy.values.always_denied)
                .collect();
            assert_eq!(denied, [true]);
        }
    }
}
