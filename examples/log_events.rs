//! Limits events of `tracing` by a limiter in a `static`. The number of suppressed events is a field of the next event.
//!
//! ```text
//! cargo run --release --features observe --example log_events
//! ```
//!
//! A service has a subscriber of its own. The one here prints the fields of each event, so that the example needs no other crate.

use core::fmt;
use core::time::Duration;
use std::thread;

use ringgate::LogLimiter;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// At most one event in any 100 ms or so: ten per second, without a burst.
static DENIALS: LogLimiter = LogLimiter::per_second(10).burst(1);

fn on_denial(user: u32) {
    if let Some(suppressed) = DENIALS.check() {
        tracing::warn!(user, suppressed, "denied");
    }
}

fn main() -> Result<(), tracing::subscriber::SetGlobalDefaultError> {
    tracing::subscriber::set_global_default(Print)?;
    for user in 0..300 {
        on_denial(user);
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Prints the fields of each event on one line.
struct Print;

impl Subscriber for Print {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        println!("{}", line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}
