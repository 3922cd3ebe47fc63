use core::fmt;
use core::sync::atomic::AtomicUsize;

use super::*;
use metrics::{Counter, CounterFn, Gauge, Histogram, KeyName, Metadata, Recorder, SharedString};
use metrics_util::MetricKind;
use tracing::field::{Field, Visit};

/// A recorder, and the observer that publishes to it.
pub(crate) struct Scraped {
    pub(crate) recorder: DebuggingRecorder,
    observer: Observer,
}

/// The values of all series, by counter, rule and outcome.
pub(crate) type Values = BTreeMap<(String, String, String), u64>;

pub(crate) type Gauges = BTreeMap<(String, String), f64>;

impl Scraped {
    pub(crate) fn new() -> Self {
        Self {
            recorder: DebuggingRecorder::new(),
            observer: Observer::new(),
        }
    }

    pub(crate) fn scrape(&self, rules: &RuleSet<Request, ManualClock>) -> Values {
        metrics::with_local_recorder(&self.recorder, || self.observer.publish(rules));
        self.values()
    }

    #[cfg(unix)]
    pub(crate) fn scrape_counts(&self, counts: ringgate::rules::LiveCounts<'_>) -> Values {
        metrics::with_local_recorder(&self.recorder, || self.observer.publish_counts(counts));
        self.values()
    }

    /// The values of all gauges, by gauge and rule. The recorder forgets a gauge's value when it is read.
    pub(crate) fn gauges(&self, rules: &RuleSet<Request, ManualClock>) -> Gauges {
        self.gauges_of(rules.live_counts())
    }

    /// The values of all gauges, as [`gauges`](Self::gauges) returns them.
    pub(crate) fn gauges_of(&self, counts: ringgate::rules::LiveCounts<'_>) -> Gauges {
        metrics::with_local_recorder(&self.recorder, || self.observer.publish_counts(counts));
        let snapshot = self.recorder.snapshotter().snapshot().into_vec();
        let gauges = snapshot.into_iter().filter_map(|(key, unit, help, value)| {
            let DebugValue::Gauge(value) = value else {
                return None;
            };
            assert!(unit == Some(Unit::Count) && help.is_some(), "{key:?}");
            let labels: Vec<_> = key.key().labels().collect();
            assert_eq!((labels.len(), labels[0].key()), (1, "rule"), "{key:?}");
            let rule = labels[0].value().to_owned();
            Some(((key.key().name().to_owned(), rule), value.into_inner()))
        });
        gauges.collect()
    }

    pub(crate) fn values(&self) -> Values {
        let snapshot = self.recorder.snapshotter().snapshot().into_vec();
        let series = snapshot.into_iter().filter_map(|(key, _, _, value)| {
            // Gauges have tests of their own.
            if key.kind() == MetricKind::Gauge {
                return None;
            }
            let labels: BTreeMap<_, _> = key
                .key()
                .labels()
                .map(|label| (label.key(), label.value()))
                .collect();
            assert_eq!(labels.keys().copied().collect::<Vec<_>>(), ["outcome", "rule"]);
            let DebugValue::Counter(value) = value else {
                panic!("{key:?} is no counter");
            };
            let name = key.key().name().to_owned();
            let labels = (name, labels["rule"].to_owned(), labels["outcome"].to_owned());
            Some((labels, value))
        });
        series.collect()
    }
}

pub(crate) fn value(values: &Values, rule: &str, outcome: &str) -> u64 {
    let counter = match outcome {
        "charged" | "forfeited" | "refunded" => "ringgate_permits_total",
        "begun" => "ringgate_blocks_total",
        _ => "ringgate_decisions_total",
    };
    values[&(counter.to_owned(), rule.to_owned(), outcome.to_owned())]
}

pub(crate) fn of_counts(rules: &RuleSet<Request, ManualClock>) -> Values {
    let series = rules.counts().flat_map(|(rule, counts)| {
        [
            ("ringgate_decisions_total", "admitted", counts.admitted),
            ("ringgate_decisions_total", "denied", counts.denied),
            ("ringgate_decisions_total", "shadow_denied", counts.shadow_denied),
            ("ringgate_decisions_total", "overflowed", counts.overflowed),
            ("ringgate_permits_total", "charged", counts.charged),
            ("ringgate_permits_total", "forfeited", counts.forfeited),
            ("ringgate_permits_total", "refunded", counts.refunded),
            ("ringgate_blocks_total", "begun", counts.blocks),
        ]
        .map(|(counter, outcome, value)| ((counter.to_owned(), rule.to_owned(), outcome.to_owned()), value))
    });
    series.collect()
}

/// Records registrations and descriptions, and panics when a counter falls.
#[derive(Default)]
pub(crate) struct CheckedRecorder {
    /// The counters by the values of their labels.
    pub(crate) counters: Mutex<Vec<(Vec<String>, Arc<RisingCounter>)>>,
    pub(crate) described: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct RisingCounter(AtomicU64);

impl CounterFn for RisingCounter {
    fn increment(&self, _: u64) {
        panic!("counters are set, not incremented");
    }

    fn absolute(&self, value: u64) {
        // Relaxed: publishers hold a lock, so they are ordered.
        let before = self.0.swap(value, Ordering::Relaxed);
        assert!(before <= value, "from {before} down to {value}");
    }
}

impl CheckedRecorder {
    pub(crate) fn value(&self, rule: &str, outcome: &str) -> u64 {
        let counters = self.counters.lock().expect("counters");
        let mut of = counters.iter().filter(|(labels, _)| *labels == [rule, outcome]);
        of.next()
            .map_or(0, |(_, rising)| rising.0.load(Ordering::Relaxed))
    }
}

impl Recorder for CheckedRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        self.described.fetch_add(1, Ordering::Relaxed);
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &metrics::Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| label.value().to_owned()).collect();
        let counter = Arc::new(RisingCounter::default());
        let mut counters = self.counters.lock().expect("counters");
        counters.push((labels, Arc::clone(&counter)));
        Counter::from_arc(counter)
    }

    fn register_gauge(&self, _: &metrics::Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &metrics::Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The fields of an event, as text.
pub(crate) type Fields = BTreeMap<&'static str, String>;

/// A subscriber that records the events of the crate at this level and above.
#[derive(Clone)]
pub(crate) struct EventRecorder {
    level: LevelFilter,
    events: Arc<Mutex<Vec<(Level, Fields)>>>,
}

impl EventRecorder {
    pub(crate) fn new(level: LevelFilter) -> Self {
        let events = Arc::default();
        Self { level, events }
    }

    /// Records the events that `work` emits in this thread.
    pub(crate) fn record(&self, work: impl FnOnce()) {
        tracing::subscriber::with_default(self.clone(), work);
    }

    /// The recorded events, which are forgotten.
    pub(crate) fn take(&self) -> Vec<Fields> {
        let events = core::mem::take(&mut *self.events.lock().expect("no panic"));
        events.into_iter().map(|(_, fields)| fields).collect()
    }

    /// Returns the events that `work` emits in this thread.
    pub(crate) fn during(&self, work: impl FnOnce()) -> Vec<Fields> {
        self.record(work);
        self.take()
    }

    #[cfg(unix)]
    pub(crate) fn events(&self) -> Vec<(Level, Fields)> {
        self.events.lock().expect("no panic").clone()
    }
}

impl Subscriber for EventRecorder {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "ringgate" && *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Reader(Fields::new());
        event.record(&mut fields);
        let event = (*event.metadata().level(), fields.0);
        self.events.lock().expect("no panic").push(event);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Reader(Fields);

impl Visit for Reader {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value.to_string());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
