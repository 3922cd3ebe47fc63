//! The texts of `ringgate explain`, for which the help of a command has no room.

use core::fmt::Write as _;

use clap::ValueEnum;

use crate::args::{AlgorithmName, Topic};
use crate::input::choice::FormatArg;
use crate::input::time::timestamp::TimestampFormat;

/// The text of a topic, in lines of at most 80 characters.
pub(crate) fn text(topic: Topic) -> String {
    match topic {
        Topic::Formats => format!("{}{FORMATS}", values::<FormatArg>("Formats")),
        Topic::Time => format!("{}{TIME}", values::<TimestampFormat>("Formats of timestamps")),
        Topic::Rules => RULES.into(),
        Topic::Algorithms => format!("{}{ALGORITHMS}", values::<AlgorithmName>("Algorithms")),
        Topic::Memory => MEMORY.into(),
        Topic::Redis => REDIS.into(),
    }
}

/// The texts of all topics, for the manual page.
pub(crate) fn all() -> String {
    let texts: Vec<String> = Topic::value_variants().iter().map(|&topic| text(topic)).collect();
    texts.join("\n")
}

/// The values of an option with their help lines.
fn values<T: ValueEnum>(title: &str) -> String {
    let values: Vec<_> = T::value_variants()
        .iter()
        .filter_map(ValueEnum::to_possible_value)
        .collect();
    let width = values
        .iter()
        .map(|value| value.get_name().len())
        .max()
        .unwrap_or(0);
    values.iter().fold(format!("{title}:\n"), |mut text, value| {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  {:width$}  {help}", value.get_name());
        text
    })
}

const FORMATS: &str = r##"
A log has one request a line. Each file has the format of most of its first
1,000 lines, unless --format names one.

Fields:
  common, combined, vhost
    address ident user [17/May/2015:10:05:03 +0000] "request" status size
    "referer" "user-agent"
    client, ident, user, request, method, target, path, protocol, status, size,
    referer, agent (or nginx's names for them), and vhost if each line begins
    with a virtual host. A client is an address or a host name. Its port is left
    out. A line may be in quotation marks, and the client may be there again in
    brackets. Of two names before "-" and a user, the first is a virtual host.
  json, logfmt
    {"time": "2015-05-17T10:05:03Z", "client": "1.2.3.4", "user": {"id": 7}}
    time=2015-05-17T10:05:03Z client=1.2.3.4 user=7
    Those of the line. user.id is a field of a field. A null field is missing.
    In lines about requests, client, method, path, status and so on also stand
    for the names that nginx, Caddy, Traefik and others use. If one of the first
    lines has a method, path, status or the like, lines without such a field are
    messages, and no requests. Where a program writes several lines for a
    request, as at its beginning and at its end, each of them counts, unless a
    condition of the rule holds for one.
  csv
    Those that the first line names. Commas, tabs, semicolons or bars separate
    values, which may be quoted. Spaces around a value are left out. A record is
    one line.
  w3c
    Those of the line "#Fields: date time c-ip cs-method ..".
  alb, elb, nlb, s3, envoy, istio, haproxy, proxy-manager
    Those of common, or the documented names. The order is the documented one.
  syslog, rfc5424, journald
    host, program, pid, message, and those of a message in another format.
    "message repeated 7 times: [ .. ]" stands for 7 lines.
  docker, cri, timed
    stream, and those of a message in another format.
  --log-format '$remote_addr [$time_local] "$request" $status'
    The variables, as in nginx's directive, and those of common that they have.
    The time is that of a variable, or that of the line around the message. A
    line in which a client may have written an address into its own values is
    unreadable.
  --pattern 'Failed password for .* from (?<address>\S+)'
    The named groups of a regular expression. Lines that it does not match are
    no requests. The time is that of a group "time", or that of the line around
    the message.

Files may be compressed by gzip or zstd. If a compressed file was cut, the
result so far is printed. Holes of zeros, as copytruncate leaves them, and blank
lines are skipped.

A line is unreadable if its time or a field of a rule cannot be read, or if it
exceeds 64 KiB. Other fields may be invalid or cut. Unreadable lines are counted
and skipped, and the first three are shown on standard error. If there are more
of them than requests, the input is an error, unless --lenient is given.

Requests without the field of a key share one key.
"##;

const TIME: &str = r"
Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, by
their size, and may be written as 1.4318571e+09.

A time without a zone has that of --utc-offset. A time without a year has the
year that is nearest to the line before. For the first line that is --year, or
else the last year in which the time is not in the future. A message in another
line has its own time, unless only the line around it has a year.

If all times are whole seconds, all requests of a second count at its beginning.
If a window has less than 20 seconds, the report says so, and what a log
denies. The same holds for minutes and milliseconds.

--from and --to may have a zone: 2015-05-17T12:05:03[Europe/Berlin].

Times are from 1678 to 2261. A leap second counts as second 59. A log may span
15 years, less two windows.
";

const RULES: &str = r#"Rules:
  --rule QUOTA [by FIELD,..|by all] [cost FIELD] [when CONDITION]
         [algorithm NAME] [cells N] [burst N] [as NAME]

A quota is 20/60s or "5 per min". If the cost is in bytes, it may have a unit:
50MiB/s, 10GB/min, 2.5Gbit/s.

A condition is "field" (present, and not "", "-", "0", "false" or "no"),
"field=value", "field!=value" or "field=prefix*", as in status=5*. There are no
other operators. All spellings of a whole address of IPv6 are equal. A missing
value is equal to "-". Within quotation marks by, cost, as and so on are text:
5/s when "msg=Sent by Ann".

The requests are decided in order of time by the library's own rule set. Those
of the same time keep the order of their lines. Several rules are one decision:
a request that one rule denies is charged to none.

A client counts as in the library. A client of IPv6 counts by its /64 network,
or by the prefix of a rule of a file. An address that embeds one of IPv4 counts
as that address.

In a rules file, keys, costs, conditions and tiers name fields in the same way,
and --alias maps other names to fields. --alias client=FIELD says which field is
the client: the port of an address in it is left out. The lists of a key of one
field have addresses, networks and other texts. A rule with in_flight is left
out with a note, because a log does not show when a request ends. "ringgate
check" states the rules of a file in words. With --shared it also reports
everything in the file that no store serves.

Rules of the command line have room for all keys, up to 1 GiB. Rules of a file
have the capacity that it says, and requests without room are reported. The
comparison and "what if" replay each rule by itself, with its quota, key, cost
and condition. They leave out tiers, lists and shadow, and have room for all
keys.
"#;

const ALGORITHMS: &str = r#"
The default, sliding-window, chooses as a rule set of the library does. A rule
with a key has one word. A rule without one, with a cost, or with several quotas
of one key has 60 cells. "ringgate check" names what was chosen.

Cells and fixed windows begin at multiples of the window since
1970-01-01T00:00:00Z. If there are several windows, the multiples are those of
all windows, or of the longest one if they have no common multiple of at most
400 days. Times are rounded so that no more is admitted: cells to whole
nanoseconds, gcra to half a nanosecond a permit, log to a unit that grows with
the limit (0.5 ms at a million).

"ringgate suggest" finds, for each share of --deny, a limit at which no larger
share is denied, while the next lower limit denies a larger one. It replays the
log exactly for each limit that it tries. A higher limit does not always deny
fewer requests, in particular if they have a cost: replay the limit that you
choose.
"#;

const MEMORY: &str = "Memory:
  The tables of keys grow to at most 1 GiB. For the key with the most requests
  in one window, 16 bytes for each distinct time of that window are in memory.

Temporary files:
  Requests are written to files in $TMPDIR, and sorted there. They take 8 bytes
  for the time and for each field of a rule, several times.
";

const REDIS: &str = r#"Addresses:
  redis://user:password@host:port/database
  rediss://user:password@host:port/database for TLS
  unix:///path?user=name&pass=password&db=0

Arguments are visible to other users of the machine. With "-", addresses are
read from standard input, one a line. Several addresses are nodes of a cluster.

The check reads the version, rights, eviction, persistence, replication,
cluster, scripts and latency. Each finding states what was found, what it means
for the limits, and what to do.

Load:
  Some hundred decisions within about a second. Each needed command is tried
  with arguments that change nothing. Decisions use unique keys, which are
  removed at the end, and expire within 12 seconds in any case. A check takes at
  most 5 seconds and 5 times --timeout.

TLS:
  Certificates must lead to an authority of the system, or of the file that the
  variable SSL_CERT_FILE names.
"#;

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::{Topic, text};

    #[test]
    fn topics_fit_a_terminal_of_80_columns() {
        for &topic in Topic::value_variants() {
            let text = text(topic);
            assert!(text.ends_with('\n') && !text.starts_with('\n'), "{topic:?}");
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
