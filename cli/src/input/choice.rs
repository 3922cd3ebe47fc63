//! The formats that the command line can choose.

use clap::ValueEnum;

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

impl FormatArg {
    /// The reason why lines are of the format.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Auto => "no known format",
            Self::Common | Self::Combined => "an address, a time in brackets and a quoted request",
            Self::Vhost => "a virtual host before an address, a time in brackets and a quoted request",
            Self::Json => "an object",
            Self::Csv => "names with one for the time",
            Self::Logfmt => "names with values, one for the time",
            Self::W3c => "#Fields",
            Self::Alb => "a protocol, a time, client:port and a quoted request",
            Self::Elb => "a time, client:port and a quoted request",
            Self::Nlb => "tls, a version, a time and client:port",
            Self::S3 => "an operation of S3",
            Self::Envoy => "13 words with a time and a quoted request first",
            Self::Istio => "22 words with a time and a quoted request first",
            Self::ProxyManager => "a time, a status and [Client ..]",
            Self::Haproxy => "client:port, a time, five timers and a quoted request",
            Self::Caddy => "an object with request, logger and status",
            Self::Traefik => "an object with ClientHost and RequestMethod",
            Self::Syslog => "a time, a host and a program",
            Self::Rfc5424 => "a priority, version 1 and a time",
            Self::Docker => "an object with log, stream and time",
            Self::Cri => "a time, a stream and F or P",
            Self::Timed => "a time before a line of that format",
            Self::Journald => "an object with MESSAGE and __REALTIME_TIMESTAMP",
        }
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

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
