//! The limiters whose long histories are compared.

use ringgate::algorithm::Reclaim;
use ringgate::{Gcra, TimestampRing, UnitRing};

use crate::common::Subject;
use crate::exact::{Definition, Exact};
use crate::subjects::{Kind, Ring, Several, exact_bucket, exact_units, nanos, quota};

/// A limiter under test.
pub(crate) struct Case {
    pub(crate) subject: Subject,
    /// The definition of a fresh state.
    pub(crate) exact: Exact,
    pub(crate) limit: u64,
    pub(crate) cell: u64,
    /// An admission by a limit leaves at most this limit in every interval of this length that ends with the admission. For a
    /// bucket, which counts time and not permits, it is zero.
    pub(crate) certain: u64,
}

pub(crate) const WINDOW: u64 = 1_000_003;

fn ring(kind: Kind, limit: u64, cells: u64, unpacked: bool) -> Case {
    let ring = Ring {
        kind,
        limit,
        window: WINDOW,
        cells,
        unpacked,
        in_table: unpacked && limit % 2 == 1,
    };
    let it = ring.build();
    let certain = nanos(it.span()) - ring.width();
    Case {
        exact: ring.exact(),
        subject: Subject::new(format!("{ring:?}"), it),
        limit,
        cell: ring.width(),
        certain,
    }
}

fn several(cells: u64, classic: bool) -> Case {
    let quotas = vec![quota(7, WINDOW), quota(20, 5 * WINDOW)];
    let several = Several {
        quotas,
        cells,
        classic,
    };
    let it = several.build();
    Case {
        exact: several.exact(),
        cell: nanos(it.cell()),
        subject: several.subject(),
        limit: 7,
        certain: 0,
    }
}

fn timestamps(limit: u64) -> Case {
    let it = TimestampRing::new(quota(limit, WINDOW)).expect("a log");
    Case {
        exact: Exact::new(vec![Definition::log(limit, WINDOW)], false),
        subject: Subject::new(format!("timestamps, {limit}"), it),
        limit,
        cell: WINDOW.div_ceil(limit),
        certain: WINDOW,
    }
}

fn units(limit: u64) -> Case {
    let it = UnitRing::new(quota(limit, WINDOW)).expect("a ring");
    Case {
        exact: exact_units(&it, limit, WINDOW),
        cell: WINDOW.div_ceil(it.cells()),
        subject: Subject::new(format!("units, {limit}"), it),
        limit,
        certain: 0,
    }
}

fn bucket(limit: u64, burst: u64) -> Case {
    let it = Gcra::token_bucket(quota(limit, WINDOW), burst).expect("a bucket");
    Case {
        exact: exact_bucket(&it),
        subject: Subject::new(format!("bucket, {limit}, burst {burst}"), it),
        limit,
        cell: WINDOW.div_ceil(limit),
        certain: 0,
    }
}

/// Every algorithm in every representation. Small words wrap around often, and large ones rarely.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        ring(Kind::Strict, 7, 3, false),
        ring(Kind::Strict, 3, 6, false),
        ring(Kind::Classic, 20, 4, false),
        ring(Kind::Even, 10, 4, false),
        ring(Kind::Classic, 10, 1, false),
        ring(Kind::Strict, 30, 13, true),
        ring(Kind::Classic, 9, 5, true),
        ring(Kind::Even, 11, 5, true),
        several(3, false),
        several(9, true),
        units(10),
        timestamps(2),
        timestamps(9),
        bucket(10, 10),
        bucket(7, 3),
        bucket(3, 11),
    ]
}
