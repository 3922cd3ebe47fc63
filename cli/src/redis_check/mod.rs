//! `ringgate redis check`: whether the state and the settings of a server keep the bounds of shared limits.

mod args;
mod cluster;
mod connection;
mod facts;
mod finding;
mod latency;
mod report;
mod rights;
mod scripts;
mod server;
mod settings;

use core::time::Duration;

pub(crate) use args::{CheckArgs, RedisCommand, without_secrets};
use connection::{Address, CallError, Connection, text};
use facts::Facts;
use finding::{Finding, Level, merge};
use latency::Figures;
use report::Report;
use scripts::Scripts;

use crate::failure::Failure;

/// Time for a whole check: a fixed part, and multiples of `--timeout`.
const DEADLINE: (Duration, u32) = (Duration::from_secs(5), 5);

/// The outcome of a check.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The report, as text or JSON.
    pub(crate) text: String,
    /// Whether a finding is a problem.
    pub(crate) problem: bool,
}

/// Checks a server or a cluster.
///
/// # Errors
///
/// When an argument is invalid, or no server answers in time.
pub(crate) fn check(args: &CheckArgs) -> Result<Checked, Failure> {
    let urls = args.urls()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start a runtime", error))?;
    let report = runtime.block_on(check_in_time(args, &urls));
    // A pending name lookup must not delay the exit.
    runtime.shutdown_background();
    let report = report?;
    Ok(Checked {
        text: if args.json { report.json()? } else { report.text() },
        problem: report.has_problem(),
    })
}

async fn check_in_time(args: &CheckArgs, urls: &[String]) -> Result<Report, Failure> {
    let timeout = Duration::from_millis(args.timeout);
    // Building a store validates each address and the prefix before anything is sent.
    for url in urls {
        Scripts::new(core::slice::from_ref(url), &args.prefix, timeout, false)?;
    }
    let addresses: Vec<Address> = urls.iter().filter_map(|url| Address::parse(url)).collect();
    let shown: Vec<String> = addresses.iter().map(Address::to_string).collect();
    let deadline = DEADLINE.0 + DEADLINE.1 * timeout;
    let reason = match tokio::time::timeout(deadline, check_first(args, urls, &addresses, timeout)).await {
        Ok(Ok(report)) => return Ok(report),
        Ok(Err(CallError::NoAnswer(reason))) => reason,
        Ok(Err(CallError::Server(error))) => error.message,
        Err(_) => format!("not finished within {deadline:?}"),
    };
    Err(Failure::Unreachable {
        server: shown.join(", "),
        reason,
    })
}

/// Checks the first server that answers.
async fn check_first(
    args: &CheckArgs,
    urls: &[String],
    addresses: &[Address],
    timeout: Duration,
) -> Result<Report, CallError> {
    let mut reasons = Vec::new();
    for (url, address) in urls.iter().zip(addresses) {
        match Server::connect(address, timeout).await {
            Ok(server) if server.facts.is_cluster() => {
                return check_server(args, urls, address, server, timeout).await;
            }
            Ok(server) => {
                return check_server(args, core::slice::from_ref(url), address, server, timeout).await;
            }
            Err(CallError::NoAnswer(reason)) => reasons.push(reason),
            Err(CallError::Server(error)) => {
                return match server::login(address, &error) {
                    Some(finding) => Ok(Report::new(address.to_string(), None).with(finding)),
                    None => Err(CallError::Server(error)),
                };
            }
        }
    }
    Err(CallError::NoAnswer(reasons.join("; ")))
}

async fn check_server(
    args: &CheckArgs,
    urls: &[String],
    address: &Address,
    first: Server,
    timeout: Duration,
) -> Result<Report, CallError> {
    let mut report = Report::new(address.to_string(), server::Product::of(&first.facts));
    if server::is_sentinel(&first.facts) {
        return Ok(report.with(server::judge(&first.facts)));
    }
    let connection = first.connection.clone();
    let is_cluster = first.facts.is_cluster();
    let (servers, of_cluster) = if is_cluster {
        primaries(first, address, timeout).await?
    } else {
        (vec![first], None)
    };
    let (mut findings, mut allowed) = (Vec::new(), true);
    for server in &servers {
        let rights = server.rights(&args.prefix).await?;
        allowed &= rights.level != Level::Problem;
        let of_server = [
            Some(server::judge(&server.facts)),
            Some(rights),
            settings::eviction(&server.facts),
            settings::persistence(&server.facts),
            settings::replication(&server.facts),
        ];
        findings.extend(
            of_server
                .into_iter()
                .flatten()
                .map(|finding| (server.place.clone(), finding)),
        );
    }
    report.findings = merge(findings, servers.len());
    report.findings.extend(of_cluster);
    report.latency.extend(ping(&connection).await?);
    let (finding, figures) = if allowed {
        match Scripts::new(urls, &args.prefix, timeout, is_cluster) {
            Ok(scripts) => scripts.judge().await,
            Err(failure) => return Err(CallError::NoAnswer(failure.to_string())),
        }
    } else {
        (scripts::not_tried(), Vec::new())
    };
    // The store reports a timeout for a server that stopped answering; PING tells the two apart.
    if let Err(CallError::NoAnswer(reason)) = connection.call(&["PING"]).await {
        return Err(CallError::NoAnswer(reason));
    }
    report.findings.push(finding);
    report.latency.extend(figures);
    if !report.latency.is_empty() {
        report.findings.push(latency::judge(&report.latency));
    }
    Ok(report)
}

/// A server that answers.
struct Server {
    /// Host and port, or the path of a socket.
    place: String,
    user: String,
    connection: Connection,
    facts: Facts,
}

impl Server {
    async fn connect(address: &Address, timeout: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(address, timeout).await?;
        match connection.call(&["PING"]).await {
            // PING may be forbidden to a user that may do everything else.
            Err(CallError::Server(error)) if server::login(address, &error).is_none() => {}
            answer => drop(answer?),
        }
        Ok(Self {
            place: address.place(),
            user: address.user().to_owned(),
            facts: Facts::read(&connection).await?,
            connection,
        })
    }

    async fn rights(&self, prefix: &str) -> Result<Finding, CallError> {
        let key = format!("{prefix}:{{{}}}:doctor", scripts::unique_key());
        let user = match self.connection.call(&["ACL", "WHOAMI"]).await {
            Ok(user) => text(&user),
            Err(CallError::Server(_)) => None,
            Err(silent) => return Err(silent),
        };
        let user = user.as_deref().unwrap_or(&self.user);
        rights::judge(&self.connection, user, prefix, &key, self.facts.is_cluster()).await
    }
}

/// The latency of PING; `None` if the user may not run it.
async fn ping(connection: &Connection) -> Result<Option<Figures>, CallError> {
    match Figures::measure("PING", async |_| connection.call(&["PING"]).await.map(drop)).await {
        Ok(figures) => Ok(Some(figures)),
        Err(CallError::Server(_)) => Ok(None),
        Err(silent) => Err(silent),
    }
}

/// The reachable primaries of a cluster, and the finding about the cluster; without rights, only the first node.
async fn primaries(
    first: Server,
    address: &Address,
    timeout: Duration,
) -> Result<(Vec<Server>, Option<Finding>), CallError> {
    let questions = [vec!["CLUSTER", "INFO"], vec!["CLUSTER", "NODES"]];
    let answers = first.connection.call_all(&questions).await?;
    let answers: Option<Vec<String>> = answers.iter().map(|answer| text(answer.as_ref().ok()?)).collect();
    let Some([info, nodes]) = answers.as_deref() else {
        return Ok((vec![first], None));
    };
    let nodes = cluster::nodes(nodes);
    let (mut servers, mut unreachable) = (Vec::new(), Vec::new());
    for node in nodes.iter().filter(|node| node.is_primary() && !node.myself) {
        let other = address.of_node(&node.host, node.port);
        match Server::connect(&other, timeout).await {
            Ok(server) => servers.push(server),
            Err(_) => unreachable.push(other.place()),
        }
    }
    // A replica decides nothing, so it is not checked itself.
    if servers.is_empty() || nodes.iter().any(|node| node.is_primary() && node.myself) {
        servers.insert(0, first);
    }
    Ok((servers, Some(cluster::judge(info, &nodes, &unreachable))))
}
