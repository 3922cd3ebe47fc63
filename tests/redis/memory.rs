//! A store in memory, for tests that have to know every await point. No permit ever leaves its window.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ringgate::redis::{Accounts, Answer, Answers, Ask, Found, Part, Store, Told, Verdict};

/// A store whose calls return to the scheduler before and after they take effect.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    limits: Mutex<HashMap<(u128, String, usize), Limit>>,
    calls: AtomicU64,
}

#[derive(Debug, Default)]
struct Limit {
    charged: u64,
    leases: HashMap<u128, Lease>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lease {
    held: u64,
    granted: u64,
    sequence: u64,
}

impl Limit {
    fn held(&self) -> u64 {
        self.leases.values().map(|lease| lease.held).sum()
    }

    fn left(&self, part: &Part) -> u64 {
        part.limit()
            .saturating_sub(self.charged + self.held() + part.reserve())
    }
}

impl Memory {
    /// The permits that are charged to all keys.
    pub(crate) fn charged(&self) -> u64 {
        self.with(|limits| limits.values().map(|limit| limit.charged).sum())
    }

    /// The permits that are held of all keys.
    pub(crate) fn held(&self) -> u64 {
        self.with(|limits| limits.values().map(Limit::held).sum())
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<(u128, String, usize), Limit>) -> T) -> T {
        act(&mut self.limits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn pause() {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }

    fn name(part: &Part) -> (u128, String, usize) {
        (part.tag(), part.rule().to_owned(), part.number())
    }

    fn judge(&self, parts: &[Part], takes: bool) -> Verdict {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.with(|limits| {
            let found = |limits: &mut HashMap<_, Limit>, part: &Part| {
                let left = limits.entry(Self::name(part)).or_default().left(part);
                match left >= part.permits() {
                    true => Found::with_room(left - part.permits()),
                    false => Found::without_room(left, None),
                }
            };
            let found: Vec<Found> = parts.iter().map(|part| found(limits, part)).collect();
            if !found.iter().all(Found::has_room) {
                return Verdict::refused(0, found);
            }
            if takes {
                for part in parts {
                    limits.entry(Self::name(part)).or_default().charged += part.permits();
                }
            }
            Verdict::new(0, found)
        })
    }

    fn answer(&self, ask: &Ask) -> Told {
        self.with(|limits| {
            let part = ask.part();
            let limit = limits.entry(Self::name(part)).or_default();
            let known = limit.leases.get(&ask.life()).copied();
            if known.is_none() && !ask.begins() {
                return Told::unknown();
            }
            let mut own = known.unwrap_or_default();
            limit.leases.remove(&ask.life());
            if ask.sequence() > own.sequence {
                limit.charged += ask.charge();
                let covered = own.granted.min(ask.cap()).saturating_sub(ask.charge());
                let left = part.limit().saturating_sub(limit.charged + limit.held());
                own.granted = covered.max(ask.want().min(left));
                own.held = if ask.is_hold() { own.granted } else { 0 };
                own.sequence = ask.sequence();
            }
            limit.leases.insert(ask.life(), own);
            let left = part
                .limit()
                .saturating_sub(limit.charged + limit.held() + own.granted - own.held);
            Told::granted(own.granted).leaving(left, part.window())
        })
    }
}

impl Store for Memory {
    fn take<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict> {
        Box::pin(async move {
            Self::pause().await;
            let verdict = self.judge(parts, true);
            Self::pause().await;
            Ok(verdict)
        })
    }

    fn peek<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict> {
        Box::pin(async move {
            Self::pause().await;
            Ok(self.judge(parts, false))
        })
    }

    fn give_back<'a>(&'a self, parts: &'a [Part], _: &'a Verdict) -> Answer<'a, u64> {
        Box::pin(async move {
            Self::pause().await;
            self.with(|limits| {
                for part in parts {
                    limits.entry(Self::name(part)).or_default().charged -= part.permits();
                }
            });
            Self::pause().await;
            Ok(0)
        })
    }

    fn reset<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, ()> {
        Box::pin(async move {
            Self::pause().await;
            self.with(|limits| {
                for part in parts {
                    limits.entry(Self::name(part)).or_default().charged = 0;
                }
            });
            Self::pause().await;
            Ok(())
        })
    }

    fn accounts(&self) -> Option<&dyn Accounts> {
        Some(self)
    }
}

impl Accounts for Memory {
    fn settle<'a>(&'a self, asks: &'a [Ask]) -> Answers<'a> {
        Box::pin(async move {
            Self::pause().await;
            let told = asks.iter().map(|ask| Ok(self.answer(ask))).collect();
            Self::pause().await;
            told
        })
    }
}
