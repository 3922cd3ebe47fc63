//! A connection on which every answer comes in time, or not at all.

use core::time::Duration;
use std::time::Instant;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, RedisResult, Value};

use super::address::Address;

/// A connection to one server.
#[derive(Clone)]
pub(super) struct Wire {
    connection: MultiplexedConnection,
}

/// Why there is no answer that means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody is there, or answers in time.
    Silent(String),
    /// The server answers with an error.
    Error(ServerError),
}

/// An error that a server answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerError {
    /// Its first word.
    pub(super) code: String,
    /// All of it.
    pub(super) words: String,
}

impl ServerError {
    /// Whether the user has no right to do this.
    pub(super) fn is_forbidden(&self) -> bool {
        self.code == "NOPERM"
    }

    /// Whether there is no such command here.
    pub(super) fn is_unknown(&self) -> bool {
        self.words.contains("unknown command") || self.words.contains("unknown subcommand")
    }
}

impl Wire {
    /// Connects, and logs in.
    pub(super) async fn to(address: &Address, within: Duration) -> Result<Self, Trouble> {
        let client = Client::open(address.info().clone()).map_err(|error| trouble(&error, within))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(within))
            .set_response_timeout(Some(within));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.map_err(|error| trouble(&error, within))?;
        Ok(Self { connection })
    }

    pub(super) async fn ask(&self, words: &[&str]) -> Result<Value, Trouble> {
        let began = Instant::now();
        let answer = self.clone().send(command(words)).await;
        answer.map_err(|error| trouble(&error, began.elapsed()))
    }

    /// Asks all of these at once.
    pub(super) async fn ask_all<T: AsRef<str>>(
        &self,
        questions: &[Vec<T>],
    ) -> Result<Vec<Result<Value, ServerError>>, Trouble> {
        let began = Instant::now();
        let asked: Vec<_> = questions
            .iter()
            .map(|words| {
                let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
                tokio::spawn(self.clone().send(command(&words)))
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for asked in asked {
            let answer = asked
                .await
                .map_err(|_| Trouble::Silent("the question was given up".into()))?;
            answers.push(match answer.map_err(|error| trouble(&error, began.elapsed())) {
                Ok(value) => Ok(value),
                Err(Trouble::Error(error)) => Err(error),
                Err(silent) => return Err(silent),
            });
        }
        Ok(answers)
    }

    async fn send(mut self, command: Cmd) -> RedisResult<Value> {
        self.connection
            .send_packed_command(&command)
            .await?
            .extract_error()
    }
}

fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    command.arg(words);
    command
}

/// What the client's error is to us; `waited`: for how long.
fn trouble(error: &RedisError, waited: Duration) -> Trouble {
    if let Some(code) = error.code() {
        let words = match error.detail() {
            Some(detail) => format!("{code} {detail}"),
            None => code.to_owned(),
        };
        return Trouble::Error(ServerError {
            code: code.to_owned(),
            words,
        });
    }
    match error.kind() {
        // The client keeps the server's words to itself.
        ErrorKind::AuthenticationFailed => Trouble::Error(ServerError {
            code: "WRONGPASS".into(),
            words: "the login is refused".into(),
        }),
        ErrorKind::Parse => Trouble::Silent("what answers there does not speak as Redis does".into()),
        _ if error.is_timeout() => Trouble::Silent(format!("no answer within {waited:.1?}")),
        // What the operating system says; the client adds no address of its own.
        _ => Trouble::Silent(error.to_string()),
    }
}

/// The text that an answer consists of.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Okay => Some("OK".into()),
        _ => None,
    }
}
