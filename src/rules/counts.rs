use core::fmt;
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use crate::sync::Tally;

/// What a rule has done so far, since its name, or the one that it [was](super::Rule::was) called by, came into force.
/// A change of its key does not set it back.
///
/// Each number is exact when nobody decides; read under load, they may be of slightly different instants.
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
/// for _ in 0..5 {
///     let _ = rules.check("request");
/// }
/// for (name, counts) in rules.counts() {
///     assert_eq!((name, counts.admitted, counts.denied), ("all", 2, 3));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// Requests that were admitted and charged to the rule.
    pub admitted: u64,
    /// The permits that they were charged, for each of the rule's quotas.
    pub charged: u64,
    /// Requests that were refused, by this rule among others or alone.
    pub denied: u64,
    /// Requests that the rule would have refused, had it not been in the shadow.
    pub shadow_denied: u64,
    /// Decisions that [`OnFull`](crate::OnFull) made, for want of an entry.
    pub overflowed: u64,
    /// Permits that could not be given back, of each of the rule's states: of refused requests, where another rule was found
    /// full only after this one was charged, and of [refunds](super::RuleSet::refund).
    pub forfeited: u64,
    /// Decisions of rules that many machines share (the module `redis`) that this node has made alone, since the store did
    /// not answer: by [`OnError`](crate::OnError), and also counted as admitted or denied. 0 for a rule of one process.
    pub by_node: u64,
}

/// What may happen to a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Admitted(u64),
    Denied,
    ShadowDenied,
    Overflowed,
    Forfeited(u64),
    #[cfg(feature = "redis")]
    ByNode,
}

/// The counts of one rule: a line for each thread, so that a decision shares none.
pub(crate) struct Tallies([CachePadded<Line>; OWN_LINES + 1]);

#[derive(Debug, Default)]
struct Line {
    admitted: Tally,
    charged: Tally,
    denied: Tally,
    shadow_denied: Tally,
    overflowed: Tally,
    forfeited: Tally,
    by_node: Tally,
}

/// Lines that one thread has to itself; those that come when all are taken share one more.
const OWN_LINES: usize = 63;

impl Tallies {
    pub(super) fn new() -> Self {
        Self([(); OWN_LINES + 1].map(|()| CachePadded::default()))
    }

    #[inline]
    pub(super) fn add(&self, me: Me, outcome: Outcome) {
        let line = &self.0[me.line];
        match outcome {
            Outcome::Admitted(permits) => {
                me.add(&line.admitted, 1);
                me.add(&line.charged, permits);
            }
            Outcome::Denied => me.add(&line.denied, 1),
            Outcome::ShadowDenied => me.add(&line.shadow_denied, 1),
            Outcome::Overflowed => me.add(&line.overflowed, 1),
            Outcome::Forfeited(permits) => me.add(&line.forfeited, permits),
            #[cfg(feature = "redis")]
            Outcome::ByNode => me.add(&line.by_node, 1),
        }
    }

    pub(crate) fn sum(&self) -> RuleCounts {
        let sum = |pick: fn(&Line) -> &Tally| self.0.iter().map(|line| pick(line).get()).sum();
        RuleCounts {
            admitted: sum(|line| &line.admitted),
            charged: sum(|line| &line.charged),
            denied: sum(|line| &line.denied),
            shadow_denied: sum(|line| &line.shadow_denied),
            overflowed: sum(|line| &line.overflowed),
            forfeited: sum(|line| &line.forfeited),
            by_node: sum(|line| &line.by_node),
        }
    }
}

impl fmt::Debug for Tallies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sum().fmt(f)
    }
}

/// The thread that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    line: usize,
}

impl Me {
    #[inline]
    pub(crate) fn new() -> Self {
        // A thread that is ending has given its line back.
        let line = LINE.try_with(|own| own.0).unwrap_or(OWN_LINES);
        Self { line }
    }

    /// The number of its line: its own, but for the last.
    #[cfg(any(feature = "observe", feature = "redis"))]
    pub(crate) const fn line(self) -> usize {
        self.line
    }

    #[inline]
    fn add(self, tally: &Tally, amount: u64) {
        if self.line < OWN_LINES {
            tally.add_alone(amount);
        } else {
            tally.add(amount);
        }
    }
}

/// A line that this thread has to itself for as long as it runs.
struct OwnLine(usize);

std::thread_local! {
    static LINE: OwnLine = OwnLine::take();
}

/// Which lines are taken, a bit each.
static TAKEN: Mutex<u64> = Mutex::new(0);

impl OwnLine {
    fn take() -> Self {
        // Nothing that is done under the lock can fail, so what a panic has left is whole.
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let line = (taken.trailing_ones() as usize).min(OWN_LINES);
        if line < OWN_LINES {
            *taken |= 1 << line;
        }
        Self(line)
    }
}

impl Drop for OwnLine {
    fn drop(&mut self) {
        let line = self.0;
        if line < OWN_LINES {
            // The next thread to take the line sees all that this one has counted, by way of the lock.
            *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << line);
        }
    }
}
