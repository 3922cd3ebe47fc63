//! The verdicts of all rules together, in order of time.

use ringgate::{ManualClock, Nanos, Quota, RuleCounts, RuleSet};

use crate::failure::Failure;
use crate::layout::{Event, time_of_word};
use crate::plan::{Entry, Plan};
use crate::progress::Progress;
use crate::series::Series;
use crate::sorter::{Sorted, Sorter};
use crate::span::Span;

/// Every request with its verdicts.
#[derive(Debug)]
pub(crate) struct Judged {
    events: Sorted,
    /// For each event, in the same order.
    said: Sorted,
    pub(crate) series: Series,
    /// How often a rule's table had no room.
    pub(crate) overflowed: Vec<(String, u64)>,
}

/// The verdicts about one request: a bit for whether it was refused, and for each entry one for whether it was about it
/// and one for whether it had no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict<'w>(&'w [u64]);

impl Verdict<'_> {
    fn is_set(self, bit: usize) -> bool {
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }

    /// Whether the request was refused.
    #[inline]
    pub(crate) fn is_refused(self) -> bool {
        self.is_set(0)
    }

    /// Whether an entry was about the request.
    #[inline]
    pub(crate) fn is_about(self, entry: usize) -> bool {
        self.is_set(1 + 2 * entry)
    }

    /// Whether an entry had no room for it.
    #[inline]
    pub(crate) fn is_denied(self, entry: usize) -> bool {
        self.is_set(2 + 2 * entry)
    }
}

fn set(words: &mut [u64], bit: usize) {
    words[bit / 64] |= 1 << (bit % 64);
}

impl Judged {
    /// How many there are.
    pub(crate) const fn requests(&self) -> u64 {
        self.events.records()
    }

    /// Shows every request, in order of time, with its verdicts.
    pub(crate) fn visit(
        &mut self,
        mut each: impl FnMut(&[u64], Verdict<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut events, mut said) = (self.events.read()?, self.said.read()?);
        while let (Some(record), Some(said)) = (events.next()?, said.next()?) {
            each(record, Verdict(said))?;
        }
        Ok(())
    }
}

/// Requests between two looks at the clock.
const UNSHOWN: u64 = 1 << 14;

/// Judges all requests.
///
/// # Errors
///
/// When the rules cannot be built, or a temporary file not be used.
pub(crate) fn judge(
    plan: &Plan,
    mut events: Sorted,
    keys: u64,
    span: Span,
    progress: &mut Progress,
) -> Result<Judged, Failure> {
    progress.begin("judging");
    let bench = Bench::new(plan, keys)?;
    let entries = &plan.entries;
    let (words, tiers) = {
        let layout = plan.fields.layout();
        (layout.words(), layout.tiers.clone())
    };
    let mut event = Event {
        record: vec![0; words],
        tiers,
    };
    // Taken and given back in the same order: no bit of them counts for it.
    let mut verdict = vec![0; (1 + 2 * entries.len()).div_ceil(64)];
    let mut judged = Sorter::unsorted(verdict.len());
    let mut series = Series::new(span, entries.len());
    let mut judged_so_far = 0_u64;
    let mut said = Said::default();
    let mut reading = events.read()?;
    while let Some(record) = reading.next()? {
        event.record.copy_from_slice(record);
        let time = time_of_word(record[0]);
        bench.ask(&event, span.reading(time), &mut said);
        let step = series.step_of(time);
        series.requests[step] += 1;
        verdict.fill(0);
        if said.refused {
            series.denied[step] += 1;
            set(&mut verdict, 0);
        }
        for &place in &said.about {
            set(&mut verdict, 1 + 2 * place);
        }
        for &place in &said.denied {
            series.by_rule[place][step] += 1;
            set(&mut verdict, 2 + 2 * place);
        }
        judged.push(&verdict)?;
        judged_so_far += 1;
        if judged_so_far.is_multiple_of(UNSHOWN) {
            progress.go_on();
        }
    }
    let overflowed = |(name, counts): (&str, RuleCounts)| {
        (counts.overflowed > 0).then(|| (name.to_string(), counts.overflowed))
    };
    drop(reading);
    Ok(Judged {
        events,
        said: judged.finish()?,
        series,
        overflowed: bench.rules.counts().filter_map(overflowed).collect(),
    })
}

/// Where requests are judged.
struct Bench<'p> {
    rules: RuleSet<Event, ManualClock>,
    clock: ManualClock,
    entries: &'p [Entry],
    /// Whether the rules are looked at before they decide: what those in the shadow and those with lists would do is told
    /// in no other way.
    looks: bool,
}

/// What the rules say of one request.
#[derive(Default)]
struct Said {
    refused: bool,
    /// The places of the entries that are about it, and of those that have no room.
    about: Vec<usize>,
    denied: Vec<usize>,
}

impl<'p> Bench<'p> {
    fn new(plan: &'p Plan, keys: u64) -> Result<Self, Failure> {
        let clock = ManualClock::new();
        let entries = &plan.entries;
        Ok(Self {
            rules: plan.rule_set(clock.clone(), keys)?,
            clock,
            entries,
            looks: entries.iter().any(|entry| entry.shadow || entry.lists),
        })
    }

    fn ask(&self, event: &Event, now: Nanos, said: &mut Said) {
        said.about.clear();
        said.denied.clear();
        if self.looks {
            self.look(event, now, said);
        } else {
            let places = self.entries.iter().enumerate();
            let about = places.filter(|(_, entry)| entry.is_about(&event.record));
            said.about.extend(about.map(|(place, _)| place));
        }
        let decided = self.rules.check_at(event, now);
        said.refused = decided.is_err();
        if let Err(refused) = decided {
            let places = refused
                .violations()
                .filter_map(|violation| self.place(violation.rule(), violation.quota()));
            said.denied.extend(places);
        }
    }

    /// Says which entries are about the request, and which would refuse it if they were enforced.
    fn look(&self, event: &Event, now: Nanos, said: &mut Said) {
        self.clock.set(now);
        for peek in self.rules.peek(event) {
            let Some(place) = self.place(peek.rule(), peek.quota()) else {
                continue;
            };
            said.about.push(place);
            if !peek.is_enforced() && peek.remaining() < peek.permits() {
                said.denied.push(place);
            }
        }
    }

    fn place(&self, rule: &str, quota: Quota) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.rule == rule && entry.quota == quota)
    }
}
