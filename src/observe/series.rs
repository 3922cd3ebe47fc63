use alloc::sync::Arc;
use alloc::vec::Vec;

use super::meters::{Counters, Figures};
use crate::rules::Tallies;

/// The counters of one rule's name, and where their numbers come from.
///
/// A source is kept for as long as anybody else can still count there: a rule set, someone in the middle of a decision
/// by rules from before, a reservation. Only then is its last number added to `past`. So nothing is lost when a rule
/// is removed, and nothing begins again at zero when it comes back.
pub(super) struct Series {
    counters: Counters,
    sources: Vec<Source>,
    past: Figures,
}

struct Source {
    tallies: Arc<Tallies>,
    /// What was counted before under another name.
    before: Figures,
}

impl Series {
    pub(super) fn new(rule: &Arc<str>) -> Self {
        Self {
            counters: Counters::register(rule),
            sources: Vec::new(),
            past: Figures::default(),
        }
    }

    /// Shows what only rules have that many machines share.
    pub(super) fn show_shared(&mut self, rule: &Arc<str>) {
        self.counters.register_shared(rule);
    }

    pub(super) fn has(&self, tallies: &Arc<Tallies>) -> bool {
        self.sources.iter().any(|source| source.is(tallies))
    }

    /// Counts by `tallies` from now on; `before`: what is counted elsewhere.
    pub(super) fn begin(&mut self, tallies: &Arc<Tallies>, before: Figures) {
        self.sources.push(Source {
            tallies: Arc::clone(tallies),
            before,
        });
    }

    /// Counts no longer by `tallies`, if it did; says what they had counted by now.
    pub(super) fn end(&mut self, tallies: &Arc<Tallies>) -> Option<Figures> {
        let place = self.sources.iter().position(|source| source.is(tallies))?;
        let source = self.sources.swap_remove(place);
        let now = source.now();
        self.past = self.past.plus(now.minus(source.before));
        Some(now)
    }

    pub(super) fn publish(&mut self) {
        let mut live = Figures::default();
        self.sources.retain_mut(|source| {
            // Asked first: when nobody else has it, nothing is added after its number is read. Acquire, within
            // `get_mut`: what whoever has let go has counted is seen.
            let alone = Arc::get_mut(&mut source.tallies).is_some();
            let counted = source.now().minus(source.before);
            if alone {
                self.past = self.past.plus(counted);
            } else {
                live = live.plus(counted);
            }
            !alone
        });
        self.counters.set(self.past.plus(live));
    }
}

impl Source {
    fn is(&self, tallies: &Arc<Tallies>) -> bool {
        Arc::ptr_eq(&self.tallies, tallies)
    }

    fn now(&self) -> Figures {
        self.tallies.sum().into()
    }
}
