//! Counters and gauges that are published from time to time through the `metrics` facade.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use metrics::{Counter, Gauge, Label, counter, gauge};

/// One series: its name, a label of its own, and how its value is read from an `S`.
pub(crate) struct Metric<S, V> {
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    of: Of<S, V>,
}

/// A function that reads a metric's value from its source.
type Of<S, V> = fn(&S) -> V;

impl<S, V> Metric<S, V> {
    pub(crate) const fn new(name: &'static str, of: Of<S, V>) -> Self {
        Self {
            name,
            label: None,
            of,
        }
    }

    pub(crate) const fn with(self, label: &'static str, value: &'static str) -> Self {
        Self {
            label: Some((label, value)),
            ..self
        }
    }

    /// The label of the observer, and the label of the series.
    fn labels(&self, (label, name): (&'static str, &Arc<str>)) -> Vec<Label> {
        let mut labels = alloc::vec![Label::new(label, Arc::clone(name))];
        labels.extend(self.label.map(|(label, value)| Label::new(label, value)));
        labels
    }
}

/// Series that are registered with a recorder.
pub(crate) struct MetricSet<S: 'static> {
    counters: Vec<(Counter, Of<S, u64>)>,
    gauges: Vec<(Gauge, Of<S, f64>)>,
}

impl<S> MetricSet<S> {
    /// Registers the series. `of` is the label of the observer.
    pub(crate) fn register(
        counters: &[Metric<S, u64>],
        gauges: &[Metric<S, f64>],
        of: (&'static str, &Arc<str>),
    ) -> Self {
        let counters = counters.iter().map(|metric| {
            let counter = counter!(metric.name, metric.labels(of));
            (counter, metric.of)
        });
        let gauges = gauges.iter().map(|metric| {
            let gauge = gauge!(metric.name, metric.labels(of));
            (gauge, metric.of)
        });
        Self {
            counters: counters.collect(),
            gauges: gauges.collect(),
        }
    }

    /// The totals, in the order of the counters.
    fn totals(&self, of: &S) -> Vec<u64> {
        self.counters.iter().map(|(_, total)| total(of)).collect()
    }

    fn set(&self, totals: impl Iterator<Item = u64>, of: &S) {
        for ((counter, _), total) in self.counters.iter().zip(totals) {
            counter.absolute(total);
        }
        for (gauge, value) in &self.gauges {
            gauge.set(value(of));
        }
    }
}

/// Publishes the metrics of one source `K`, and then of the source that replaces it, so that no counter decreases.
pub(crate) struct Publisher<S: 'static, K> {
    /// `None`: nothing was published yet.
    metrics: Option<MetricSet<S>>,
    /// The present source.
    present: Weak<K>,
    /// The counts of the present source at the last call.
    last: Vec<u64>,
    /// The sum of the counts of all earlier sources.
    past: Vec<u64>,
}

impl<S, K> Publisher<S, K> {
    pub(crate) const fn new() -> Self {
        Self {
            metrics: None,
            present: Weak::new(),
            last: Vec::new(),
            past: Vec::new(),
        }
    }

    /// Publishes the values that `read` reads now.
    pub(crate) fn publish(
        &mut self,
        of: &Arc<K>,
        read: impl Fn(&K) -> S,
        register: impl FnOnce() -> MetricSet<S>,
    ) {
        let metrics = self.metrics.get_or_insert_with(register);
        let next = Arc::downgrade(of);
        if !next.ptr_eq(&self.present) {
            if let Some(before) = self.present.upgrade() {
                self.last = metrics.totals(&read(&before));
            }
            self.past.resize(metrics.counters.len(), 0);
            for (past, last) in self.past.iter_mut().zip(&self.last) {
                *past = past.saturating_add(*last);
            }
            self.present = next;
        }
        let now = read(of);
        self.last = metrics.totals(&now);
        let totals = self.past.iter().zip(&self.last);
        metrics.set(totals.map(|(past, last)| past.saturating_add(*last)), &now);
    }
}
