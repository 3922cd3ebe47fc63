//! A connection on which each call ends within a timeout.

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    Pipeline, RedisError, Value,
};

/// The address and the login of a server; the display form holds no password.
#[derive(Clone)]
pub(super) struct Address(ConnectionInfo);

impl Address {
    pub(super) fn parse(url: &str) -> Option<Self> {
        url.into_connection_info().ok().map(Self)
    }

    /// The address of another node of the cluster, with the same login, and by TLS if this one is.
    pub(super) fn of_node(&self, host: &str, port: u16) -> Self {
        let host = host.to_owned();
        let address = match self.0.addr() {
            ConnectionAddr::TcpTls {
                insecure, tls_params, ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        Self(self.0.clone().set_addr(address))
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.0.addr(), ConnectionAddr::TcpTls { .. })
    }

    /// Host and port, or the path of a socket.
    pub(super) fn place(&self) -> String {
        match self.0.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                match host.contains(':') {
                    true => format!("[{host}]:{port}"),
                    false => format!("{host}:{port}"),
                }
            }
            ConnectionAddr::Unix(path) => path.display().to_string(),
            other => other.to_string(),
        }
    }

    pub(super) fn user(&self) -> &str {
        self.0.redis_settings().username().unwrap_or("default")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0.redis_settings();
        let is_unix = matches!(self.0.addr(), ConnectionAddr::Unix(_));
        f.write_str(match self.0.addr() {
            ConnectionAddr::Unix(_) => "unix://",
            ConnectionAddr::TcpTls { .. } => "rediss://",
            _ => "redis://",
        })?;
        if let Some(user) = settings.username().filter(|_| !is_unix) {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.place())?;
        match settings.db() {
            0 => Ok(()),
            db => write!(f, "{}{db}", if is_unix { "?db=" } else { "/" }),
        }
    }
}

/// A call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// There was no answer, or none of the Redis protocol. The text is the reason.
    NoAnswer(String),
    /// The server answered with an error, which begins with its code.
    Server(String),
}

/// A connection to one server.
#[derive(Clone)]
pub(super) struct Connection(MultiplexedConnection);

impl Connection {
    /// Connects and logs in.
    pub(super) async fn open(address: &Address, timeout: Duration) -> Result<Self, CallError> {
        let client = Client::open(address.0.clone()).map_err(|error| call_error(&error, timeout))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        connection.map(Self).map_err(|error| call_error(&error, timeout))
    }

    pub(super) async fn call(&self, words: &[&str]) -> Result<Value, CallError> {
        let answer = self.call_all(&[words.to_vec()]).await?.pop();
        answer.unwrap_or(Ok(Value::Nil)).map_err(CallError::Server)
    }

    /// Makes all calls at once. An answer may be an error of the server.
    pub(super) async fn call_all(
        &self,
        calls: &[Vec<&str>],
    ) -> Result<Vec<Result<Value, String>>, CallError> {
        let start = Instant::now();
        let mut pipeline = Pipeline::with_capacity(calls.len());
        for words in calls {
            pipeline.add_command(command(words));
        }
        let mut connection = self.0.clone();
        let answers = connection.send_packed_commands(&pipeline, 0, calls.len()).await;
        let answers = answers.map_err(|error| call_error(&error, start.elapsed()))?;
        let answers = answers.into_iter().map(|answer| {
            let answer = answer.extract_error();
            match answer.map_err(|error| call_error(&error, start.elapsed())) {
                Ok(value) => Ok(Ok(value)),
                Err(CallError::Server(error)) => Ok(Err(error)),
                Err(silent) => Err(silent),
            }
        });
        answers.collect()
    }
}

fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    command.arg(words);
    command
}

fn call_error(error: &RedisError, waited: Duration) -> CallError {
    match (error.code(), error.kind()) {
        (Some(code), _) => {
            let message = format!("{code} {}", error.detail().unwrap_or_default());
            CallError::Server(message.trim_end().to_owned())
        }
        // The client drops the server's error message.
        (None, ErrorKind::AuthenticationFailed) => CallError::Server("WRONGPASS".to_owned()),
        (None, ErrorKind::Parse) => CallError::NoAnswer("the answer is not of the Redis protocol".into()),
        _ if error.is_timeout() => CallError::NoAnswer(format!("no answer within {waited:.1?}")),
        // The message is that of the operating system. The client adds no address and no password.
        _ => CallError::NoAnswer(error.to_string()),
    }
}

/// The text of an answer, or `None` if the answer is not text.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}
