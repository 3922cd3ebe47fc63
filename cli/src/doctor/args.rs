//! The command line of the doctor.

use core::fmt;
use std::io::{self, BufRead};

use crate::failure::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum RedisCommand {
    /// Says whether a server keeps what ringgate promises, and what to do about it.
    ///
    /// It looks at the kind and version of the server, eviction, persistence, replication, latency, the clock, scripts,
    /// the rights of its user, and the state of a cluster. Each finding says what was found, what that means for the
    /// promises that src/redis.md makes, and what to do.
    #[command(after_long_help = NOTES)]
    Doctor(DoctorArgs),
}

const NOTES: &str = r#"Levels:
  ok, note (to be known), warning (to be thought about), problem (a promise is broken, or will be).

What it does to the server:
  It reads settings, sends some hundred PINGs, TIMEs and decisions within about a second, and tries each command that
  ringgate needs with arguments by which it changes nothing. Decisions are taken from limits of its own, of the rule
  "doctor" under a key that nobody else has; these are removed at the end, and expire within 12 seconds in any case.

Time:
  A second or two; five seconds and five times the --timeout at the most, in all.

Exit status:
  0 when there is no problem; 1 when there is one, also when the server refuses the password; 2 when the arguments are
  wrong, or nobody answers in time."#;

#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Where the server is: redis://user:password@host:port/database or unix:///path?user=name&pass=password&db=0;
    /// several for some nodes of a cluster; "-" to read them from standard input, one a line (other users of this
    /// machine see arguments, and a password among them)
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// What the names of your limits begin with in the server
    #[arg(long, default_value = "ringgate")]
    pub(super) prefix: String,

    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(super) timeout: u64,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// The most addresses that are read from standard input.
const MOST: usize = 100;

impl DoctorArgs {
    /// The addresses, one at least.
    ///
    /// # Errors
    ///
    /// When they are to be read and cannot be, or there is none.
    pub(super) fn urls(&self) -> Result<Vec<String>, Failure> {
        if self.urls.iter().all(|url| url != "-") {
            return Ok(self.urls.clone());
        }
        let failure = |error| Failure::io("the addresses cannot be read from standard input", error);
        let lines = io::stdin().lock().lines().take(MOST);
        let read: Vec<String> = lines.collect::<Result<_, _>>().map_err(failure)?;
        let given = self.urls.iter().filter(|url| *url != "-");
        let read = read
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty());
        let urls: Vec<String> = given.map(String::as_str).chain(read).map(String::from).collect();
        if urls.is_empty() {
            return Err(failure(io::Error::other("there is none")));
        }
        Ok(urls)
    }
}

impl fmt::Debug for DoctorArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the addresses, which may hold a password.
        f.debug_struct("DoctorArgs")
            .field("addresses", &self.urls.len())
            .finish_non_exhaustive()
    }
}

/// The text with `***` for all that may be a password in an address: between "//" or "//user:" and "@", and after
/// "pass=".
pub(crate) fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("//") {
        let (before, after) = rest.split_at(at + 2);
        shown.push_str(before);
        // A password may hold any of "/?#" if whoever typed it did not know better, but no space.
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(secret) => {
                let user = after[..secret].split_once(':').map_or("", |(user, _)| user);
                shown.push_str(user);
                shown.push_str(":***");
                &after[secret..]
            }
            None => after,
        };
    }
    shown.push_str(rest);
    let mut parts = shown.split("pass=");
    let mut hidden = String::from(parts.next().unwrap_or_default());
    for part in parts {
        hidden.push_str("pass=***");
        let end = part.find(|c: char| c == '&' || c.is_whitespace());
        hidden.push_str(&part[end.unwrap_or(part.len())..]);
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn no_secret_is_left() {
        for (text, shown) in [
            ("nothing to hide", "nothing to hide"),
            ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
            ("'redis://user:secret@host'", "'redis://user:***@host'"),
            ("redis://:secret@host and more", "redis://:***@host and more"),
            ("redis://secret@host", "redis://:***@host"),
            (
                "redis://u:sec/re@t@host redis://u:secret@host",
                "redis://u:***@host redis://u:***@host",
            ),
            (
                "unix:///a/b?db=1&pass=secret&user=u",
                "unix:///a/b?db=1&pass=***&user=u",
            ),
            ("unix:///a/b?pass=secret", "unix:///a/b?pass=***"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
