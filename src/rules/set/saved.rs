//! Rule sets that are saved, and restored in another process.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use std::io::{self, Read, Write};

use super::RuleSet;
use super::builder::RuleSetBuilder;
use super::clock_origin::ClockOrigin;
use crate::clock::Clock;
use crate::keyed::Charger;
use crate::limiter::SavedState;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::evaluate::rule_states::RuleStates;
use crate::rules::evaluate::storage::StateStorage;
use crate::saved::{Header, Reader, RestoreError, SavedWriter};
use crate::sync::Shared;
use crate::time::Nanos;

impl<R: ?Sized, C: Clock> RuleSet<R, C> {
    /// Writes the permits that count in each state, so that [`RuleSetBuilder::restore`] can charge them in another process.
    /// Returns the number of keys that were written, of all tables.
    ///
    /// The documentation of [`saved`](crate::saved) says what a restore promises, and what a crash between two saves gives
    /// back. **The file is as secret as the seeds**, which it contains. Write it as shown at
    /// [`KeyedBuilder::restore`](crate::keyed::KeyedBuilder::restore).
    ///
    /// [Counts](Self::counts) are not saved: they begin at zero after a restore.
    ///
    /// # Errors
    ///
    /// When `to` cannot be written, and while a reload of [`LiveRules`](crate::LiveRules) is pending: call
    /// [`LiveRules::finish`](crate::LiveRules::finish) first.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use core::time::Duration;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::new("user", |user: &str, key| user.hash(key));
    /// let builder = RuleSetBuilder::new().rule(Rule::new("login", "2/h".parse()?).by(&user));
    /// let before = builder.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(before.check("alice").is_ok());
    /// let mut file = Vec::new();
    /// before.save(&mut file)?;
    ///
    /// // How long the restart took is not known, so no time is assumed.
    /// let after = builder.restore_with(ManualClock::new(), &*file, Duration::ZERO)?;
    /// assert!(after.check("alice").is_ok());
    /// assert!(after.check("alice").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cost
    ///
    /// Reads every entry of every table twice, and writes 24 bytes for each key with permits that count. Allocates 64 KiB.
    ///
    /// # Concurrency
    ///
    /// Other threads may decide meanwhile. An admission that returned before the call is in the file if it still counts. One
    /// that comes later may be missing, so save for the last time after the last decision.
    pub fn save(&self, to: impl Write) -> io::Result<u64> {
        let retired = self.states.states.iter().filter(|state| state.retired).count();
        if retired > 0 {
            return Err(io::Error::other(format!(
                "{retired} old states are still enforced (expected 0): finish the reload first"
            )));
        }
        let mut to = SavedWriter::new(to, &self.states.header())?;
        let now = self.clock.now();
        let mut keys = 0;
        for state in self.states.saved() {
            keys += state.save(now, &mut to)?;
        }
        to.finish()?;
        Ok(keys)
    }
}

impl<R: ?Sized> RuleSetBuilder<R> {
    /// Builds the rule set with the given clock and the seeds of the file, and charges each key the permits that
    /// [`RuleSet::save`] has written.
    ///
    /// See [`restore`](Self::restore).
    ///
    /// # Errors
    ///
    /// [`RestoreError`], in the cases of [`restore`](Self::restore).
    pub fn restore_with<C: Clock>(
        &self,
        clock: C,
        from: impl Read,
        elapsed: Duration,
    ) -> Result<RuleSet<R, C>, RestoreError> {
        self.restore_from(clock, from, elapsed, self.origin)
    }

    /// Restores the rule set as [`restore_with`](Self::restore_with) does, with an origin of the clock that may be unknown.
    pub(super) fn restore_from<C: Clock>(
        &self,
        clock: C,
        from: impl Read,
        elapsed: Duration,
        origin: ClockOrigin,
    ) -> Result<RuleSet<R, C>, RestoreError> {
        let (mut from, header) = Reader::new(from)?;
        let rules = self
            .build_from(clock, header.seeds, origin)
            .map_err(|error| RestoreError::Invalid(error.into()))?;
        header.compare("list of rules", rules.states.header())?;
        let now = rules.clock.now();
        for state in rules.states.saved() {
            state.restore(now, elapsed, &mut from)?;
        }
        from.finish()?;
        Ok(rules)
    }
}

impl<R: ?Sized> RuleStates<R> {
    /// The states that are saved. Slots in flight and blocks end with the process.
    fn saved(&self) -> impl Iterator<Item = &RuleState<R>> {
        let states = self.states.iter().map(|state| &**state);
        states.filter(|state| !state.is_in_flight() && !state.is_block())
    }

    /// The properties that distinguish the saved states from those of other rules.
    fn header(&self) -> Header {
        let states: Vec<String> = self.saved().map(RuleState::description).collect();
        Header::new(states.join("; "), &self.seeds.tables)
    }
}

impl<R: ?Sized> RuleState<R> {
    fn description(&self) -> String {
        let quotas: Vec<String> = self
            .quotas
            .iter()
            .map(|quota| {
                format!(
                    "{:?} {} in {:?}",
                    quota.name,
                    quota.quota.limit(),
                    quota.quota.window()
                )
            })
            .collect();
        let key = self.extractor.key_name();
        let key = key.map_or_else(String::new, |name| format!(" by {name:?}"));
        format!("{}{key}, {}", quotas.join(" and "), self.algorithms.description())
    }

    fn save(&self, now: Nanos, to: &mut SavedWriter<impl Write>) -> io::Result<u64> {
        let algorithm = &self.algorithms.usage;
        match &*self.storage {
            StateStorage::Single(words) => {
                to.put_record(SavedState::of(algorithm, Shared::new(words.get()), now))?;
                Ok(0)
            }
            StateStorage::Keyed(store) => store.save(algorithm, now, to),
        }
    }

    fn restore(
        &self,
        now: Nanos,
        elapsed: Duration,
        from: &mut Reader<impl Read>,
    ) -> Result<(), RestoreError> {
        let algorithm = &self.algorithms.usage;
        match &*self.storage {
            StateStorage::Single(words) => {
                let state = from.take_record()?;
                Charger::new(algorithm, now, elapsed).charge(Shared::new(words.get()), state);
                Ok(())
            }
            StateStorage::Keyed(store) => store.restore(algorithm, now, elapsed, from),
        }
    }
}
