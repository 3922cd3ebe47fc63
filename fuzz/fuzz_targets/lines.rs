//! Arbitrary lines in every log format of the command-line tool. Each line is a request or an error, and none panics.

#![no_main]
#![expect(dead_code, reason = "only a part of the tool's modules is used")]

use libfuzzer_sys::fuzz_target;

extern crate alloc;

#[path = "../../cli/src/failure.rs"]
mod failure;
#[path = "../../cli/src/input"]
mod input {
    pub(crate) mod choice;
    pub(crate) mod client;
    pub(crate) mod detect;
    pub(crate) mod format;
    pub(crate) mod lines;
    pub(crate) mod open;
    pub(crate) mod refuse;
    pub(crate) mod row;
    pub(crate) mod time {
        pub(crate) mod calendar;
        pub(crate) mod infer_year;
        pub(crate) mod timestamp;
    }
}

use clap::ValueEnum;

use input::choice::{Choice, FormatArg, Own};
use input::format::WantedFields;
use input::lines::Lines;
use input::open;
use input::row::{self, Row};
use input::time::infer_year::YearInference;
use input::time::timestamp::{TimestampFormat, TimestampParser};

/// Names of fields that only some formats have.
const FIELDS: [&[&str]; 3] = [&[], &["client"], &["client", "path", "agent", "a.b"]];

/// Returns a format that the command line defines, or none.
fn own(which: u8) -> Option<Own> {
    match which % 4 {
        0 => Some(Own::LogFormat(
            "$remote_addr [$time_local] \"$request\" $status".into(),
        )),
        1 => Some(Own::Pattern("^(?<time>\\S+) from (?<client>\\S+)".into())),
        _ => None,
    }
}

// The first three bytes choose the format, the format of timestamps, and the fields.
fuzz_target!(|input: &[u8]| {
    let [format, time, fields, text @ ..] = input else {
        return;
    };
    let (formats, times) = (FormatArg::value_variants(), TimestampFormat::value_variants());
    let choice = Choice {
        format: formats[usize::from(*format) % formats.len()],
        own: own(fields / 3),
    };
    let time = times[usize::from(*time) % times.len()];
    let names = FIELDS[usize::from(*fields) % FIELDS.len()];
    let wanted = WantedFields {
        fields: names.iter().map(ToString::to_string).zip(0..).collect(),
        time_place: names.len(),
        ..WantedFields::default()
    };
    // The whole text is also read as one timestamp.
    let mut timestamps = TimestampParser::new(time, YearInference::new(None, 0), 0);
    let _ = timestamps.read(text);
    let mut lines = Lines::new(text);
    let Ok(opened) = open::open(&choice, lines.start(), &wanted) else {
        return;
    };
    let mut parser = opened.format;
    let mut row = Row::default();
    while let Some(line) = lines.read().expect("a slice can be read") {
        if !line.whole {
            continue;
        }
        row.clear();
        match parser.parse(line.bytes, &mut timestamps, &mut row) {
            Ok(_) => {
                for field in 0..names.len() {
                    let _ = row.get(field).map(row::shown);
                }
            }
            Err(reason) => assert!(!reason.to_string().is_empty()),
        }
    }
    if let Err(reason) = parser.finish() {
        assert!(!reason.to_string().is_empty());
    }
});
