//! The evaluation of all rules together, in order of time.

use ringgate::rules::RuleCounts;
use ringgate::{ManualClock, Nanos, Quota, RuleSet};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::series::Series;
use crate::replay::span::Span;
use crate::rules::record_layout::{Event, time_of_word};
use crate::rules::{Plan, PlanEntry};
use crate::sorter::{Sorted, Sorter};

/// All requests with their verdicts.
#[derive(Debug)]
pub(crate) struct Evaluated {
    events: Sorted,
    /// The verdicts of all requests, in the same order.
    verdicts: Sorted,
    pub(crate) series: Series,
    /// The names of rules whose tables were full, with the number of requests without room.
    pub(crate) overflowed: Vec<(String, u64)>,
}

/// The verdicts about one request: a bit for a denial, and for each entry a bit for whether it applied and one for whether
/// it denied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict<'w>(&'w [u64]);

impl Verdict<'_> {
    fn is_set(self, bit: usize) -> bool {
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }

    /// Whether the request was denied.
    #[inline]
    pub(crate) fn is_denied(self) -> bool {
        self.is_set(0)
    }

    /// Whether an entry applied to the request.
    #[inline]
    pub(crate) fn applies(self, entry: usize) -> bool {
        self.is_set(1 + 2 * entry)
    }

    /// Whether an entry denied the request.
    #[inline]
    pub(crate) fn denied_by(self, entry: usize) -> bool {
        self.is_set(2 + 2 * entry)
    }
}

fn set(words: &mut [u64], bit: usize) {
    words[bit / 64] |= 1 << (bit % 64);
}

impl Evaluated {
    /// The number of requests.
    pub(crate) const fn requests(&self) -> u64 {
        self.events.records()
    }

    /// Visits all requests in order of time, with their verdicts.
    pub(crate) fn visit(
        &mut self,
        mut each: impl FnMut(&[u64], Verdict<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut events, mut verdicts) = (self.events.read()?, self.verdicts.read()?);
        while let (Some(record), Some(verdict)) = (events.next()?, verdicts.next()?) {
            each(record, Verdict(verdict))?;
        }
        Ok(())
    }
}

/// Requests between two updates of the progress line.
const UNSHOWN: u64 = 1 << 14;

/// Evaluates all requests.
///
/// # Errors
///
/// When the rules cannot be built, or a temporary file fails.
pub(crate) fn evaluate(
    plan: &Plan,
    mut events: Sorted,
    keys: u64,
    span: Span,
    progress: &mut Progress,
) -> Result<Evaluated, Failure> {
    progress.begin("applying rules");
    let evaluator = Evaluator::new(plan, keys)?;
    let entries = &plan.entries;
    let (words, tiers) = {
        let layout = plan.fields.layout();
        (layout.words(), layout.tiers.clone())
    };
    let mut event = Event {
        record: vec![0; words],
        tiers,
    };
    // The sorter keeps the order of the verdicts.
    let mut verdict = vec![0; (1 + 2 * entries.len()).div_ceil(64)];
    let mut verdicts = Sorter::unsorted(verdict.len());
    let mut series = Series::new(span, entries.len());
    let mut count = 0_u64;
    let mut outcome = Outcome::default();
    let all = events.records();
    let mut reading = events.read()?;
    while let Some(record) = reading.next()? {
        event.record.copy_from_slice(record);
        let time = time_of_word(record[0]);
        evaluator.decide(&event, span.reading(time), &mut outcome);
        let step = series.step_of(time);
        series.requests[step] += 1;
        verdict.fill(0);
        if outcome.is_denied {
            series.denied[step] += 1;
            set(&mut verdict, 0);
        }
        for &place in &outcome.applicable {
            set(&mut verdict, 1 + 2 * place);
        }
        for &place in &outcome.denied {
            series.by_rule[place][step] += 1;
            set(&mut verdict, 2 + 2 * place);
        }
        verdicts.push(&verdict)?;
        count += 1;
        if count.is_multiple_of(UNSHOWN) {
            progress.show_phase(count, all);
        }
    }
    let overflowed = |(name, counts): (&str, RuleCounts)| {
        (counts.overflowed > 0).then(|| (name.to_string(), counts.overflowed))
    };
    drop(reading);
    Ok(Evaluated {
        events,
        verdicts: verdicts.finish()?,
        series,
        overflowed: evaluator.rules.counts().filter_map(overflowed).collect(),
    })
}

/// The rule set with its clock.
struct Evaluator<'p> {
    rules: RuleSet<Event, ManualClock>,
    clock: ManualClock,
    entries: &'p [PlanEntry],
    /// Whether to peek before each decision. Denials of shadow rules and matches of lists are not visible otherwise.
    peeks: bool,
}

/// The outcome for one request.
#[derive(Default)]
struct Outcome {
    is_denied: bool,
    /// The positions of the entries that apply, and of those that deny.
    applicable: Vec<usize>,
    denied: Vec<usize>,
}

impl<'p> Evaluator<'p> {
    fn new(plan: &'p Plan, keys: u64) -> Result<Self, Failure> {
        let clock = ManualClock::new();
        let entries = &plan.entries;
        Ok(Self {
            rules: plan.rule_set(clock.clone(), keys)?,
            clock,
            entries,
            peeks: entries.iter().any(|entry| entry.shadow || entry.lists),
        })
    }

    fn decide(&self, event: &Event, now: Nanos, outcome: &mut Outcome) {
        outcome.applicable.clear();
        outcome.denied.clear();
        if self.peeks {
            self.peek(event, now, outcome);
        } else {
            let places = self.entries.iter().enumerate();
            let applicable = places.filter(|(_, entry)| entry.applies(&event.record));
            outcome.applicable.extend(applicable.map(|(place, _)| place));
        }
        let decided = self.rules.check_at(event, now);
        outcome.is_denied = decided.is_err();
        if let Err(denied) = decided {
            let places = denied
                .violations()
                .filter_map(|violation| self.place(violation.rule(), violation.quota()));
            outcome.denied.extend(places);
        }
    }

    /// Finds the entries that apply to the request, and those that would deny it if they were enforced.
    fn peek(&self, event: &Event, now: Nanos, outcome: &mut Outcome) {
        self.clock.set(now);
        for peek in self.rules.peek(event) {
            let Some(place) = self.place(peek.rule(), peek.quota()) else {
                continue;
            };
            outcome.applicable.push(place);
            if !peek.is_enforced() && peek.remaining() < peek.permits() {
                outcome.denied.push(place);
            }
        }
    }

    fn place(&self, rule: &str, quota: Quota) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.rule == rule && entry.quota == quota)
    }
}
