//! Compares the algorithms of one word with the transitions that `proofs/words` proves.
//!
//! The transitions are written here once more, from the same promises, bit by bit and in wide integers. Each random case is
//! decided by them and by the crate. The model of the proof decides cases, too: `ci/proofs.sh` writes them to a transcript, and
//! this test expects the same of the transitions here and of the crate.

use alloc::string::String;
use alloc::vec::Vec;

mod block;
mod bucket;
mod case;
mod period;
mod slots;
mod unit;

use case::{Case, NUMBERS, Random, Subject};

use super::{Algorithm, AnyAlgorithm};

const SUBJECTS: &[Subject] = &[
    unit::SUBJECT,
    bucket::SUBJECT,
    period::SUBJECT,
    slots::SUBJECT,
    block::SUBJECT,
];

/// The subject that specifies the steps of an algorithm. `None` if its state has several words, or is one of another variant.
fn subject_of(algorithm: &AnyAlgorithm) -> Option<&'static str> {
    match algorithm {
        AnyAlgorithm::Counter(ring) => (ring.words() == 1).then_some(unit::SUBJECT.name),
        AnyAlgorithm::Gcra(_) => Some(bucket::SUBJECT.name),
        AnyAlgorithm::Calendar(_) => Some(period::SUBJECT.name),
        AnyAlgorithm::InFlight(_) => Some(slots::SUBJECT.name),
        AnyAlgorithm::Violations(_) => Some(block::SUBJECT.name),
        AnyAlgorithm::Log(_) | AnyAlgorithm::InUnits(_) => None,
    }
}

/// Each algorithm of one word in an enum of all algorithms is specified.
#[test]
fn algorithms_of_one_word_are_specified() {
    let quota = crate::quota::Quota::per_minute(60).expect("a quota");
    let ring = crate::algorithm::UnitRing::new(quota).expect("a ring");
    let bucket = crate::algorithm::Gcra::new(quota).expect("a bucket");
    for algorithm in [AnyAlgorithm::from(ring), bucket.into()] {
        let name = subject_of(&algorithm).expect("one word");
        assert!(SUBJECTS.iter().any(|subject| subject.name == name), "{name}");
    }
}

fn compare(subject: &Subject, case: &Case) {
    let (specified, performed) = ((subject.specified)(case), (subject.performed)(case));
    assert_eq!(performed, specified, "{} {case:?}", subject.name);
}

/// The number of random cases of the unit ring. The other algorithms have a tenth of it each. `ci/proofs.sh` sets
/// `RINGGATE_WORDS` to 10^8.
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
    let (mut compared, mut names) = (0, alloc::collections::BTreeSet::new());
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
        names.insert(name);
    }
    assert_eq!(
        names.len(),
        SUBJECTS.len(),
        "a subject without a proof: {names:?}"
    );
    std::println!("{compared} cases of the transcript agree");
}
