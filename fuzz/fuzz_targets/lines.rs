//! Arbitrary lines in every log format of the command-line tool: a request or an error, never a panic.

#![no_main]
#![expect(dead_code, reason = "modules of the tool, of which a part is used")]

use libfuzzer_sys::fuzz_target;

extern crate alloc;

#[path = "../../cli/src/failure.rs"]
mod failure;
#[path = "../../cli/src/input"]
mod input {
    pub(crate) mod detect;
    pub(crate) mod format;
    pub(crate) mod lines;
    pub(crate) mod row;
    pub(crate) mod time {
        pub(crate) mod calendar;
        pub(crate) mod clf_time;
        pub(crate) mod infer_year;
        pub(crate) mod timestamp;
    }
}

use input::detect::{self, FormatArg};
use input::format::WantedFields;
use input::lines::Lines;
use input::row::{self, Row};
use input::time::infer_year::YearInference;
use input::time::timestamp::{TimestampFormat, TimestampParser};

// With the first byte as the format that is given, and as the one of times.
fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else {
        return;
    };
    let formats = [
        FormatArg::Auto,
        FormatArg::Common,
        FormatArg::Json,
        FormatArg::Csv,
        FormatArg::Syslog,
    ];
    let times = [
        TimestampFormat::Auto,
        TimestampFormat::Clf,
        TimestampFormat::Rfc3339,
        TimestampFormat::Seconds,
        TimestampFormat::Millis,
        TimestampFormat::Micros,
        TimestampFormat::Nanos,
        TimestampFormat::Syslog,
    ];
    let format = formats[usize::from(choice) % formats.len()];
    let time = times[usize::from(choice) / formats.len() % times.len()];
    let fields: &[&str] = match format {
        FormatArg::Syslog => &["program", "client", "path"],
        FormatArg::Json => &["client", "a.b"],
        FormatArg::Csv => &[],
        FormatArg::Auto | FormatArg::Common | FormatArg::Combined => &["client", "path", "agent", "size"],
    };
    let wanted = WantedFields {
        fields: fields.iter().map(ToString::to_string).collect(),
        time: None,
    };
    // Some of any bytes, and all of them as one time.
    let mut timestamps = TimestampParser::new(time, YearInference::new(None, 0), 0);
    let _ = timestamps.read(text);
    let mut lines = Lines::new(text);
    let start = lines.peek().expect("a slice can be read");
    let Ok(parser) = detect::open(format, start, &wanted) else {
        return;
    };
    let mut row = Row::new(wanted.fields.len() + 1);
    while let Some(line) = lines.read().expect("a slice can be read") {
        match parser.read(line, &mut timestamps, &mut row) {
            Ok(()) => {
                for field in 0..wanted.fields.len() {
                    let _ = row.get(field).map(row::shown);
                }
            }
            Err(reason) => assert!(!reason.to_string().is_empty()),
        }
    }
});
