//! Lines of any bytes in every format that the command-line tool reads: a request or a reason, never a panic.

#![no_main]
#![expect(dead_code, reason = "modules of the tool, of which this needs a part")]

use libfuzzer_sys::fuzz_target;

extern crate alloc;

#[path = "../../cli/src/calendar.rs"]
mod calendar;
#[path = "../../cli/src/csv_line.rs"]
mod csv_line;
#[path = "../../cli/src/failure.rs"]
mod failure;
#[path = "../../cli/src/format.rs"]
mod format;
#[path = "../../cli/src/json_line.rs"]
mod json_line;
#[path = "../../cli/src/lines.rs"]
mod lines;
#[path = "../../cli/src/log_line.rs"]
mod log_line;
#[path = "../../cli/src/moment.rs"]
mod moment;
#[path = "../../cli/src/row.rs"]
mod row;
#[path = "../../cli/src/stamp.rs"]
mod stamp;
#[path = "../../cli/src/syslog_line.rs"]
mod syslog_line;
#[path = "../../cli/src/years.rs"]
mod years;

use format::{InputFormat, Parser, Wants};
use lines::Lines;
use moment::{Moments, TimeFormat};
use row::Row;
use years::Years;

// With the first byte as the format that is given, and as the one of times.
fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else {
        return;
    };
    let formats = [
        InputFormat::Auto,
        InputFormat::Common,
        InputFormat::Json,
        InputFormat::Csv,
        InputFormat::Syslog,
    ];
    let times = [
        TimeFormat::Auto,
        TimeFormat::Clf,
        TimeFormat::Rfc3339,
        TimeFormat::Seconds,
        TimeFormat::Millis,
        TimeFormat::Micros,
        TimeFormat::Nanos,
        TimeFormat::Syslog,
    ];
    let format = formats[usize::from(choice) % formats.len()];
    let time = times[usize::from(choice) / formats.len() % times.len()];
    let fields: &[&str] = match format {
        InputFormat::Syslog => &["program", "client", "path"],
        InputFormat::Json => &["client", "a.b"],
        InputFormat::Csv => &[],
        _ => &["client", "path", "agent", "size"],
    };
    let wants = Wants {
        fields: fields.iter().map(ToString::to_string).collect(),
        time: None,
    };
    // Some of any bytes, and all of them as one time.
    let mut moments = Moments::new(time, Years::new(None, 0), 0);
    let _ = moments.read(text);
    let mut lines = Lines::new(text);
    let start = lines.peek().expect("a slice can be read");
    let Ok((parser, _)) = Parser::of(format, start, &wants) else {
        return;
    };
    let mut row = Row::new(wants.fields.len() + 1);
    while let Some(line) = lines.read().expect("a slice can be read") {
        match parser.read(line, &mut moments, wants.time_place(), &mut row) {
            Ok(()) => {
                for field in 0..wants.fields.len() {
                    let _ = row.get(field).map(row::shown);
                }
            }
            Err(reason) => assert!(!reason.to_string().is_empty()),
        }
    }
});
