use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::hash::Hash;
use core::time::Duration;
use std::sync::Mutex;
use std::thread;

use ringgate::{Cost, DenialEvents, Key, ManualClock, Rule, RuleSet, RuleSetBuilder};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// The fields of an event, as text.
type Fields = BTreeMap<&'static str, String>;

/// Keeps the events of this crate that are at least so grave.
#[derive(Clone)]
struct Book {
    level: LevelFilter,
    events: Arc<Mutex<Vec<Fields>>>,
}

impl Book {
    fn new(level: LevelFilter) -> Self {
        Self {
            level,
            events: Arc::default(),
        }
    }

    /// What `work` has told, in this thread.
    fn during(&self, work: impl FnOnce()) -> Vec<Fields> {
        tracing::subscriber::with_default(self.clone(), work);
        core::mem::take(&mut *self.events.lock().expect("a book"))
    }
}

impl Subscriber for Book {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        assert_eq!(event.metadata().target(), "ringgate");
        assert_eq!(*event.metadata().level(), Level::WARN);
        let mut fields = Reader(Fields::new());
        event.record(&mut fields);
        self.events.lock().expect("a book").push(fields.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Reader(Fields);

impl Visit for Reader {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value.to_string());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

struct Request {
    user: &'static str,
    bytes: u64,
}

const REQUEST: Request = Request {
    user: "kept secret",
    bytes: 1,
};

/// Two rules that are full from the start, and their clock.
fn full() -> Result<(RuleSet<Request, ManualClock>, ManualClock), Box<dyn Error>> {
    let clock = ManualClock::new();
    let user = Key::new("user", |request: &Request, key| request.user.hash(key));
    let bytes = Cost::new("bytes", |request: &Request| request.bytes);
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("user", "2/h".parse()?).also("2/2h".parse()?).by(&user))
        .rule(Rule::new("bytes", "10/h".parse()?).cost(&bytes))
        .build_with(clock.clone(), SEEDS)?;
    for _ in 0..2 {
        rules.check(&REQUEST).map_err(|refused| refused.to_string())?;
    }
    Ok((rules, clock))
}

fn refuse(rules: &RuleSet<Request, ManualClock>, events: &DenialEvents, times: u32) {
    for _ in 0..times {
        let answer = rules.check(&REQUEST).inspect_err(|refused| events.emit(refused));
        assert!(answer.is_err());
    }
}

fn left_out(events: &[Fields]) -> Vec<&str> {
    events.iter().map(|fields| fields["left_out"].as_str()).collect()
}

#[test]
fn no_more_events_than_allowed_and_the_next_says_how_many_were_left_out() -> Result<(), Box<dyn Error>> {
    let (rules, clock) = full()?;
    let events = DenialEvents::new("3/s".parse()?)?;
    let book = Book::new(LevelFilter::TRACE);

    assert_eq!(
        left_out(&book.during(|| refuse(&rules, &events, 50))),
        ["0", "0", "0"]
    );
    // Within the second, none.
    clock.advance(Duration::from_millis(900));
    assert!(book.during(|| refuse(&rules, &events, 10)).is_empty());
    // Past it (and the cell that a counter adds), three more: the first tells of all that came since.
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        left_out(&book.during(|| refuse(&rules, &events, 5))),
        ["57", "0", "0"]
    );
    clock.advance(Duration::from_secs(60));
    assert_eq!(left_out(&book.during(|| refuse(&rules, &events, 1))), ["2"]);
    Ok(())
}

#[test]
fn an_event_says_which_rules_and_what_of_them_and_nothing_of_the_key() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let events = DenialEvents::new("10/s".parse()?)?;
    let book = Book::new(LevelFilter::WARN);
    let request = Request { bytes: 9, ..REQUEST };
    let told = book.during(|| {
        let refused = rules.check(&request).expect_err("both are full");
        events.emit(&refused);
    });
    let [fields] = &*told else {
        panic!("{told:?}");
    };
    let names: Vec<_> = fields.keys().copied().collect();
    assert_eq!(
        names,
        [
            "left_out",
            "limit",
            "message",
            "remaining",
            "retry_after_ms",
            "rules"
        ]
    );
    assert_eq!(fields["message"], "rate limit reached");
    assert_eq!(fields["rules"], "user, bytes");
    // That of two hours keeps the request longest; its cells are as long as those of the hour.
    assert_eq!((&*fields["limit"], &*fields["remaining"]), ("2", "0"));
    let refused = rules.check(&request).expect_err("both are full");
    let wait = refused.retry_after().expect("a time");
    assert_eq!(
        fields["retry_after_ms"],
        wait.as_nanos().div_ceil(1_000_000).to_string()
    );
    assert!(wait > Duration::from_secs(7200), "{wait:?}");
    assert!(!format!("{told:?}").contains("secret"));
    Ok(())
}

#[test]
fn a_request_that_is_never_admitted_has_no_retry_time() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let events = DenialEvents::new("10/s".parse()?)?;
    let request = Request {
        user: "another",
        bytes: 11,
    };
    let told = Book::new(LevelFilter::WARN).during(|| {
        let refused = rules.check(&request).expect_err("more than the limit");
        events.emit(&refused);
    });
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["rules"], "bytes");
    assert_eq!((&*told[0]["limit"], &*told[0]["remaining"]), ("10", "8"));
    assert!(!told[0].contains_key("retry_after_ms"));
    Ok(())
}

#[test]
fn a_wait_is_rounded_up() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let rules = RuleSetBuilder::<str>::new()
        .rule(Rule::new("all", "1/s".parse()?).algorithm(ringgate::RuleAlgorithm::Log))
        .build_with(clock.clone(), SEEDS)?;
    rules.check("").map_err(|refused| refused.to_string())?;
    clock.advance(Duration::from_micros(500));
    let events = DenialEvents::new("10/s".parse()?)?;
    let told = Book::new(LevelFilter::WARN).during(|| {
        let refused = rules.check("").expect_err("full");
        assert!(refused.retry_after().expect("a time") < Duration::from_millis(1000));
        events.emit(&refused);
    });
    assert_eq!(told[0]["retry_after_ms"], "1000");
    Ok(())
}

#[test]
fn what_nobody_wants_is_neither_told_nor_left_out() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let events = DenialEvents::new("1/s".parse()?)?;
    refuse(&rules, &events, 20);
    assert!(
        Book::new(LevelFilter::ERROR)
            .during(|| refuse(&rules, &events, 20))
            .is_empty()
    );
    let told = Book::new(LevelFilter::WARN).during(|| refuse(&rules, &events, 1));
    // Nor was the quota spent on them.
    assert_eq!(left_out(&told), ["0"]);
    Ok(())
}

#[test]
fn threads_leave_out_what_is_not_told_exactly() -> Result<(), Box<dyn Error>> {
    const THREADS: usize = 8;
    const EACH: u32 = 2_000;
    let (rules, clock) = full()?;
    let events = DenialEvents::new("5/s".parse()?)?;
    let book = Book::new(LevelFilter::WARN);
    let told = thread::scope(|scope| {
        let work = || book.during_shared(|| refuse(&rules, &events, EACH));
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .for_each(|worker| worker.join().expect("a worker"));
        core::mem::take(&mut *book.events.lock().expect("a book"))
    });
    assert_eq!(told.len(), 5);
    clock.advance(Duration::from_secs(2));
    let last = book.during(|| refuse(&rules, &events, 1));
    let all = told.iter().chain(&last);
    let left_out: u64 = all
        .map(|fields| fields["left_out"].parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(left_out + 5, THREADS as u64 * u64::from(EACH));
    Ok(())
}

impl Book {
    /// As `during`, and leaves the events where they are.
    fn during_shared(&self, work: impl FnOnce()) {
        tracing::subscriber::with_default(self.clone(), work);
    }
}
