//! The atomics of the crate, and the words of one key as an algorithm accesses them.
//!
//! This is the only file that distinguishes between the processor's atomics, the fallback for targets without 64-bit atomics,
//! and the atomics of the model checker.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Range;

#[cfg(all(not(ringgate_loom), target_has_atomic = "64"))]
pub use core::sync::atomic::AtomicU64;
#[cfg(ringgate_loom)]
pub use loom::sync::atomic::AtomicU64;
#[cfg(all(not(ringgate_loom), not(target_has_atomic = "64")))]
pub use portable_atomic::AtomicU64;

pub use core::sync::atomic::Ordering;

#[cfg(not(ringgate_loom))]
pub(crate) use core::sync::atomic::fence;
#[cfg(ringgate_loom)]
pub(crate) use loom::sync::atomic::fence;

/// The lock of wait queues. Nothing else uses it.
#[cfg(ringgate_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(all(feature = "std", not(ringgate_loom)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// The model checker's counted references, for rules that are replaced while threads use them.
#[cfg(ringgate_loom)]
pub(crate) use loom::sync::Arc;

/// Whether the atomics are those of the model checker. Tables are then minimal, because it tries every interleaving.
pub(crate) const MODELLED: bool = cfg!(ringgate_loom);

/// Allocates `words` zeroed words. `None` if there is not enough memory.
///
/// A large allocation is zeroed by the operating system, page by page, when it is first written.
#[cfg(all(not(ringgate_loom), target_has_atomic = "64"))]
pub(crate) fn zeroed<T: bytemuck::Zeroable>(words: usize) -> Option<Box<[T]>> {
    bytemuck::allocation::try_zeroed_slice_box(words).ok()
}

/// Allocates `words` zeroed words. `None` if there is not enough memory.
#[cfg(any(ringgate_loom, not(target_has_atomic = "64")))]
pub(crate) fn zeroed<T: Default>(words: usize) -> Option<Box<[T]>> {
    let mut memory = alloc::vec::Vec::new();
    memory.try_reserve_exact(words).ok()?;
    memory.extend((0..words).map(|_| T::default()));
    Some(memory.into_boxed_slice())
}

/// A field without a value that aligns its struct to a cache line. A model checker counts accesses and not lines.
#[derive(Debug)]
#[cfg_attr(not(ringgate_loom), repr(align(64)))]
pub(crate) struct CacheLine;

/// A word of a `static`, which is zero at first.
#[cfg(not(ringgate_loom))]
#[derive(Debug)]
pub(crate) struct StaticWord(AtomicU64);

#[cfg(not(ringgate_loom))]
impl StaticWord {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) const fn get(&self) -> &AtomicU64 {
        &self.0
    }
}

/// A word of a `static`, for the model checker, whose words cannot be made by a constant. The first access makes it.
#[cfg(ringgate_loom)]
#[derive(Debug)]
pub(crate) struct StaticWord(std::sync::OnceLock<AtomicU64>);

#[cfg(ringgate_loom)]
impl StaticWord {
    pub(crate) const fn new() -> Self {
        Self(std::sync::OnceLock::new())
    }

    pub(crate) fn get(&self) -> &AtomicU64 {
        self.0.get_or_init(|| AtomicU64::new(0))
    }
}

/// A count that no protocol depends on, so models do not include it.
#[derive(Debug, Default)]
pub(crate) struct Tally(Count);

/// The atomic of a [`Tally`]. Models do not explore counts.
#[cfg(target_has_atomic = "64")]
type Count = core::sync::atomic::AtomicU64;
/// The atomic of a [`Tally`]. Models do not explore counts.
#[cfg(not(target_has_atomic = "64"))]
type Count = portable_atomic::AtomicU64;

impl Tally {
    pub(crate) const fn new() -> Self {
        Self(Count::new(0))
    }

    /// Adds one, and returns the previous count. No two calls return the same count.
    pub(crate) fn next(&self) -> u64 {
        // Relaxed: the read-modify-write makes the counts unique. It publishes nothing.
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Tally {
    pub(crate) fn add_one(&self) {
        // Relaxed: a statistic, which publishes nothing.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, amount: u64) {
        // Relaxed: as in `add_one`.
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds `amount` without a locked instruction. Only one thread at a time may write the count.
    #[inline]
    pub(crate) fn add_alone(&self, amount: u64) {
        // Relaxed, both: as in `add_one`. No other thread writes in between.
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count.wrapping_add(amount), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: as in `add_one`.
        self.0.load(Ordering::Relaxed)
    }
}

/// The state of one key as an algorithm accesses it: words that can be read and compare-exchanged.
///
/// An [`Algorithm`](crate::Algorithm) uses this trait, so the same code runs with atomic instructions over [`Shared`] words,
/// and with plain instructions over [`Exclusive`] words, which no other thread can access.
pub trait Words: Copy {
    /// Reads word `index`.
    ///
    /// # Panics
    ///
    /// When `index` is not below the number of words.
    fn load(self, index: usize, order: Ordering) -> u64;

    /// Replaces word `index` by `new` if it is `current`, with the memory ordering `order`. Never fails spuriously.
    ///
    /// # Errors
    ///
    /// Returns the word's value if it is not `current`. Nothing is written then. This value is read with the ordering `Relaxed`:
    /// it is only a guess for the next exchange, which validates it. A thread that needs what the other one has published loads
    /// the word again.
    ///
    /// # Panics
    ///
    /// When `index` is not below the number of words.
    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64>;

    /// Reads the words of a range in order, and passes each to `visit`.
    ///
    /// The provided method calls [`load`](Self::load) for each word. An implementation may find the place of the words once.
    ///
    /// # Panics
    ///
    /// When the range ends after the last word.
    #[inline]
    fn load_each(self, indices: Range<usize>, order: Ordering, mut visit: impl FnMut(u64)) {
        indices.for_each(|index| visit(self.load(index, order)));
    }

    /// Writes word `index`, whatever its value is. This is for a word that is only a hint, so that no decision depends on it.
    ///
    /// The provided method tries one exchange.
    ///
    /// # Panics
    ///
    /// When `index` is not below the number of words.
    #[inline]
    fn store_hint(self, index: usize, hint: u64) {
        // Relaxed, all: a hint publishes nothing.
        let seen = self.load(index, Ordering::Relaxed);
        let _ = self.exchange(index, seen, hint, Ordering::Relaxed);
    }
}

/// Words that any number of threads may use concurrently.
///
/// # Examples
///
/// ```
/// use ringgate::sync::{AtomicU64, Shared};
/// use ringgate::{Algorithm, Gcra, Nanos, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let policy = Gcra::token_bucket(Quota::per_second(10)?, 2)?;
/// // Zeroed words are a fresh limiter.
/// let words = [AtomicU64::new(0)];
/// assert!(policy.decide(Shared::new(&words), Nanos::ZERO, 2).is_some());
/// assert!(policy.decide(Shared::new(&words), Nanos::ZERO, 1).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a>(&'a [AtomicU64]);

impl<'a> Shared<'a> {
    /// Wraps the words of one key.
    #[must_use]
    #[inline]
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }
}

impl Words for Shared<'_> {
    #[inline]
    fn load(self, index: usize, order: Ordering) -> u64 {
        self.0[index].load(order)
    }

    #[inline]
    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        // Relaxed on failure: the caller is promised no more.
        self.0[index].compare_exchange(current, new, order, Ordering::Relaxed)
    }

    #[inline]
    fn store_hint(self, index: usize, hint: u64) {
        // Relaxed: a hint publishes nothing. Of two concurrent stores, either may win.
        self.0[index].store(hint, Ordering::Relaxed);
    }
}

/// Exchanges a word that no other thread can access now, so a load and a store suffice.
#[inline]
pub(crate) fn exchange_alone(word: &AtomicU64, current: u64, new: u64) -> Result<u64, u64> {
    // Relaxed, both: the thread reads what it has stored itself.
    let seen = word.load(Ordering::Relaxed);
    if seen == current {
        word.store(new, Ordering::Relaxed);
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// Words that only one thread can access, so that an exchange needs no locked instruction.
///
/// # Examples
///
/// ```
/// use ringgate::sync::{AtomicU64, Exclusive};
/// use ringgate::{Algorithm, Gcra, Nanos, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let policy = Gcra::token_bucket(Quota::per_second(10)?, 2)?;
/// let mut words = [AtomicU64::new(0)];
/// assert!(policy.decide(Exclusive::new(&mut words), Nanos::ZERO, 2).is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Exclusive<'a> {
    words: &'a [AtomicU64],
    // Neither `Send` nor `Sync`, because a copy in another thread would lose updates.
    owner: PhantomData<*const ()>,
}

impl<'a> Exclusive<'a> {
    /// Borrows the words of one key for one thread.
    #[must_use]
    #[inline]
    pub fn new(words: &'a mut [AtomicU64]) -> Self {
        Self {
            words,
            owner: PhantomData,
        }
    }
}

impl Words for Exclusive<'_> {
    #[inline]
    fn load(self, index: usize, _order: Ordering) -> u64 {
        // Relaxed: the exclusive borrow orders this load after every earlier use.
        self.words[index].load(Ordering::Relaxed)
    }

    #[inline]
    fn exchange(self, index: usize, current: u64, new: u64, _order: Ordering) -> Result<u64, u64> {
        // The end of the exclusive borrow publishes the word to the next user.
        exchange_alone(&self.words[index], current, new)
    }

    #[inline]
    fn store_hint(self, index: usize, hint: u64) {
        // Relaxed: as in `exchange`.
        self.words[index].store(hint, Ordering::Relaxed);
    }
}
