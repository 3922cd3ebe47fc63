//! What one group takes over from another when rules are replaced.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;
use std::collections::HashMap;

use super::subject::EVERYBODY;
use super::{Group, Member};
use crate::algorithm::Reclaim;
use crate::rules::key::{Condition, Cost, Key};
use crate::rules::state::State;
use crate::time::Nanos;

/// The rule that an old one goes on as: its place and its name.
pub(in crate::rules) struct Heir {
    pub(in crate::rules) rule: u16,
    pub(in crate::rules) name: Arc<str>,
}

/// What keys have spent, and the times that they have reached.
type Spent = HashMap<u64, (u64, Nanos)>;

impl<R: ?Sized> Group<R> {
    /// Whether one of the old group's rules goes on here, by the same key.
    pub(in crate::rules) fn is_heir_of(&self, old: &Self, heir: impl Fn(&str) -> Option<Heir>) -> bool {
        let here = |heir: &Heir| self.members.iter().any(|new| new.rule == heir.rule);
        self.has_key_of(old)
            && old
                .members
                .iter()
                .any(|old| heir(&old.name).is_some_and(|heir| here(&heir)))
    }

    /// Whether one of its rules goes on.
    pub(in crate::rules) fn has_heir(&self, heir: impl Fn(&str) -> Option<Heir>) -> bool {
        self.members.iter().any(|member| heir(&member.name).is_some())
    }

    /// Whether both count by the same key, or both by none.
    fn has_key_of(&self, other: &Self) -> bool {
        self.key.as_ref().map(Key::name) == other.key.as_ref().map(Key::name)
    }

    /// Takes over the state of one of `old`, if its words mean the same; of several, that of the same name.
    pub(in crate::rules) fn keep(&mut self, old: &[&Arc<Self>], heir: impl Fn(&str) -> Option<Heir>) -> bool {
        let same = |old: &&&Arc<Self>, renamed: bool| {
            let members = || core::iter::zip(&self.members, &old.members);
            !old.retiring
                && self.keys == old.keys
                && self.members.len() == old.members.len()
                && members().all(|(new, old)| {
                    new.number == old.number
                        && (renamed || new.name == old.name)
                        && heir(&old.name).is_some_and(|heir| heir.rule == new.rule)
                })
        };
        let found = [false, true].into_iter().find_map(|renamed| {
            let mut candidates = old.iter().filter(|old| same(old, renamed));
            candidates.find_map(|old| Some((old, self.policy.following(&old.policy)?)))
        });
        if let Some((old, policy)) = found {
            self.state = Arc::clone(&old.state);
            self.policy = Arc::new(policy);
            return true;
        }
        false
    }

    /// Whether one of the other's rules counts here, by the same key.
    pub(in crate::rules) fn counts_for(&self, other: &Self) -> bool {
        let mine = |theirs| self.all_tallies().any(|mine| Arc::ptr_eq(mine, theirs));
        self.has_key_of(other) && other.all_tallies().any(mine)
    }

    /// Whether the old group's rules had other names, so that a rule that was here before has taken over theirs.
    pub(in crate::rules) fn has_taken_over(&self, old: &Self) -> bool {
        let named = |old: &Member| self.members.iter().any(|new| new.name == old.name);
        !self.has_state_of(old) && !old.members.iter().any(named)
    }

    /// The longest time for which anything that was spent counts.
    pub(in crate::rules) fn span(&self) -> Duration {
        self.policy.booker(None).span()
    }

    /// Whether both are about the same requests, at the same cost, as far as their names tell.
    pub(in crate::rules) fn has_business_of(&self, other: &Self) -> bool {
        self.cost.as_ref().map(Cost::name) == other.cost.as_ref().map(Cost::name)
            && self.when.as_ref().map(Condition::name) == other.when.as_ref().map(Condition::name)
    }

    pub(in crate::rules) const fn is_retiring(&self) -> bool {
        self.retiring
    }

    pub(in crate::rules) fn has_state_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    pub(in crate::rules) fn has_cost(&self, cost: &Cost<R>) -> bool {
        self.cost.as_ref().is_some_and(|own| own.0.is(&cost.0))
    }

    /// The same, to be held beside its heirs until these have been charged what it has counted. Its refusals are
    /// theirs; rules without an heir hold no longer.
    pub(in crate::rules) fn retire(&self, heir: impl Fn(&str) -> Option<Heir>) -> Self {
        let members: Box<[Member]> = self
            .members
            .iter()
            .map(|old| match heir(&old.name) {
                Some(Heir { rule, name }) => Member {
                    rule,
                    name,
                    ..old.clone()
                },
                None => old.clone(),
            })
            .collect();
        let policy = self
            .policy
            .without(|place| heir(&self.members[place].name).is_none());
        Self {
            members,
            policy: Arc::new(policy),
            tallies: Box::new([]),
            other_tallies: Box::new([]),
            is_plain: self.is_plain,
            key: self.key.clone(),
            cost: self.cost.clone(),
            when: self.when.clone(),
            tier_of: self.tier_of.clone(),
            tiers: self.tiers.clone(),
            keys: self.keys,
            on_full: self.on_full,
            enforced: self.enforced,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            state: Arc::clone(&self.state),
            retiring: true,
        }
    }

    /// Charges each key the most that it has spent in one of `old`, and all that it has spent in `earlier`, as far as that
    /// still counts there.
    /// False if the words cannot remember all of that.
    ///
    /// Everybody who charges one of them must charge this too by now.
    pub(in crate::rules) fn inherit(&self, old: &[Arc<Self>], earlier: &[Arc<Self>], now: Nanos) -> bool {
        let mut all = true;
        let mut most = Spent::default();
        for old in old {
            let mut spent = Spent::default();
            all &= self.look_into(old, now, &mut spent);
            for (key, (permits, at)) in spent {
                let most = most.entry(key).or_insert((0, at));
                *most = (most.0.max(permits), most.1.max(at));
            }
        }
        for earlier in earlier {
            all &= self.look_into(earlier, now, &mut most);
        }
        for (key, (permits, at)) in most {
            self.charge(key, None, at, permits);
            all &= self.gauging(key).peek(&self.state, at).spent() >= permits;
        }
        all
    }

    /// Adds what each key has spent in `old`, and the time that it has reached there. False if what the catch-all has
    /// counted cannot be remembered.
    fn look_into(&self, old: &Self, now: Nanos, spent: &mut Spent) -> bool {
        let mut add = |key: u64, permits: u64, at: Nanos| {
            let spent = spent.entry(key).or_insert((0, at));
            *spent = (spent.0.saturating_add(permits), spent.1.max(at));
        };
        let mut note = |key: u64| {
            let at = old.state.latest_time(&old.policy.gauge, key).max(now);
            add(key, old.gauging(key).peek(&old.state, at).spent(), at);
        };
        match (&*old.state, &*self.state) {
            (State::Each(from), State::Each(to)) => {
                to.begin_after(now);
                from.for_each(note);
                let (booker, gauge) = (self.policy.booker(None), &self.policy.gauge);
                let shared = to.inherit_overflow(from, booker, gauge, &old.policy.gauge, now);
                if let Some((permits, at)) = shared.spent {
                    // Keys that have entered here since, and may have been admitted by the catch-all there before.
                    to.for_each(|key| {
                        if from.is_marked(key, now) {
                            add(key, permits, at);
                        }
                    });
                }
                shared.is_remembered
            }
            // A rule that counts by key does not follow one that does not.
            _ => {
                note(EVERYBODY);
                true
            }
        }
    }
}
