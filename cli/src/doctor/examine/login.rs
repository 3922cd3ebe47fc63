//! A server that answers, but not what it is asked.

use super::address::Address;
use super::finding::{Finding, Level};
use super::wire::ServerError;

const MEANS: &str = "Every call is an error, whatever the mode, and OnError decides.";

/// What to say of the first answer, if it is this error; `None`: it means nothing.
pub(super) fn judge(address: &Address, error: &ServerError) -> Option<Finding> {
    let user = address.user();
    let (check, found, advice) = match error.code.as_str() {
        // A right that is missed among others.
        "NOPERM" => return None,
        "WRONGPASS" => (
            "login",
            format!("the server refuses the password of the user {user:?}"),
            "Give the user and the password that ACL SETUSER, or requirepass, has set; characters as @ : / ? # % are \
             written %40 and so on in an address."
                .to_owned(),
        ),
        "NOAUTH" => (
            "login",
            "the server asks for a password, and the address holds none".to_owned(),
            "Give one: redis://user:password@host:port, or redis://:password@host:port where there is one for all."
                .to_owned(),
        ),
        code => (
            "answers",
            format!("the server answers every question by {:?}", error.words),
            match code {
                "LOADING" => "Wait until it has read its data, and look again.",
                "BUSY" => "End the script that keeps it busy: SCRIPT KILL.",
                "MASTERDOWN" => "Bring its primary back, or give the primary's address.",
                "DENIED" => "Set a password or an address to bind to: it is in protected mode.",
                _ => "Look at the server's log.",
            }
            .to_owned(),
        ),
    };
    Some(Finding::new(check, Level::Problem, found, MEANS).advise(advice))
}
