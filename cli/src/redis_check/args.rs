//! Arguments of `ringgate redis check`.

use std::io;

use regex::Regex;

use crate::failure::Failure;

// Without `Debug`: an address may hold a password.
#[derive(clap::Subcommand)]
pub(crate) enum RedisCommand {
    /// Check the server's state and settings
    #[command(after_help = NOTES)]
    Check(CheckArgs),
}

const NOTES: &str = r#"Levels:
  ok       nothing to do
  warning  most users should act
  problem  a bound does not hold, or calls are errors

Exit status:
  0 without a problem, 1 with a problem (also if the login fails), 2 if an
  argument is invalid or no server answers.

Addresses, load and TLS: "ringgate explain redis""#;

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Server, or nodes of a cluster; "-" reads from standard input
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Prefix of the keys
    #[arg(long, default_value = "ringgate")]
    pub(super) prefix: String,

    /// Timeout of a call in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(super) timeout: u64,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArgs {
    /// One or more addresses.
    ///
    /// # Errors
    ///
    /// When standard input cannot be read, or has no address.
    pub(super) fn urls(&self) -> Result<Vec<String>, Failure> {
        let failure = |error: io::Error| Failure::io("cannot read addresses from standard input", &error);
        let given = self.urls.iter().filter(|url| *url != "-");
        let mut urls: Vec<String> = given.cloned().collect();
        if urls.len() < self.urls.len() {
            let text = io::read_to_string(io::stdin()).map_err(failure)?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            urls.extend(lines.map(String::from));
        }
        if urls.is_empty() {
            return Err(failure(io::Error::other("no address")));
        }
        Ok(urls)
    }
}

/// Replaces all possible passwords of addresses by `***`: between "//" or "//user:" and "@", and after "pass=".
pub(crate) fn without_secrets(text: &str) -> String {
    // A password that was not escaped may hold "/", "?", "#" and "@", but no space.
    let secrets = [
        (r"//(?:([^\s:]*):)?\S*@", "//${1}:***@"),
        (r"(pass=)[^&\s]*", "${1}***"),
    ];
    secrets.iter().fold(text.to_owned(), |text, (secret, shown)| {
        let secret = Regex::new(secret).expect("a valid expression");
        secret.replace_all(&text, *shown).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn passwords_are_hidden() {
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
