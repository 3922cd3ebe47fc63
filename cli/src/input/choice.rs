//! The formats that the command line can choose, and how their lines are told and read.

use clap::ValueEnum;

use crate::input::format::FirstLines;
use crate::input::format::common::CommonLayout;
use crate::input::format::layouts::{ALB, ELB, ENVOY, HAPROXY, ISTIO, NLB, PROXY_MANAGER, S3};
use crate::input::format::named::servers::{CADDY, TRAEFIK};
use crate::input::format::words::Layout;
use crate::input::format::wrapper::Envelope;
use crate::input::format::wrapper::container::Docker;
use crate::input::format::wrapper::header::{CRI, RFC5424, TIMED, is_syslog, is_timed, syslog_of};
use crate::input::format::wrapper::journald::Journald;
use crate::input::time::timestamp::TimestampParser;

/// The value of `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Detected from the first lines of each input
    #[default]
    Auto,
    /// Apache, nginx: address ident user [time] "request" ..
    Common,
    /// As common, followed by "referer" "user-agent"
    Combined,
    /// As combined, behind the virtual host
    Vhost,
    /// One object a line, with named fields
    Json,
    /// Values between commas, tabs, semicolons or bars; a header
    Csv,
    /// Names with values, as in time=1431857103 ip=1.2.3.4
    Logfmt,
    /// IIS, CloudFront: values named by #Fields
    W3c,
    /// AWS Application Load Balancer
    Alb,
    /// AWS Classic Load Balancer
    Elb,
    /// AWS Network Load Balancer: connections of TLS
    Nlb,
    /// AWS S3
    S3,
    /// Envoy's default text format
    Envoy,
    /// Istio's default text format
    Istio,
    /// Nginx Proxy Manager: [time] status .. [Client address] ..
    ProxyManager,
    /// HAProxy's HTTP logs
    Haproxy,
    /// Caddy's JSON
    Caddy,
    /// Traefik's JSON
    Traefik,
    /// Time, host and program before a message of another format
    Syslog,
    /// Syslog of RFC 5424 around a message
    Rfc5424,
    /// Docker's json-file around a message
    Docker,
    /// Kubernetes: time, stream and tag before a message
    Cri,
    /// A time before a message, as of docker logs --timestamps
    Timed,
    /// The journal of systemd in JSON, around a message
    Journald,
}

/// How the lines of a format are told from others, and how they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lines {
    Common(CommonLayout),
    /// Objects with these fields.
    Json(&'static [&'static str]),
    Csv,
    Logfmt,
    W3c,
    Words(&'static Layout),
    Messages(IsMessage, NewEnvelope),
}

/// Whether a line with these names of fields, if it is an object, is of an envelope.
type IsMessage = fn(&[u8], &[String], &mut TimestampParser) -> bool;

/// Creates an envelope for an input.
type NewEnvelope = fn(&FirstLines) -> Box<dyn Envelope>;

impl FormatArg {
    /// The place of a format in the detection of one line, from 1, as the line of a later format may also be one of an earlier
    /// format, the reason why lines are of it, and its lines. Formats at 0 are not detected, or by the first line of the input.
    const fn row(self) -> (u8, &'static str, Lines) {
        match self {
            Self::Auto => (0, "no known format", Lines::Common(CommonLayout::Names)),
            Self::Docker => (
                1,
                "an object with log, stream and time",
                Lines::Messages(
                    |_, names, _| Docker::is(names),
                    |lines| Box::new(Docker::new(lines)),
                ),
            ),
            Self::Journald => (
                2,
                "an object with MESSAGE and __REALTIME_TIMESTAMP",
                Lines::Messages(|_, names, _| Journald::is(names), |_| Box::new(Journald::new())),
            ),
            Self::Caddy => (
                3,
                "an object with request, logger and status",
                Lines::Json(&CADDY),
            ),
            Self::Traefik => (
                4,
                "an object with ClientHost and RequestMethod",
                Lines::Json(&TRAEFIK),
            ),
            Self::Json => (5, "an object", Lines::Json(&[])),
            Self::Cri => (
                6,
                "a time, a stream and F or P",
                Lines::Messages(|line, _, _| CRI.is(line), |_| Box::new(&CRI)),
            ),
            Self::Rfc5424 => (
                7,
                "a priority, version 1 and a time",
                Lines::Messages(|line, _, _| RFC5424.is(line), |_| Box::new(&RFC5424)),
            ),
            Self::Nlb => (8, "tls, a version, a time and client:port", Lines::Words(&NLB)),
            Self::Alb => (
                9,
                "a protocol, a time, client:port and a quoted request",
                Lines::Words(&ALB),
            ),
            Self::Elb => (10, "a time, client:port and a quoted request", Lines::Words(&ELB)),
            Self::S3 => (11, "an operation of S3", Lines::Words(&S3)),
            Self::Envoy => (
                12,
                "13 words with a time and a quoted request first",
                Lines::Words(&ENVOY),
            ),
            Self::Istio => (
                13,
                "22 words with a time and a quoted request first",
                Lines::Words(&ISTIO),
            ),
            Self::ProxyManager => (
                14,
                "a time, a status and [Client ..]",
                Lines::Words(&PROXY_MANAGER),
            ),
            Self::Haproxy => (
                15,
                "client:port, a time, five timers and a quoted request",
                Lines::Words(&HAPROXY),
            ),
            Self::Combined => (16, COMMON, Lines::Common(CommonLayout::Names)),
            Self::Common => (0, COMMON, Lines::Common(CommonLayout::Names)),
            Self::Vhost => (
                0,
                "a virtual host before an address, a time in brackets and a quoted request",
                Lines::Common(CommonLayout::Vhost),
            ),
            Self::Timed => (
                17,
                "a time before a line of that format",
                Lines::Messages(|line, _, times| is_timed(line, times), |_| Box::new(&TIMED)),
            ),
            Self::Syslog => (
                18,
                "a time, a host and a program",
                Lines::Messages(
                    |line, _, times| is_syslog(line, times),
                    |lines| Box::new(syslog_of(lines)),
                ),
            ),
            Self::Logfmt => (19, "names with values, one for the time", Lines::Logfmt),
            Self::Csv => (0, "names with one for the time", Lines::Csv),
            Self::W3c => (0, "#Fields", Lines::W3c),
        }
    }

    /// The formats of which a line can be, in the order in which they are tried.
    pub(crate) fn in_order() -> Vec<Self> {
        let mut all: Vec<Self> = Self::value_variants()
            .iter()
            .copied()
            .filter(|kind| kind.row().0 > 0)
            .collect();
        all.sort_unstable_by_key(|kind| kind.row().0);
        all
    }

    /// The reason why lines are of the format.
    pub(crate) const fn why(self) -> &'static str {
        self.row().1
    }

    pub(crate) const fn lines(self) -> Lines {
        self.row().2
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

const COMMON: &str = "an address, a time in brackets and a quoted request";

/// A format by a string of the command line.
#[derive(Clone, Debug)]
pub(crate) enum Own {
    /// The value of `--log-format`.
    LogFormat(String),
    /// The value of `--pattern`.
    Pattern(String),
}

/// The format that the command line chooses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) format: FormatArg,
    pub(crate) own: Option<Own>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two formats at one place would be tried in the order of their declaration.
    #[test]
    fn each_format_has_a_place_of_its_own() {
        let places: Vec<u8> = FormatArg::in_order()
            .into_iter()
            .map(|kind| kind.row().0)
            .collect();
        assert!(places.len() > 10, "{places:?}");
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
    }
}
