use core::cell::Cell;

use super::counts::{Counts, Event};
use crate::algorithm::Reclaim;
use crate::table::{CANDIDATES, CHOICES, Candidate, Entry, Home, Seat, Table};
use crate::time::Nanos;
use crate::word::{Stage, Staged};

/// Looks for the entry of one key among those that it may have, and enters the key if it has none:
/// [the protocol](crate::table), for somebody whose reading is `now`.
#[derive(Debug)]
pub(super) struct Search<'a, A> {
    pub(super) table: &'a Table,
    pub(super) algorithm: &'a A,
    pub(super) counts: &'a Counts,
    pub(super) key: u64,
    pub(super) now: Nanos,
}

/// What a search has found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// The key's entry.
    Entry(Entry<'a>),
    /// The key has no entry and gets none now. With the reading, or the newer time at which the key may have
    /// lost an entry.
    Full(Nanos),
}

/// A candidate as it was seen.
#[derive(Clone, Copy, Debug)]
struct Look<'a> {
    candidate: Candidate<'a>,
    first: Staged,
    owner: u64,
}

type Looks<'a> = [Option<Look<'a>>; CANDIDATES];

/// What a key without a decision to make would find.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'a> {
    /// An entry, and the key that has it.
    Entry(Entry<'a>, u64),
    /// As [`Place::Full`].
    Full(Nanos),
}

impl Look<'_> {
    fn is_of(&self, key: u64, stage: Stage) -> bool {
        self.owner == key && self.first.stage() == stage
    }
}

impl<'a, A: Reclaim> Search<'a, A> {
    /// The key's entry, entered if there is room; `forget`: or else in the place of the key that has spent
    /// least.
    pub(super) fn enter(&self, forget: bool) -> Place<'a> {
        loop {
            // Whatever makes us start over is a step that somebody else has made.
            if let Some(place) = self.try_enter(forget) {
                return place;
            }
        }
    }

    fn try_enter(&self, forget: bool) -> Option<Place<'a>> {
        let mut looks = [None; CANDIDATES];
        for (look, seen) in looks.iter_mut().zip(self.looks()) {
            if seen.is_of(self.key, Stage::Open) {
                return Some(Place::Entry(seen.candidate.entry));
            }
            if seen.is_of(self.key, Stage::Tentative) {
                return self.settle(seen.candidate, seen.first);
            }
            *look = Some(seen);
        }
        // After the looks: if they missed an entry because the key has lost it, this is no earlier.
        let now = self.now.max(self.home().reclaimed());
        let mut chosen = self.idle(&looks, now).map(|look| (look, Event::Reclaimed));
        if chosen.is_none() && forget {
            chosen = self.least_spent(&looks, now).map(|look| (look, Event::Forgotten));
        }
        let Some((look, event)) = chosen else {
            return Some(Place::Full(now));
        };
        let word = self.algorithm.later(look.first.word(), now);
        let Some(word) = word.filter(|&word| self.algorithm.reached(word) >= self.home().shared()) else {
            return Some(Place::Full(now));
        };
        self.take_over(look, word, now, event)
    }

    /// Makes the entry that was looked at the key's own, with `word` as its first.
    fn take_over(&self, look: Look<'a>, word: u64, now: Nanos, event: Event) -> Option<Place<'a>> {
        let entry = look.candidate.entry;
        if look.owner != Entry::NOBODY {
            // Before the claim: whoever sees the key gone must see the time, too.
            self.table.home(look.owner).reclaim_at(now);
        }
        let claimed = entry.claim(look.first, word)?;
        if look.owner != Entry::NOBODY {
            self.counts.add(look.owner, event);
        }
        entry.rename(self.key);
        self.settle(look.candidate, entry.announce(claimed))
    }

    /// Agrees with everybody who is entering the same key on one entry, and opens it: the one of the
    /// lowest index among those that are tentative, unless one is open already. `None`: start over.
    fn settle(&self, candidate: Candidate<'a>, tentative: Staged) -> Option<Place<'a>> {
        let (mut candidate, mut tentative) = (candidate, tentative);
        'agree: loop {
            // The entry is announced. Of two that are, whoever meets later sees the other's.
            let shared = self.home().meet();
            for other in self.looks() {
                if other.candidate.index == candidate.index || other.owner != self.key {
                    continue;
                }
                match other.first.stage() {
                    Stage::Open => {
                        self.withdraw(candidate.entry, tentative);
                        return Some(Place::Entry(other.candidate.entry));
                    }
                    Stage::Tentative if other.candidate.index < candidate.index => {
                        self.withdraw(candidate.entry, tentative);
                        (candidate, tentative) = (other.candidate, other.first);
                        continue 'agree;
                    }
                    Stage::Tentative => {
                        if !self.withdraw(other.candidate.entry, other.first) {
                            continue 'agree;
                        }
                    }
                    // Not announced: whoever has claimed it meets after us, and sees ours.
                    Stage::Claimed => {}
                }
            }
            let reached = self.algorithm.reached(tentative.word());
            if reached < shared || reached < self.lost_at() {
                // What the key was admitted before, by the catch-all or with an entry that it has
                // lost since, may still count at the entry's time.
                self.withdraw(candidate.entry, tentative);
                return None;
            }
            return candidate.entry.open(tentative).then(|| {
                self.counts.add(self.key, Event::Entered);
                Place::Entry(candidate.entry)
            });
        }
    }

    /// What a state that begins when the key may have lost its last entry has reached.
    fn lost_at(&self) -> Nanos {
        let fresh = self.algorithm.later(0, self.home().reclaimed());
        fresh.map_or(Nanos::MAX, |first| self.algorithm.reached(first))
    }

    /// Makes a tentative entry nobody's; false if somebody else has opened or withdrawn it.
    fn withdraw(&self, entry: Entry<'_>, tentative: Staged) -> bool {
        let Some(claimed) = entry.withdraw(tentative) else {
            return false;
        };
        entry.rename(Entry::NOBODY);
        entry.open(claimed);
        true
    }

    /// Takes the key's entry from it; false if it has none.
    pub(super) fn leave(&self) -> bool {
        while let Some(look) = self.looks().find(|look| look.is_of(self.key, Stage::Open)) {
            let entry = look.candidate.entry;
            let Some(word) = self.algorithm.later(look.first.word(), self.now) else {
                // A step of several is in its middle: an attempt at anything finishes it. Or time has ended.
                let lost = Cell::new(false);
                let seat = Seat::new(entry, self.key, &lost);
                if self.algorithm.attempt(seat, self.now, u64::MAX).is_some() {
                    return false;
                }
                continue;
            };
            if let Some(claimed) = entry.claim(look.first, word) {
                entry.rename(Entry::NOBODY);
                entry.open(claimed);
                self.counts.add(self.key, Event::Left);
                return true;
            }
        }
        false
    }

    /// Whether the key has an entry or is about to get one, or had one that somebody with a reading
    /// later than `now` has reclaimed.
    pub(super) fn is_entered_since(&self, now: Nanos) -> bool {
        self.looks()
            .any(|look| look.owner == self.key && look.first.stage() != Stage::Claimed)
            || self.home().reclaimed() > now
    }

    /// What the key would find, without entering it; `None`: a fresh entry.
    pub(super) fn peek(&self, forget: bool) -> Option<View<'a>> {
        let mut looks = [None; CANDIDATES];
        for (look, seen) in looks.iter_mut().zip(self.looks()) {
            if seen.is_of(self.key, Stage::Open) {
                return Some(View::Entry(seen.candidate.entry, self.key));
            }
            *look = Some(seen);
        }
        let now = self.now.max(self.home().reclaimed());
        let fresh = self.algorithm.later(0, now);
        if fresh.is_some_and(|first| self.algorithm.reached(first) >= self.home().shared()) {
            if self.idle(&looks, now).is_some() {
                return None;
            }
            if let (true, Some(look)) = (forget, self.least_spent(&looks, now)) {
                return Some(View::Entry(look.candidate.entry, look.owner));
            }
        }
        Some(View::Full(now))
    }

    /// When the first of the key's entries can be reclaimed, if nobody uses them.
    pub(super) fn room_at(&self) -> Option<Nanos> {
        self.looks()
            .filter(|look| look.first.is_open())
            .filter_map(|look| self.algorithm.idle_from(look.first.word()))
            .min()
    }

    /// An entry that nobody has or whose key is idle: in the first set if that leaves one more, else
    /// in the set that has most. (`benches/README.md` says what either costs.)
    fn idle(&self, looks: &Looks<'a>, now: Nanos) -> Option<Look<'a>> {
        let mut free = [0; CHOICES];
        let mut first = [None; CHOICES];
        for &look in looks.iter().flatten() {
            if look.first.is_open() && self.algorithm.is_idle(look.first.word(), now) {
                let choice = look.candidate.choice;
                free[choice] += 1;
                first[choice].get_or_insert(look);
            }
        }
        let most = (1..CHOICES).fold(
            0,
            |most, choice| if free[choice] > free[most] { choice } else { most },
        );
        first[if free[0] > 1 { 0 } else { most }]
    }

    /// The entry in use in which least counts.
    fn least_spent(&self, looks: &Looks<'a>, now: Nanos) -> Option<Look<'a>> {
        let spent = |look: &Look<'a>| {
            let lost = Cell::new(false);
            let seat = Seat::new(look.candidate.entry, look.owner, &lost);
            self.algorithm.spent(seat, now)
        };
        looks
            .iter()
            .flatten()
            .filter(|look| look.first.is_open() && look.owner != Entry::NOBODY)
            .min_by_key(|look| spent(look))
            .copied()
    }

    fn home(&self) -> Home<'a> {
        self.table.home(self.key)
    }

    fn looks(&self) -> impl Iterator<Item = Look<'a>> + use<'a, A> {
        let key = self.key;
        self.table.candidates(key).map(move |candidate| {
            let (first, owner) = candidate.entry.look(key);
            Look {
                candidate,
                first,
                owner,
            }
        })
    }
}
