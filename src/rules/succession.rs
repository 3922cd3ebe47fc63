use alloc::sync::Arc;
use alloc::vec::Vec;

use super::builder::RuleSetBuilder;
use super::counts::Tallies;
use super::group::{Group, Heir, Seeds};
use super::rule::{Rule, RuleError};
use super::{Named, Rules};
use crate::time::Nanos;

/// Rules, and what they replace.
pub(super) struct Succession<R: ?Sized> {
    pub(super) rules: Rules<R>,
    pub(super) retiring: Vec<Retiring<R>>,
    /// What is remembered, by the names that its rules have now; none for rules that are gone.
    pub(super) remembered: Vec<Option<Arc<Group<R>>>>,
}

/// A group that has yet to be charged what others have counted.
pub(super) struct Retiring<R: ?Sized> {
    pub(super) new: Arc<Group<R>>,
    /// Those that it replaces, which have counted the same requests.
    pub(super) old: Vec<Arc<Group<R>>>,
    /// Those that these were to be charged from, and were not.
    pub(super) earlier: Vec<Arc<Group<R>>>,
    /// Those that hold no longer, and that what came after them could not remember all of.
    pub(super) remembered: Vec<Arc<Group<R>>>,
}

impl<R: ?Sized> Retiring<R> {
    /// All groups that hold beside the new one.
    pub(super) fn beside(&self) -> impl Iterator<Item = &Arc<Group<R>>> {
        self.old.iter().chain(&self.earlier)
    }

    /// Charges the new group before it is in force, where it is about other requests than an old one, or by another
    /// cost: until it is charged for good, the old one does not stand in for it.
    pub(super) fn anticipate(&self, now: Nanos) {
        let differs = |old: &&Arc<Group<R>>| !self.new.has_business_of(old);
        let early: Vec<_> = self.beside().filter(differs).cloned().collect();
        self.new.inherit(&[], &early, now);
    }

    /// Charges the new group what the others have counted; false if it cannot remember all of that.
    pub(super) fn settle(&self, now: Nanos) -> bool {
        let earlier: Vec<_> = self.earlier.iter().chain(&self.remembered).cloned().collect();
        self.new.inherit(&self.old, &earlier, now)
    }
}

/// The rules of a builder, with what `old` has counted.
pub(super) fn follow<R: ?Sized>(
    builder: &RuleSetBuilder<R>,
    old: Option<&Rules<R>>,
    remembered: &[Arc<Group<R>>],
    seeds: Seeds,
) -> Result<Succession<R>, RuleError> {
    builder.validate()?;
    let tallies: Vec<Arc<Tallies>> = builder
        .rules()
        .iter()
        .map(|rule| {
            old.and_then(|old| tallies_of(old, rule))
                .unwrap_or_else(|| Arc::new(Tallies::new()))
        })
        .collect();
    let heirs = Heirs(builder.rules());
    let old: Vec<&Arc<Group<R>>> = old.iter().flat_map(|old| &old.groups).collect();
    let mut retired = Retired(Vec::new());
    let remembered: Vec<Option<Arc<Group<R>>>> = remembered
        .iter()
        .map(|old| {
            old.has_heir(|name| heirs.of(name))
                .then(|| retired.of(old, &heirs))
        })
        .collect();
    let (mut groups, mut retiring) = (Vec::new(), Vec::new());
    for mut group in builder.groups(&seeds)? {
        let related: Vec<&Arc<Group<R>>> = old
            .iter()
            .copied()
            .filter(|old| group.is_heir_of(old, |name| heirs.of(name)))
            .collect();
        let kept = group.keep(&related, |name| heirs.of(name));
        let (mut before, mut earlier) = (Vec::new(), Vec::new());
        for old in related {
            if old.is_retiring() {
                earlier.push(retired.of(old, &heirs));
            } else if !kept || group.has_taken_over(old) {
                before.push(retired.of(old, &heirs));
            }
        }
        let remembered: Vec<_> = remembered
            .iter()
            .flatten()
            .filter(|old| !kept && group.is_heir_of(old, |name| heirs.of(name)))
            .cloned()
            .collect();
        let new = Arc::new(group.counting(&tallies));
        groups.push(Arc::clone(&new));
        if !(before.is_empty() && earlier.is_empty() && remembered.is_empty()) {
            retiring.push(Retiring {
                new,
                old: before,
                earlier,
                remembered,
            });
        }
    }
    let names = builder.rules().iter().zip(tallies).map(|(rule, tallies)| Named {
        name: Arc::clone(&rule.name),
        tallies,
    });
    let rules = Rules {
        names: names.collect(),
        groups: groups.into_boxed_slice(),
        seeds,
    };
    Ok(Succession {
        rules,
        retiring,
        remembered,
    })
}

/// Which of the new rules an old one goes on as.
struct Heirs<'a, R: ?Sized>(&'a [Rule<R>]);

impl<R: ?Sized> Heirs<'_, R> {
    /// The heir of the rule with this name: the rule of that name, or else the one that was called so.
    fn of(&self, name: &str) -> Option<Heir> {
        let place = |is: &dyn Fn(&Rule<R>) -> bool| self.0.iter().position(is);
        let heir = place(&|rule| *rule.name == *name)
            .or_else(|| place(&|rule| rule.was.as_deref() == Some(name)))?;
        Some(Heir {
            #[expect(clippy::cast_possible_truncation, reason = "a thousand rules at the most")]
            rule: heir as u16,
            name: Arc::clone(&self.0[heir].name),
        })
    }
}

/// Old groups as they hold beside the new ones, one for each state.
struct Retired<R: ?Sized>(Vec<Arc<Group<R>>>);

impl<R: ?Sized> Retired<R> {
    fn of(&mut self, old: &Group<R>, heirs: &Heirs<'_, R>) -> Arc<Group<R>> {
        if let Some(retired) = self.0.iter().find(|retired| retired.has_state_of(old)) {
            return Arc::clone(retired);
        }
        let retired = Arc::new(old.retire(|name| heirs.of(name)));
        self.0.push(Arc::clone(&retired));
        retired
    }
}

/// The counts of the rule by its name, or by the one that it had.
fn tallies_of<R: ?Sized>(old: &Rules<R>, rule: &Rule<R>) -> Option<Arc<Tallies>> {
    let of = |name: &Arc<str>| old.names.iter().find(|old| old.name == *name);
    of(&rule.name)
        .or_else(|| of(rule.was.as_ref()?))
        .map(|old| Arc::clone(&old.tallies))
}
