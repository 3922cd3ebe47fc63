use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use metrics::{Unit, describe_counter, describe_gauge};

use super::books::Books;
use super::panel::{Board, Panel, Shown};
use super::shared_limiter::SharedLimiter;
use super::shared_rules::SharedRules;
use super::standing::Standing;

/// Publishes how the [accounts](SharedRules::standing) of a node stand through the [`metrics`] facade: when somebody asks,
/// and without a change to any decision.
///
/// | counter | counts |
/// |---|---|
/// | `ringgate_accounts_refused_total` | requests that accounts have refused |
/// | `ringgate_accounts_asked_total` | requests that the store had to be asked for, although an account is kept of their keys |
///
/// | gauge | is |
/// |---|---|
/// | `ringgate_accounts_capacity` | the accounts that there is room for |
/// | `ringgate_accounts_in_use` | the accounts that are some key's |
/// | `ringgate_accounts_uncharged_permits` | permits that were admitted here, and that the store has not said to have charged |
/// | `ringgate_accounts_held_permits` | permits that this node holds or has as a budget, what is uncharged included |
/// | `ringgate_accounts_stale_seconds` | how long ago the account was heard of that nobody has heard of for the longest time; 0 while none holds or owes anything |
///
/// The only label is `rules`, the name that the observer was given.
///
/// # Guarantees
///
/// - Seven series, however many keys and rules there are.
/// - No counter ever falls: when other rules are published, their counts are added to those of the ones before.
///
/// # Caveats
///
/// - Use one for each rule set, and publish no two by turns. (Each would be taken for the other's successor.)
/// - Install the recorder before the first call. (Series are registered with the recorder that is there then, and kept.)
///
/// # Cost
///
/// Seven registrations at the first call. After that a [`standing`](SharedRules::standing) and seven stores.
pub struct AccountsObserver {
    name: Arc<str>,
    board: Mutex<Board<Standing, Books>>,
}

const REFUSED: &str = "ringgate_accounts_refused_total";
const ASKED: &str = "ringgate_accounts_asked_total";
const CAPACITY: &str = "ringgate_accounts_capacity";
const IN_USE: &str = "ringgate_accounts_in_use";
const UNCHARGED: &str = "ringgate_accounts_uncharged_permits";
const HELD: &str = "ringgate_accounts_held_permits";
const STALE: &str = "ringgate_accounts_stale_seconds";

const COUNTERS: [Shown<Standing, u64>; 2] = [
    Shown::new(REFUSED, |standing| standing.refused),
    Shown::new(ASKED, |standing| standing.asked),
];

const GAUGES: [Shown<Standing, f64>; 5] = [
    Shown::new(CAPACITY, |standing| number(standing.capacity)),
    Shown::new(IN_USE, |standing| number(standing.accounts)),
    Shown::new(UNCHARGED, |standing| number(standing.uncharged)),
    Shown::new(HELD, |standing| number(standing.held)),
    Shown::new(STALE, |standing| {
        standing.stale.as_ref().map_or(0.0, Duration::as_secs_f64)
    }),
];

#[expect(clippy::cast_precision_loss, reason = "a gauge is for people")]
fn number(number: u64) -> f64 {
    number as f64
}

impl AccountsObserver {
    /// An observer of a rule set's accounts, which it calls by this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            board: Mutex::new(Board::new()),
        }
    }

    /// Sets the counters and gauges to how the accounts stand now; does nothing for rules that keep none.
    ///
    /// # Concurrency
    ///
    /// Waits for other threads that publish. Decisions do not wait for it.
    pub fn publish<R: ?Sized>(&self, rules: &SharedRules<R>) {
        self.publish_books(rules.books());
    }

    /// The same for a limiter.
    ///
    /// # Concurrency
    ///
    /// As [`publish`](Self::publish).
    pub fn publish_limiter(&self, limiter: &SharedLimiter) {
        self.publish_books(limiter.books());
    }

    fn publish_books(&self, books: Option<&Arc<Books>>) {
        let Some(books) = books else { return };
        // A panic of a recorder leaves numbers that were not passed on yet, and will be.
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.publish(books, Books::standing, || {
            describe();
            Panel::register(&COUNTERS, &GAUGES, ("rules", &self.name))
        });
    }
}

/// Tells the recorder what the series mean.
fn describe() {
    describe_counter!(
        REFUSED,
        Unit::Count,
        "Requests that accounts of this node have refused."
    );
    describe_counter!(
        ASKED,
        Unit::Count,
        "Requests that the store had to be asked for, although an account is kept of their keys."
    );
    describe_gauge!(CAPACITY, Unit::Count, "Accounts that there is room for.");
    describe_gauge!(IN_USE, Unit::Count, "Accounts that are some key's.");
    describe_gauge!(
        UNCHARGED,
        Unit::Count,
        "Permits that were admitted on this node, and that the store has not said to have charged."
    );
    describe_gauge!(
        HELD,
        Unit::Count,
        "Permits that this node holds or has as a budget, what is uncharged included."
    );
    describe_gauge!(
        STALE,
        Unit::Seconds,
        "How long ago the account was heard of that nobody has heard of for the longest time; 0 while none holds or owes \
         anything."
    );
}

impl fmt::Debug for AccountsObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountsObserver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
