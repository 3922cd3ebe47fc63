//! What is shown of something that is looked at from time to time, through the `metrics` facade.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use metrics::{Counter, Gauge, Label, counter, gauge};

/// One series: how it is called, what sets it apart from others of its name, and what it shows of an `S`.
pub(super) struct Shown<S, V> {
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    of: Of<S, V>,
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

    /// Whose it is, and what sets it apart.
    fn labels(&self, (label, name): (&'static str, &Arc<str>)) -> Vec<Label> {
        let mut labels = alloc::vec![Label::new(label, Arc::clone(name))];
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
    /// Registers them; `of`: the label that says whose they are.
    pub(super) fn register(
        counters: &[Shown<S, u64>],
        gauges: &[Shown<S, f64>],
        of: (&'static str, &Arc<str>),
    ) -> Self {
        let counters = counters.iter().map(|shown| {
            let counter = counter!(shown.name, shown.labels(of));
            (counter, shown.of)
        });
        let gauges = gauges.iter().map(|shown| {
            let gauge = gauge!(shown.name, shown.labels(of));
            (gauge, shown.of)
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

/// A panel, and whose figures are on it: one `K` after the other, so that no counter falls.
pub(super) struct Board<S: 'static, K> {
    /// `None`: nothing was published yet.
    panel: Option<Panel<S>>,
    /// Whose counts these are.
    followed: Weak<K>,
    /// Its counts when they were last looked at.
    last: Vec<u64>,
    /// Those of its predecessors.
    past: Vec<u64>,
}

impl<S, K> Board<S, K> {
    pub(super) const fn new() -> Self {
        Self {
            panel: None,
            followed: Weak::new(),
            last: Vec::new(),
            past: Vec::new(),
        }
    }

    /// Shows how this one is now, as `read` says.
    pub(super) fn publish(
        &mut self,
        of: &Arc<K>,
        read: impl Fn(&K) -> S,
        register: impl FnOnce() -> Panel<S>,
    ) {
        let panel = self.panel.get_or_insert_with(register);
        let present = Arc::downgrade(of);
        if !present.ptr_eq(&self.followed) {
            if let Some(before) = self.followed.upgrade() {
                self.last = panel.totals(&read(&before));
            }
            self.past.resize(panel.counters.len(), 0);
            for (past, last) in self.past.iter_mut().zip(&self.last) {
                *past = past.saturating_add(*last);
            }
            self.followed = present;
        }
        let now = read(of);
        self.last = panel.totals(&now);
        let totals = self.past.iter().zip(&self.last);
        panel.set(totals.map(|(past, last)| past.saturating_add(*last)), &now);
    }
}
