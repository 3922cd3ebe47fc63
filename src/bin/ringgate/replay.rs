//! A replay: reading, deciding, and starting over when the log is not in order of time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use ringgate::Algorithm;

use crate::decisions::{Decisions, Span};
use crate::failure::Failure;
use crate::requests::{MalformedLines, Request, Requests};
use crate::spool::Spool;

/// What a replay has found.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Every client.
    pub(crate) clients: Vec<ClientOutcome>,
    /// The first and the last request.
    pub(crate) span: Span,
    pub(crate) malformed: MalformedLines,
    /// Requests that were held in memory and sorted; `None` when the log was in order of time.
    pub(crate) held: Option<usize>,
}

/// One client's address, and what became of its requests.
#[derive(Debug)]
pub(crate) struct ClientOutcome {
    pub(crate) address: Box<str>,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
}

/// Where the log comes from.
enum Source {
    /// A file that can be read again from its beginning.
    Regular(File),
    /// A pipe, a terminal: read once.
    Stream(Box<dyn Read>),
}

impl Source {
    /// Opens a file, or standard input.
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::Stream(Box::new(io::stdin().lock())));
        };
        let failure = |error| Failure::io(format!("{} cannot be read", path.display()), error);
        let file = File::open(path).map_err(failure)?;
        if file.metadata().map_err(failure)?.is_file() {
            Ok(Self::Regular(file))
        } else {
            Ok(Self::Stream(Box::new(file)))
        }
    }
}

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER, reader)
}

/// Asks one limiter per client of the log at `path` (`None`: standard input) about each request.
///
/// # Errors
///
/// When the log cannot be read, when it holds no request, and when it is longer than a limiter counts.
pub(crate) fn replay<A: Algorithm>(policy: &A, path: Option<&Path>) -> Result<Outcome, Failure> {
    let mut decisions = Decisions::new(policy);
    match Source::open(path)? {
        Source::Regular(file) => {
            let mut requests = Requests::new(buffered(file));
            if follow(&mut decisions, &mut requests, |_| Ok(()))?.is_none() {
                return outcome(decisions, requests, None);
            }
            drop(decisions);
            // All over again: the keys and the malformed lines are those of the second reading.
            let mut reader = requests.into_reader();
            reader
                .rewind()
                .map_err(|error| Failure::io("the log cannot be read again", error))?;
            in_order_of_time(policy, Requests::new(reader), Vec::new())
        }
        Source::Stream(reader) => {
            let mut requests = Requests::new(buffered(reader));
            let mut spool = Spool::new();
            let Some(early) = follow(&mut decisions, &mut requests, |request| spool.write(request))? else {
                return outcome(decisions, requests, None);
            };
            drop(decisions);
            let mut held = spool.into_requests()?;
            held.push(early);
            in_order_of_time(policy, requests, held)
        }
    }
}

/// Decides the requests in the order of their lines, after showing each to `keep`, and returns the
/// first that is earlier than the one before it.
fn follow<A: Algorithm, R: BufRead>(
    decisions: &mut Decisions<'_, A>,
    requests: &mut Requests<R>,
    mut keep: impl FnMut(Request) -> Result<(), Failure>,
) -> Result<Option<Request>, Failure> {
    while let Some(request) = requests.read()? {
        if !decisions.is_next(request.second) {
            return Ok(Some(request));
        }
        keep(request)?;
        decisions.decide(request)?;
    }
    Ok(None)
}

/// Decides `held` and the rest of the log in order of time, requests of the same second in the
/// order of their lines.
fn in_order_of_time<A: Algorithm, R: BufRead>(
    policy: &A,
    mut requests: Requests<R>,
    mut held: Vec<Request>,
) -> Result<Outcome, Failure> {
    while let Some(request) = requests.read()? {
        held.push(request);
    }
    // A stable sort.
    held.sort_by_key(|request| request.second);
    let mut decisions = Decisions::new(policy);
    held.iter().try_for_each(|&request| decisions.decide(request))?;
    outcome(decisions, requests, Some(held.len()))
}

fn outcome<A: Algorithm, R: BufRead>(
    decisions: Decisions<'_, A>,
    requests: Requests<R>,
    held: Option<usize>,
) -> Result<Outcome, Failure> {
    let (keys, malformed) = requests.into_seen();
    let Some((clients, span)) = decisions.finish() else {
        return Err(Failure::Empty {
            malformed: malformed.count,
            examples: malformed.examples,
        });
    };
    let clients = keys
        .into_iter()
        .map(|(address, key)| {
            let client = &clients[key as usize];
            ClientOutcome {
                address,
                requests: client.requests,
                denied: client.denied,
            }
        })
        .collect();
    Ok(Outcome {
        clients,
        span,
        malformed,
        held,
    })
}
