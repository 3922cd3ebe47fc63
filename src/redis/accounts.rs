use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;

use super::store::Part;
use super::store_error::StoreError;

/// What a [`Store`](super::Store) does for nodes that decide by themselves ([`Mode::Lease`](crate::Mode::Lease) and
/// [`Mode::Sync`](crate::Mode::Sync)), beside deciding.
///
/// A node's *life* is one of its accounts, from its first question to its loss. Of each life the store keeps
/// `{ permits b, sequence, until }`; H is the sum of all b of one name whose *until* is to come and that are
/// [held](Ask::is_hold), S what is charged in the window. An implementation promises, for each question, at one instant
/// of its own time:
///
/// 1. A life that it does not know is [unknown](Told::unknown), unless the question [begins](Ask::begins) it.
/// 2. A sequence that the life has had already changes nothing but *until*, and is answered with the b of then.
/// 3. Otherwise the [charge](Ask::charge) is added to S, whether there is room or not: its uses were made under the
///    hold. Then b becomes max(c', g). c' is min(b, [cap](Ask::cap)) less the charge; g is what the store chooses, no
///    more than is [wanted](Ask::want), nor than the limit leaves beside S and the others' b.
/// 4. *until* is [so long](Ask::keep) after now.
/// 5. [`Store::take`](super::Store::take) of the same name has room for n when S + H + n is no more than the limit.
/// 6. After it may have forgotten something, it grants no hold for as long as a life is [kept](Ask::keep).
///
/// Why that is enough is in the [module's documentation](crate::redis).
pub trait Accounts: fmt::Debug + Send + Sync {
    /// Answers questions, each by itself: one answer or error for each, in their order. After an error it is not known
    /// whether the question was heard; the node asks it again.
    fn settle<'a>(&'a self, asks: &'a [Ask]) -> Answers<'a>;
}

/// What a store answers to many questions.
pub type Answers<'a> = Pin<Box<dyn Future<Output = Vec<Result<Told, StoreError>>> + Send + 'a>>;

/// What a node asks about one account: to charge, and to have more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    pub(super) part: Part,
    pub(super) life: u128,
    pub(super) sequence: u64,
    pub(super) begins: bool,
    pub(super) is_hold: bool,
    pub(super) charge: u64,
    pub(super) cap: u64,
    pub(super) want: u64,
    pub(super) keep: Duration,
}

impl Ask {
    /// The limit that it is about; its [permits](Part::permits) mean nothing here.
    #[must_use]
    pub const fn part(&self) -> &Part {
        &self.part
    }

    /// The life, a number that no other account of any node has.
    #[must_use]
    pub const fn life(&self) -> u128 {
        self.life
    }

    /// The number of the question in its life, from 1 on. Copies of a question have the same.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the life is a new one, as far as the node knows.
    #[must_use]
    pub const fn begins(&self) -> bool {
        self.begins
    }

    /// Whether what is granted is registered, so that nobody else is granted it. What is not is a budget, which only
    /// the node itself keeps to.
    #[must_use]
    pub const fn is_hold(&self) -> bool {
        self.is_hold
    }

    /// The permits that were used, and are to be charged.
    #[must_use]
    pub const fn charge(&self) -> u64 {
        self.charge
    }

    /// The most that the node has uncharged until it is answered, the charge included.
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.cap
    }

    /// The permits that the node would have.
    #[must_use]
    pub const fn want(&self) -> u64 {
        self.want
    }

    /// How long the life is kept after its last question.
    #[must_use]
    pub const fn keep(&self) -> Duration {
        self.keep
    }
}

/// What a store says about one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    granted: Option<u64>,
    beyond: u64,
    after: Option<Duration>,
}

impl Told {
    /// That so many permits are granted.
    #[must_use]
    pub const fn granted(permits: u64) -> Self {
        Self {
            granted: Some(permits),
            beyond: u64::MAX,
            after: None,
        }
    }

    /// That the life is unknown.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            granted: None,
            beyond: 0,
            after: None,
        }
    }

    /// With what the limit leaves beside all that is charged and granted, and after which time it will leave more.
    /// Without it, requests beyond the budget ask the store.
    #[must_use]
    pub const fn leaving(self, beyond: u64, after: Duration) -> Self {
        Self {
            beyond,
            after: Some(after),
            ..self
        }
    }

    /// The permits that are granted; `None`: the life is unknown.
    #[must_use]
    pub const fn permits(&self) -> Option<u64> {
        self.granted
    }

    /// What is left to others.
    #[must_use]
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// After which time there will be more, by the store's clock; `None`: nobody knows.
    #[must_use]
    pub const fn after(&self) -> Option<Duration> {
        self.after
    }
}
