//! The subjects of histories: every algorithm, with any quota.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::algorithm::Reclaim;
use ringgate::{Algorithm, ConfigError, CounterRing, Gcra, Quota, TimestampRing, UnitRing};

use crate::common::{Any, Subject, unit};
use crate::exact::{Counting, Definition, Exact};

#[cfg(feature = "rules")]
const _: () = assert!(
    ringgate::rules::RuleAlgorithm::NAMES.len() == 7,
    "an algorithm was added: add it to the subjects below, and to those of `fuzz/src/setting.rs`"
);

/// Windows that the cells divide evenly or not, and the shortest and the longest.
pub(crate) fn window() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1_000..100_000_u64,
        3 => 1_000_000..10_000_000_000_u64,
        2 => prop::sample::select(vec![
            1_000_u64, 1_001, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000,
        ]),
    ]
}

pub(crate) fn limit() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 1..8_u64, 3 => 8..40_u64, 1 => 40..400_u64]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Strict,
    Classic,
    Even,
}

/// The parameters of a counter ring of one window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) kind: Kind,
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) cells: u64,
    pub(crate) unpacked: bool,
    /// In the form that a table of keys uses.
    pub(crate) in_table: bool,
}

impl Ring {
    pub(crate) fn build(self) -> CounterRing {
        self.try_build()
            .expect("a ring that the strategy has built already")
    }

    fn try_build(self) -> Result<CounterRing, ConfigError> {
        let builder = CounterRing::builder(quota(self.limit, self.window)).cells(self.cells);
        let builder = match self.kind {
            Kind::Strict => builder,
            Kind::Classic => builder.classic(),
            Kind::Even => builder.even(),
        };
        let builder = if self.unpacked {
            builder.unpacked()
        } else {
            builder
        };
        let ring = builder.build()?;
        if self.in_table {
            ring.for_table(self.limit)
        } else {
            Ok(ring)
        }
    }

    pub(crate) fn width(self) -> u64 {
        self.window.div_ceil(self.cells)
    }

    /// The definition, with cells of this width that begin at whole ticks.
    fn definition(self, width: u64, tick: u64) -> Definition {
        let counting = Counting::Cells {
            cells: self.cells,
            summed: self.cells + u64::from(self.kind == Kind::Strict),
            width,
            tick,
            shares: self.kind == Kind::Even,
        };
        Definition {
            limit: self.limit,
            counting,
        }
    }

    pub(crate) fn exact(self) -> Exact {
        let definition = self.definition(self.width(), self.width());
        Exact::new(vec![definition], self.build().words() > 1)
    }

    /// The log of the window and the log of one cell more.
    fn logs(self, width: u64) -> Logs {
        Logs {
            window: self.window,
            wider: (self.cells + 1) * width,
            limit: self.limit,
            is_strict: self.kind == Kind::Strict,
        }
    }
}

/// Two logs of one window, between which the decisions lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logs {
    pub(crate) window: u64,
    pub(crate) wider: u64,
    pub(crate) limit: u64,
    /// Whether the ring admits no more than the log of the window.
    pub(crate) is_strict: bool,
}

/// A limiter with the logs of each of its windows. Cells with shares and buckets have none.
pub(crate) fn between() -> impl Strategy<Value = (Subject, Vec<Logs>)> {
    prop_oneof![
        3 => ring().prop_filter("no shares", |ring| ring.kind != Kind::Even).prop_map(|ring| {
            (Subject::new(format!("{ring:?}"), ring.build()), vec![ring.logs(ring.width())])
        }),
        2 => several().prop_map(|several| {
            let each = several.rings().into_iter().zip(several.widths());
            (several.subject(), each.map(|(ring, width)| ring.logs(width)).collect())
        }),
        1 => log().prop_map(|(ring, name)| {
            let (limit, window) = (ring.bound(), nanos(ring.window()));
            let wider = window + 2 * unit(limit);
            (Subject::new(name, ring), vec![Logs { window, wider, limit, is_strict: true }])
        }),
    ]
}

/// Every algorithm in every representation, with its definition, which leaves open where the cells of further windows begin.
pub(crate) fn defined() -> impl Strategy<Value = (Subject, Exact)> {
    prop_oneof![
        4 => ring().prop_map(|ring| (Subject::new(format!("{ring:?}"), ring.build()), ring.exact())),
        3 => (log(), any::<bool>()).prop_map(|((ring, name), of_limiter)| {
            let exact = Exact::new(vec![Definition::log(ring.bound(), nanos(ring.window()))], false);
            let ring = if of_limiter { ring.for_limiter() } else { ring };
            (Subject::new(format!("{name}, {of_limiter}"), ring), exact)
        }),
        3 => bucket().prop_map(|gcra| {
            let exact = exact_bucket(&gcra);
            (Subject::new(format!("{gcra:?}"), gcra), exact)
        }),
    ]
}

pub(crate) fn exact_bucket(gcra: &Gcra) -> Exact {
    let limit = gcra.bound() + 1 - gcra.max_request();
    Exact::new(
        vec![Definition::bucket(
            limit,
            nanos(gcra.window()),
            gcra.max_request(),
        )],
        false,
    )
}

pub(crate) fn exact_units(ring: &UnitRing, limit: u64, window: u64) -> Exact {
    let (cells, unit) = (ring.cells(), ring.unit());
    let counting = Counting::Units {
        cells,
        unit,
        width: window.div_ceil(cells),
    };
    Exact::new(vec![Definition { limit, counting }], false)
}

/// The width of a cell, and a fifth of the window of an algorithm without cells.
pub(crate) fn cell_of(it: &Any) -> u64 {
    match it {
        Any::Counter(ring) => nanos(ring.cell()),
        it => nanos(it.window()).div_ceil(5),
    }
}

pub(crate) fn ring() -> impl Strategy<Value = Ring> {
    let kind = prop::sample::select(vec![Kind::Strict, Kind::Classic, Kind::Even]);
    (kind, limit(), window(), 1..13_u64, any::<bool>(), any::<bool>())
        .prop_map(|(kind, limit, window, cells, unpacked, in_table)| Ring {
            kind,
            limit,
            window,
            cells,
            unpacked,
            in_table,
        })
        .prop_filter("too large a limit for such cells", |ring| {
            ring.try_build().is_ok()
        })
}

/// A ring of several windows over one state, in any order.
#[derive(Clone, Debug)]
pub(crate) struct Several {
    pub(crate) quotas: Vec<Quota>,
    pub(crate) cells: u64,
    pub(crate) classic: bool,
}

impl Several {
    pub(crate) fn build(&self) -> CounterRing {
        self.try_build()
            .expect("a ring that the strategy has built already")
    }

    fn try_build(&self) -> Result<CounterRing, ConfigError> {
        let mut builder = CounterRing::builder(self.quotas[0]).cells(self.cells);
        if self.classic {
            builder = builder.classic();
        }
        for &quota in &self.quotas[1..] {
            builder = builder.also(quota);
        }
        builder.build()
    }

    pub(crate) fn exact(&self) -> Exact {
        let ring = self.build();
        let each = self.rings().into_iter().zip(self.widths());
        let definition = each.map(|(one, width)| one.definition(width, nanos(ring.cell())));
        Exact::new(definition.collect(), ring.words() > 1)
    }

    /// A ring of one window for each window.
    pub(crate) fn rings(&self) -> Vec<Ring> {
        let kind = if self.classic { Kind::Classic } else { Kind::Strict };
        let ring = |quota: &Quota| Ring {
            kind,
            limit: quota.limit(),
            window: nanos(quota.window()),
            cells: self.cells,
            unpacked: false,
            in_table: false,
        };
        self.quotas.iter().map(ring).collect()
    }

    /// The ring, with the bound of each window.
    pub(crate) fn subject(&self) -> Subject {
        let mut subject = Subject::new(format!("{self:?}"), self.build());
        let loose = if self.classic { 2 } else { 1 };
        for quota in &self.quotas[1..] {
            subject = subject.and(quota.window(), loose * quota.limit());
        }
        subject
    }

    /// The cell width of each window, a multiple of the tick, which may be a part of the narrowest cell.
    pub(crate) fn widths(&self) -> Vec<u64> {
        let tick = nanos(self.build().cell());
        self.quotas
            .iter()
            .map(|quota| nanos(quota.window()).div_ceil(self.cells).next_multiple_of(tick))
            .collect()
    }
}

pub(crate) fn several() -> impl Strategy<Value = Several> {
    let more = prop::collection::vec((1..30_u64, limit()), 1..3);
    let cells = 1..9_u64;
    (window(), limit(), more, cells, any::<bool>(), any::<bool>())
        .prop_map(|(window, limit, more, cells, classic, turned)| {
            let mut quotas = vec![quota(limit, window)];
            for (factor, more) in more {
                quotas.push(quota(limit + more, window * factor + factor / 3));
            }
            if turned {
                // The window with the narrowest cells need not be the first.
                quotas.reverse();
            }
            Several {
                quotas,
                cells,
                classic,
            }
        })
        .prop_filter("too large a limit for such cells", |several| {
            several.try_build().is_ok()
        })
}

pub(crate) fn quota(limit: u64, window: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(window)).expect("a quota within the ranges")
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("less than 584 years")
}

/// Every algorithm and variant.
pub(crate) fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![9 => exact(), 2 => units()]
}

/// Every algorithm and variant, and the form of a timestamp ring for one limiter, whose words no table reuses.
pub(crate) fn limiter_subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        8 => subject(),
        1 => log().prop_map(|(ring, name)| Subject::new(format!("{name}, of a limiter"), ring.for_limiter())),
    ]
}

fn log() -> impl Strategy<Value = (TimestampRing, String)> {
    (limit(), 10_000..10_000_000_000_u64).prop_map(|(limit, window)| {
        let ring = TimestampRing::new(quota(limit, window)).expect("ten units of 100 ns");
        (ring, format!("timestamp ring, {limit} in {window}ns"))
    })
}

/// A ring that counts in units, which may be more than one permit.
fn units() -> impl Strategy<Value = Subject> {
    (limit(), window()).prop_map(|(limit, window)| {
        let ring = UnitRing::new(quota(limit, window)).expect("a small limit");
        Subject::new(format!("{ring}, {limit} in {window}ns"), ring)
    })
}

/// The algorithms whose state counts every permit by itself.
pub(crate) fn exact() -> impl Strategy<Value = Subject> {
    prop_oneof![
        3 => ring().prop_map(|ring| Subject::new(format!("{ring:?}"), ring.build())),
        1 => (limit(), window()).prop_map(|(limit, window)| {
            let ring = CounterRing::fixed_window(quota(limit, window)).expect("a small limit");
            Subject::new(format!("fixed window, {limit} in {window}ns"), ring)
        }),
        2 => several().prop_map(|several| several.subject()),
        2 => log().prop_map(|(ring, name)| Subject::new(name, ring)),
        2 => bucket().prop_map(|gcra| Subject::new(format!("{gcra:?}"), gcra)),
    ]
}

pub(crate) fn bucket() -> impl Strategy<Value = Gcra> {
    let burst = prop_oneof![
        2 => Just(None),
        1 => Just(Some(1)),
        3 => (1..100_u64).prop_map(Some),
    ];
    (limit(), window(), burst)
        .prop_filter_map("more than one permit per nanosecond", |(limit, window, burst)| {
            Gcra::token_bucket(quota(limit, window), burst.unwrap_or(limit)).ok()
        })
}
