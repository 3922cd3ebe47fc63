//! What is shown of something that is looked at from time to time, through the `metrics` facade.

use alloc::sync::Arc;
use alloc::vec::Vec;

use metrics::{Counter, Gauge, Label, counter, gauge};

/// One series: how it is called, what sets it apart from others of its name, and what it shows of an `S`.
pub(super) struct Shown<S, V> {
    pub(super) name: &'static str,
    pub(super) label: Option<(&'static str, &'static str)>,
    pub(super) of: Of<S, V>,
}

type Of<S, V> = fn(&S) -> V;

impl<S, V> Shown<S, V> {
    pub(super) const fn new(name: &'static str, of: Of<S, V>) -> Self {
        Self {
            name,
            label: None,
            of,
        }
    }

    pub(super) const fn with(self, label: &'static str, value: &'static str) -> Self {
        Self {
            label: Some((label, value)),
            ..self
        }
    }

    fn labels(&self, store: &Arc<str>) -> Vec<Label> {
        let mut labels = alloc::vec![Label::new("store", Arc::clone(store))];
        labels.extend(self.label.map(|(label, value)| Label::new(label, value)));
        labels
    }
}

/// Series as a recorder knows them.
pub(super) struct Panel<S: 'static> {
    counters: Vec<(Counter, Of<S, u64>)>,
    gauges: Vec<(Gauge, Of<S, f64>)>,
}

impl<S> Panel<S> {
    pub(super) fn register(counters: &[Shown<S, u64>], gauges: &[Shown<S, f64>], store: &Arc<str>) -> Self {
        let counters = counters.iter().map(|shown| {
            let counter = counter!(shown.name, shown.labels(store));
            (counter, shown.of)
        });
        let gauges = gauges.iter().map(|shown| {
            let gauge = gauge!(shown.name, shown.labels(store));
            (gauge, shown.of)
        });
        Self {
            counters: counters.collect(),
            gauges: gauges.collect(),
        }
    }

    /// The totals, in the order of the counters.
    pub(super) fn totals(&self, of: &S) -> Vec<u64> {
        self.counters.iter().map(|(_, total)| total(of)).collect()
    }

    pub(super) fn set(&self, totals: impl Iterator<Item = u64>, of: &S) {
        for ((counter, _), total) in self.counters.iter().zip(totals) {
            counter.absolute(total);
        }
        for (gauge, value) in &self.gauges {
            gauge.set(value(of));
        }
    }
}
