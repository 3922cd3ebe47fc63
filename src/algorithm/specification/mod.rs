//! Compares the algorithms of one word with the transitions that `proofs/words` proves.
//!
//! The transitions are written here once more, from the same promises, bit by bit and in wide integers. Each random case is decided by
//! them and by the crate. The model of the proof decides cases, too: `ci/proofs.sh` writes them to a transcript, and this test
//! expects the same of the transitions here and of the crate.

use alloc::string::String;
use alloc::vec::Vec;

use crate::sync::{AtomicU64, Ordering, Shared};

#[cfg(feature = "rules")]
mod block;
mod bucket;
#[cfg(feature = "calendar")]
mod period;
#[cfg(feature = "rules")]
mod slots;
mod unit;

/// The numbers of a case: the layout or the policy, a word, a step, and what the step is given. Each algorithm says which.
type Case = [u64; NUMBERS];
const NUMBERS: usize = 12;

/// The value that a step returns, and the word after it.
type Outcome = (u64, u64);

/// An algorithm whose state is one word.
struct Subject {
    name: &'static str,
    any_case: fn(&mut Random) -> Case,
    specified: fn(&Case) -> Outcome,
    performed: fn(&Case) -> Outcome,
}

const SUBJECTS: &[Subject] = &[
    unit::SUBJECT,
    bucket::SUBJECT,
    #[cfg(feature = "calendar")]
    period::SUBJECT,
    #[cfg(feature = "rules")]
    slots::SUBJECT,
    #[cfg(feature = "rules")]
    block::SUBJECT,
];

/// Numbers for random cases.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A number up to `most`. Small numbers, and those near `most`, are likely.
    fn up_to(&mut self, most: u64) -> u64 {
        let shift = self.below(64);
        let number = self.bits() >> shift;
        let number = if most == u64::MAX {
            number
        } else {
            number % (most + 1)
        };
        if self.below(4) == 0 { most - number } else { number }
    }

    /// A number near `middle`, up to `most`.
    fn near(&mut self, middle: u64, most: u64) -> u64 {
        let distance = self.below(5);
        let number = if self.below(2) == 0 {
            middle.saturating_sub(distance)
        } else {
            middle.saturating_add(distance)
        };
        number.min(most)
    }
}

/// Runs a step of the crate on one word, and returns its outcome.
fn on_word(word: u64, step: impl FnOnce(Shared<'_>) -> u64) -> Outcome {
    let words = [AtomicU64::new(word)];
    let value = step(Shared::new(&words));
    (value, words[0].load(Ordering::Relaxed))
}

/// An optional word or time as a number: 0 for none.
fn or_zero(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value + 1)
}

fn compare(subject: &Subject, case: &Case) {
    let (specified, performed) = ((subject.specified)(case), (subject.performed)(case));
    assert_eq!(performed, specified, "{} {case:?}", subject.name);
}

/// The number of random cases of the unit ring. The other algorithms have a tenth of it each. `ci/proofs.sh` sets `RINGGATE_WORDS` to 10^8.
fn cases(subject: &Subject) -> u64 {
    let modest = if cfg!(miri) { 200 } else { 200_000 };
    let set = std::env::var("RINGGATE_WORDS");
    let most = set.map_or(modest, |number| {
        number.parse().expect("RINGGATE_WORDS is a number")
    });
    if subject.name == unit::SUBJECT.name {
        most
    } else {
        most / 10
    }
}

/// Compares `cases` random cases.
fn compare_random_cases(subject: &Subject, seed: u64, cases: u64) -> u64 {
    let mut random = Random(seed);
    for _ in 0..cases {
        compare(subject, &(subject.any_case)(&mut random));
    }
    cases
}

fn on_all_processors(subject: &Subject, cases: u64) -> u64 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        let share = |worker| cases / workers + u64::from(worker < cases % workers);
        let run =
            |worker: u64| scope.spawn(move || compare_random_cases(subject, worker << 32, share(worker)));
        let running: Vec<_> = (0..workers).map(run).collect();
        let joined = running
            .into_iter()
            .map(|worker| worker.join().expect("all cases agree"));
        joined.sum()
    })
}

#[test]
fn random_words_step_as_specified() {
    for subject in SUBJECTS {
        let cases = cases(subject);
        let compared = if cases < 1_000_000 {
            compare_random_cases(subject, 0, cases)
        } else {
            on_all_processors(subject, cases)
        };
        assert_eq!(compared, cases);
        std::println!("{}: {cases} random cases agree", subject.name);
    }
}

/// Compares the cases of a transcript that `proofs/words/transcript.py` has written: the name of an algorithm, the numbers of a case,
/// and its outcome in the model of the proof.
#[test]
fn words_step_as_proved() {
    let Ok(path) = std::env::var("RINGGATE_TRANSCRIPT") else {
        return;
    };
    let transcript: String = std::fs::read_to_string(path).expect("a transcript");
    let mut compared = 0;
    for line in transcript.lines() {
        let (name, numbers) = line.split_once(' ').expect("a name and numbers");
        let numbers: Vec<u64> = numbers
            .split(' ')
            .map(|number| number.parse().expect("a number"))
            .collect();
        let (case, outcome) = numbers.split_at(NUMBERS);
        let case: &Case = case.try_into().expect("the numbers of a case");
        let proved = (outcome[0], outcome[1]);
        let subject = SUBJECTS.iter().find(|subject| subject.name == name);
        let subject = subject.expect("an algorithm of one word");
        assert_eq!((subject.specified)(case), proved, "specified: {line}");
        assert_eq!((subject.performed)(case), proved, "performed: {line}");
        compared += 1;
    }
    assert!(compared > 0, "the transcript is empty");
    std::println!("{compared} cases of the transcript agree");
}
