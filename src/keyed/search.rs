use super::counts::{Counts, Event};
use crate::algorithm::{Attempt, Reclaim};
use crate::receipt::Receipt;
use crate::table::{Candidate, Entry, Home, Opening, Seat, Set, Table};
use crate::table::{Stage, Staged};
use crate::time::Nanos;

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
    /// The key has no entry, and there is none for it. With the reading, or the newer time at which the key
    /// may have lost an entry.
    Full(Nanos),
    /// There is an entry, but until the second of the two the key may have been admitted by the
    /// catch-all.
    Barred(Nanos, Nanos),
}

/// A candidate as it was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    candidate: Candidate<'a>,
    first: Staged,
    owner: u64,
}

impl<'a> Look<'a> {
    pub(super) fn entry(&self) -> Entry<'a> {
        self.candidate.entry
    }

    /// Whether nobody has ever had the entry.
    fn is_unused(&self) -> bool {
        self.first.raw() == 0
    }

    /// Whether a key has the entry.
    fn is_owned(&self) -> bool {
        self.owner != Entry::NOBODY && self.owner != Entry::UNSPENT
    }
}

/// The entries of a set that are idle, or were never used.
#[derive(Clone, Copy, Debug, Default)]
struct Free<'a> {
    count: usize,
    /// Those that were never used.
    unused: usize,
    look: Option<Look<'a>>,
}

/// An entry that may be taken over, and what that is for the key that has it.
#[derive(Clone, Copy, Debug)]
struct Room<'a> {
    look: Look<'a>,
    event: Event,
}

/// What a key without a decision to make would find.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'a> {
    /// An entry, the key that has it, and the reading, or a newer time as below.
    Entry(Entry<'a>, u64, Nanos),
    /// A fresh entry at the reading, or at a newer time at which the key may have lost one.
    Fresh(Nanos),
    /// As [`Place::Full`].
    Full(Nanos),
    /// As [`Place::Barred`].
    Barred(Nanos, Nanos),
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

    /// Enters a key that nobody seems to know into an entry that was never used, and decides: as
    /// [`enter`](Self::enter) would, with fewer looks. Without a receipt nothing was decided; `None`: the key may have
    /// been entered all the same.
    #[inline(always)]
    pub(super) fn enter_unused(&self, permits: u64) -> Option<(Entry<'a>, Option<Receipt>)> {
        let candidate = self.table.find_unused(self.key)?;
        let (entry, home) = (candidate.entry, self.home());
        // After the looks, as in `try_enter`.
        let now = self.now.max(home.reclaimed());
        if home.shared(self.key) > Nanos::ZERO {
            return None;
        }
        let word = self.algorithm.advance(0, now)?;
        let claimed = entry.claim(Staged::decode(0), word)?;
        entry.rename(self.key);
        let tentative = entry.announce(claimed);
        let shared = home.meet(self.key);
        let alone = self.table.is_in_one_place(self.key);
        if alone && shared == Nanos::ZERO && home.reclaimed() <= now {
            // The word is no older than `now`, and so than what was reclaimed.
            let words = Opening::new(entry, tentative);
            let decision = self.algorithm.attempt(&words, self.now, permits);
            if words.is_open() {
                self.entered(candidate);
                return Some((
                    entry,
                    match decision {
                        Attempt::Admitted(receipt) => Some(receipt),
                        Attempt::Denied | Attempt::Retry => None,
                    },
                ));
            }
            // Somebody else has opened or withdrawn it, or the reading is too old for a decision.
        }
        self.settle(candidate, tentative);
        None
    }

    fn try_enter(&self, forget: bool) -> Option<Place<'a>> {
        let room = match self.look_for_room(forget, true) {
            Ok(room) => room,
            Err(own) if own.first.is_open() => return Some(Place::Entry(own.candidate.entry)),
            Err(own) => return self.settle(own.candidate, own.first),
        };
        // After the looks: if they missed an entry because the key has lost it, this is no earlier.
        let now = self.now.max(self.home().reclaimed());
        let Some(room) = room else {
            return Some(Place::Full(now));
        };
        let Some(word) = self.algorithm.advance(room.look.first.word(), now) else {
            return Some(Place::Full(now));
        };
        let shared = self.home().shared(self.key);
        if shared > Nanos::ZERO && self.algorithm.latest_time(word) < self.begin(shared) {
            return Some(Place::Barred(now, self.entered_from(shared)));
        }
        self.take_over(room, word)
    }

    /// An entry that the key may take over; or the one that it has, open or tentative. `finish`: a step that somebody has begun
    /// with another entry is finished; otherwise nothing is written.
    fn look_for_room(&self, forget: bool, finish: bool) -> Result<Option<Room<'a>>, Look<'a>> {
        let (mut first, mut second) = (Free::default(), Free::default());
        for (set, free) in self.table.front(self.key).zip([&mut first, &mut second]) {
            self.look_for_free(set, finish, free)?;
        }
        let mut best = if first.count >= second.count {
            first
        } else {
            second
        };
        if first.unused + second.unused == 0 {
            // The key may be in the backyard.
            let mut back = Free::default();
            for set in self.table.backyard(self.key) {
                let mut free = Free::default();
                self.look_for_free(set, finish, &mut free)?;
                back = if free.count > back.count { free } else { back };
            }
            if best.count == 0 {
                best = back;
            }
        }
        let room = best.look.map(|look| (look, Event::Reclaimed));
        let room = match room {
            None if forget => self.least_spent().map(|look| (look, Event::Forgotten)),
            room => room,
        };
        Ok(room.map(|(look, event)| Room { look, event }))
    }

    /// Adds the entries of a set that are idle to `free`; stops at the one that is the key's.
    fn look_for_free(&self, set: Set<'a>, finish: bool, free: &mut Free<'a>) -> Result<(), Look<'a>> {
        for mut look in self.looks_at(set) {
            if look.owner == self.key && look.first.stage() != Stage::Claimed {
                return Err(look);
            }
            if look.is_unused() {
                // Nothing counts in it, whatever the algorithm and the time.
                free.count += 1;
                free.unused += 1;
                free.look.get_or_insert(look);
                continue;
            }
            if finish && look.first.is_open() && self.algorithm.advance(look.first.word(), self.now).is_none()
            {
                // Somebody sleeps in the middle of a step, and the key may never ask again.
                let _ = self.finish(look.candidate.entry, look.owner);
                (look.first, look.owner) = look.candidate.entry.look(self.key);
            }
            if self.is_free(&look) {
                free.count += 1;
                free.look.get_or_insert(look);
            }
        }
        Ok(())
    }

    /// Whether the entry may be taken over, as far as can be seen.
    fn is_free(&self, look: &Look<'a>) -> bool {
        if !look.first.is_open() {
            return false;
        }
        let first = look.first.word();
        let Some(later) = self.algorithm.advance(first, self.now) else {
            return false;
        };
        // A state that was not used is fresh as soon as a later word is not ahead of time.
        let unspent = look.owner == Entry::UNSPENT && self.algorithm.latest_time(later) <= self.now;
        unspent || self.algorithm.is_idle(first, self.now)
    }

    /// Finishes a step of several that somebody has begun: an attempt at what is never admitted does.
    fn finish(&self, entry: Entry<'a>, owner: u64) -> Attempt {
        let seat = Seat::new(entry, owner);
        self.algorithm.attempt(&seat, self.now, u64::MAX)
    }

    /// Makes the entry that was looked at the key's own, with `word` as its first.
    fn take_over(&self, room: Room<'a>, word: u64) -> Option<Place<'a>> {
        let Room { look, event } = room;
        let entry = look.candidate.entry;
        if look.is_owned() {
            // Before the claim: whoever sees the key gone must see the time, too. It is the reading, by which the
            // key was idle, and not what others' readings have made of it, so that one wild reading stays
            // in its home.
            self.table.home(look.owner).reclaim_at(self.now);
        }
        let claimed = entry.claim(look.first, word)?;
        if look.is_owned() {
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
            let shared = self.home().meet(self.key);
            let mut unused = false;
            for (choice, set) in self.sets().enumerate() {
                if choice == 2 && unused {
                    // Nobody who met before has found both sets full, so nobody has gone to the backyard.
                    break;
                }
                for other in self.looks_at(set) {
                    unused |= other.is_unused();
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
            }
            let latest = shared.max(self.home().reclaimed());
            if latest > Nanos::ZERO && self.algorithm.latest_time(tentative.word()) < self.begin(latest) {
                // What the key was admitted before, by the catch-all or with an entry that it has
                // lost since, may still count at the entry's time.
                self.withdraw(candidate.entry, tentative);
                return None;
            }
            return candidate.entry.open(tentative).then(|| {
                self.entered(candidate);
                Place::Entry(candidate.entry)
            });
        }
    }

    /// The key has the entry.
    fn entered(&self, candidate: Candidate<'a>) {
        self.table.hint(self.key, candidate.index);
        self.counts.add(self.key, Event::Entered);
    }

    /// What a fresh state has reached that begins at `time`.
    fn begin(&self, time: Nanos) -> Nanos {
        let fresh = self.algorithm.advance(0, time);
        fresh.map_or(Nanos::MAX, |first| self.algorithm.latest_time(first))
    }

    /// When a key enters that is barred until `shared`: a counter ring, with the cell of that time.
    fn entered_from(&self, shared: Nanos) -> Nanos {
        let begin = self.begin(shared);
        if self.begin(begin) == begin { begin } else { shared }
    }

    /// When the key may have an entry, if its admissions by the catch-all bar it from one now.
    pub(super) fn barred_until(&self) -> Option<Nanos> {
        let shared = self.home().shared(self.key);
        let now = self.now.max(self.home().reclaimed());
        (self.begin(now) < self.begin(shared)).then(|| self.entered_from(shared))
    }

    /// Makes a tentative entry nobody's; false if somebody else has opened or withdrawn it.
    fn withdraw(&self, entry: Entry<'_>, tentative: Staged) -> bool {
        let Some(claimed) = entry.withdraw(tentative) else {
            return false;
        };
        entry.rename(Entry::UNSPENT);
        entry.open(claimed);
        true
    }

    /// Takes the key's entry from it; false if it has none.
    pub(super) fn leave(&self) -> bool {
        while let Some(look) = self.own_entry() {
            let entry = look.candidate.entry;
            let first = look.first.word();
            let now = self.now.max(self.algorithm.latest_time(first));
            let Some(word) = self.algorithm.advance(first, now) else {
                if self.finish(entry, self.key) != Attempt::Retry {
                    // Nothing was begun: time has ended.
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

    /// What the key would find, without entering it.
    pub(super) fn peek(&self, forget: bool) -> View<'a> {
        if let Some(look) = self.own_entry() {
            return View::Entry(look.candidate.entry, self.key, self.now);
        }
        let now = self.now.max(self.home().reclaimed());
        let room = match self.look_for_room(forget, false) {
            Ok(Some(room)) => room,
            Ok(None) => return View::Full(now),
            Err(look) => return View::Entry(look.candidate.entry, self.key, self.now),
        };
        let shared = self.home().shared(self.key);
        if self.begin(now) < self.begin(shared) {
            View::Barred(now, self.entered_from(shared))
        } else if matches!(room.event, Event::Forgotten) {
            View::Entry(room.look.candidate.entry, room.look.owner, now)
        } else {
            View::Fresh(now)
        }
    }

    /// The entry with which the key decides.
    pub(super) fn own_entry(&self) -> Option<Look<'a>> {
        self.looks()
            .find(|look| look.owner == self.key && look.first.is_open())
    }

    /// When the first of the key's entries can be reclaimed, if nobody uses them.
    pub(super) fn room_at(&self) -> Option<Nanos> {
        self.looks()
            .map(|look| match look.first.stage() {
                Stage::Open => self.algorithm.idle_from(look.first.word()),
                // It is changing hands: nobody knows.
                Stage::Claimed | Stage::Tentative => Some(self.now),
            })
            .min_by_key(|room| room.unwrap_or(Nanos::MAX))
            .flatten()
    }

    /// The entry in which least counts, of those that are not ahead of time.
    fn least_spent(&self) -> Option<Look<'a>> {
        let spent = |look: &Look<'a>| {
            let seat = Seat::new(look.candidate.entry, look.owner);
            self.algorithm.spent(&seat, self.now)
        };
        self.looks()
            .filter(|look| {
                look.first.is_open() && self.algorithm.advance(look.first.word(), self.now).is_some()
            })
            .min_by_key(spent)
    }

    fn home(&self) -> Home<'a> {
        self.table.home(self.key)
    }

    fn looks(&self) -> impl Iterator<Item = Look<'a>> {
        self.sets().flat_map(|set| self.looks_at(set))
    }

    /// The two sets in the front, and then those in the backyard.
    fn sets(&self) -> impl Iterator<Item = Set<'a>> {
        self.table.front(self.key).chain(self.table.backyard(self.key))
    }

    #[inline]
    fn looks_at(&self, set: Set<'a>) -> impl Iterator<Item = Look<'a>> + use<'a, A> {
        let key = self.key;
        set.candidates().map(move |candidate| {
            let (first, owner) = candidate.entry.look(key);
            Look {
                candidate,
                first,
                owner,
            }
        })
    }
}
