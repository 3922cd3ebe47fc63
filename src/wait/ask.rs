use core::time::Duration;

use smallvec::SmallVec;

use super::room::Room;
use super::runtime::Runtime;
use crate::time::Nanos;

/// What somebody waits for: what the methods of [`Fair`](super::Fair) return is made of it. Sealed.
pub trait Ask: Case {}

impl<A: Case> Ask for A {}

/// One request to one limiter.
#[expect(unnameable_types, reason = "sealed: nobody else is to have one")]
pub trait Case {
    /// What an admission gives.
    type Taken;
    type Runtime: Runtime;

    fn room(&self) -> &Room<Self::Runtime>;

    fn now(&self) -> Nanos;

    /// The states that decide about it, each by a number of its own, and the permits that it needs of them (some: of
    /// those that it needs nothing of, it waits for none).
    fn claims(&self) -> Claims;

    /// Takes what it needs, if there is room; looks at no line.
    fn take(&self) -> Option<Self::Taken>;

    /// How long until the state would admit one request for so many permits if nobody else asked; `None`: never.
    fn ready_in(&self, state: u64, permits: u64) -> Option<Duration>;

    /// How long it takes at the least until the state has admitted this one's `permits`, and those of others before.
    fn earliest_in(&self, state: u64, before: u64, permits: u64) -> Option<Duration>;
}

/// What a request needs of one state.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "sealed: nobody else is to have one")]
pub struct Claim {
    pub(super) state: u64,
    pub(super) permits: u64,
}

pub(super) type Claims = SmallVec<[Claim; 4]>;
