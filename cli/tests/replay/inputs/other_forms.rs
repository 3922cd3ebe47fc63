//! Holes in files, sockets as clients, and times in other forms: each request is counted.

use crate::cases_lines::{ODD, keys};
use crate::compressed::gzip;
use crate::log::clock;
use crate::tool::{assert_fields, json, on_pipe, texts, tool};

/// Writes a line with a time, the forms of a time with bars between them, and the seconds by which it is later without a zone.
type Forms<'a> = (&'a dyn Fn(&str) -> String, &'a str, i64);

#[test]
fn holes_of_zeros_are_left_out() {
    let hole = |size: usize| vec![0_u8; size];
    let line = |number: usize| {
        format!(
            "{ODD} - - [17/May/2015:{} +0000] \"GET /\" 200 5 \"-\" \"UA\"\n",
            clock(number)
        )
    };
    let object = |number: usize| {
        format!(
            "{{\"time\":\"2015-05-17T{}Z\",\"ip\":\"{ODD}\",\"status\":200}}\n",
            clock(number)
        )
    };
    let pair = |number: usize| format!("time=2015-05-17T{}Z ip={ODD} status=200\n", clock(number));
    let lines: [&dyn Fn(usize) -> String; 3] = [&line, &object, &pair];
    for line in lines {
        let text: Vec<u8> = (0..20).flat_map(|number| line(number).into_bytes()).collect();
        let (first, last) = text.split_at(line(0).len() * 7);
        for (name, content) in [
            ("before the first line", [&hole(1)[..], &text].concat()),
            ("of a page", [&hole(4096)[..], &text].concat()),
            ("longer than a line may be", [&hole(300_000)[..], &text].concat()),
            ("longer than any buffer", [&hole(5_000_000)[..], &text].concat()),
            ("between lines", [first, &hole(1000), last].concat()),
            ("after the last line", [&text[..], &hole(70_000)].concat()),
            (
                "instead of the last line end",
                [&text[..text.len() - 1], &hole(9)].concat(),
            ),
            (
                "instead of a line end",
                [&first[..first.len() - 1], &hole(100_000), last].concat(),
            ),
            (
                "in several places",
                [&hole(3)[..], first, &hole(17), last, &hole(5)].concat(),
            ),
            (
                "with a byte order mark",
                [&hole(700)[..], b"\xef\xbb\xbf", &text].concat(),
            ),
        ] {
            assert_eq!(keys("", &content), [(ODD.to_owned(), 20)], "a hole {name}");
            assert_eq!(
                keys("", &gzip(&content)),
                [(ODD.to_owned(), 20)],
                "a compressed hole {name}"
            );
        }
    }
    // A client that sends a zero does not end its line.
    let zero = (0..20)
        .map(|number| line(number).replace("UA", "U\0\0A"))
        .collect::<String>();
    assert_eq!(keys("", zero.as_bytes()), [(ODD.to_owned(), 20)]);
}

#[test]
fn times_in_other_forms_are_read() {
    // The time of the first request in milliseconds, by the forms of `10:05:00` on 17 May 2015 in UTC.
    const AT: i64 = 1_431_857_100_000;
    let combined = |time: &str| format!("{ODD} - - [{time}] \"GET /\" 200 5\n");
    let object = |time: &str| format!("{{\"ts\":{time},\"remote_ip\":\"{ODD}\",\"status\":200}}\n");
    let text = |time: &str| object(&format!("\"{time}\""));
    let pair = |time: &str| format!("ts=\"{time}\" ip={ODD} status=200\n");
    let forms: [Forms; 5] = [
        (&combined, "17/May/2015 10:05:00|2015/05/17 10:05:00", 7200),
        (
            &combined,
            "17/May/2015:10:05:00,000 UTC|2015-05-17T12:05:00+02:00",
            0,
        ),
        (&object, "1.4318571e+09|14318571.00e02|1.4318571E+18", 0),
        (&text, "2015-05-17 10:05:00|17/May/2015:10:05:00", 7200),
        (&pair, "2015-05-17 10:05:00,000", 7200),
    ];
    for (line, times, local) in forms {
        for time in times.split('|') {
            let lines = line(time).repeat(20);
            let output = on_pipe(
                &mut tool("--json --quiet --rule 5/s --utc-offset=+02:00", None),
                &lines,
            );
            let object = json(&output);
            assert_fields(&object, "requests unreadable", [20, 0], time);
            assert_eq!(object["from"], AT - local * 1000, "{time}");
            // Without the option, a note says what was assumed.
            let object = json(&on_pipe(&mut tool("--json --quiet --rule 5/s", None), &lines));
            assert_eq!(object["from"], AT, "{time}");
            let hints = texts(&object, "notes");
            let has_hint = hints
                .iter()
                .any(|note| note.contains("--utc-offset sets another"));
            assert_eq!(has_hint, local != 0, "{time}: {hints:?}");
        }
    }
}
