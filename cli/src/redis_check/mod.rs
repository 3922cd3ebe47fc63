//! `ringgate redis check`: whether the state and the settings of a server keep the bounds of shared limits.

mod args;
mod connection;
mod facts;
mod finding;
mod findings;
mod report;
mod rights;
mod scripts;

use core::slice;
use core::time::Duration;

pub(crate) use args::{CheckArgs, RedisCommand, without_secrets};
use connection::{Address, CallError, Connection};
use facts::Facts;
use finding::{Finding, Level, merge};
use report::CheckReport;
use scripts::Scripts;

use crate::failure::Failure;

/// Time for a whole check: a fixed part, and multiples of `--timeout`.
const DEADLINE: (Duration, u32) = (Duration::from_secs(5), 5);

/// Checks a server or a cluster.
///
/// # Errors
///
/// When an argument is invalid, or no server answers in time.
pub(crate) fn check(args: &CheckArgs) -> Result<CheckReport, Failure> {
    let urls = args.urls()?;
    let timeout = Duration::from_millis(args.timeout);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start a runtime", &error))?;
    let addresses: Vec<Address> = urls.iter().filter_map(|url| Address::parse(url)).collect();
    if addresses.iter().any(Address::is_encrypted) {
        ringgate::redis::install_tls_provider()?;
    }
    let context = runtime.enter();
    // Building a store validates each address and the prefix before anything is sent.
    for url in &urls {
        Scripts::new(slice::from_ref(url), &args.prefix, timeout, false)?;
    }
    drop(context);
    let run = CheckRun {
        prefix: &args.prefix,
        timeout,
        urls: &urls,
        addresses: &addresses,
    };
    let deadline = DEADLINE.0 + DEADLINE.1 * timeout;
    let report = runtime.block_on(async { tokio::time::timeout(deadline, run.first()).await });
    // A pending name lookup must not delay the exit.
    runtime.shutdown_background();
    let reason = match report {
        Ok(Ok(report)) => return Ok(report),
        Ok(Err(CallError::NoAnswer(reason) | CallError::Server(reason))) => reason,
        Err(_) => format!("not finished within {deadline:?}"),
    };
    let servers: Vec<String> = addresses.iter().map(Address::to_string).collect();
    Err(Failure::new(format!(
        "cannot check {}: {reason}",
        servers.join(", ")
    )))
}

/// The arguments of a check.
struct CheckRun<'a> {
    prefix: &'a str,
    timeout: Duration,
    urls: &'a [String],
    addresses: &'a [Address],
}

impl CheckRun<'_> {
    /// Checks the first server that answers.
    async fn first(&self) -> Result<CheckReport, CallError> {
        let mut silent = Vec::new();
        for (number, (url, address)) in self.urls.iter().zip(self.addresses).enumerate() {
            let findings = match Server::connect(address.clone(), self.timeout).await {
                Ok(server) => {
                    let is_cluster = server.facts.is_cluster();
                    let (urls, others) = match is_cluster {
                        true => (self.urls, &[][..]),
                        false => (slice::from_ref(url), &self.addresses[number + 1..]),
                    };
                    let mut findings = self.findings(urls, server).await?;
                    findings.extend(findings::of_addresses(&silent, others));
                    findings
                }
                Err(CallError::NoAnswer(reason)) => {
                    silent.push((address.place(), reason));
                    continue;
                }
                Err(CallError::Server(error)) => {
                    let finding = findings::of_login(address.user(), &error);
                    vec![finding.ok_or(CallError::Server(error))?]
                }
            };
            return Ok(CheckReport {
                server: address.to_string(),
                findings,
            });
        }
        let reasons: Vec<String> = silent.into_iter().map(|(_, reason)| reason).collect();
        Err(CallError::NoAnswer(reasons.join("; ")))
    }

    /// Checks a server, and the other primaries of its cluster.
    async fn findings(&self, urls: &[String], server: Server) -> Result<Vec<Finding>, CallError> {
        if server.facts.is_sentinel() {
            return Ok(findings::of_server(&server.facts));
        }
        let connection = server.connection.clone();
        let is_cluster = server.facts.is_cluster();
        let (servers, of_cluster) = match is_cluster {
            true => self.primaries(server).await,
            false => (vec![server], None),
        };
        let (mut of_servers, mut is_allowed) = (Vec::new(), true);
        for server in &servers {
            let rights = server.rights(self.prefix).await?;
            is_allowed &= rights.level == Level::Ok;
            for mut finding in findings::of_server(&server.facts).into_iter().chain([rights]) {
                finding.nodes.push(server.address.place());
                of_servers.push(finding);
            }
        }
        let mut findings = merge(of_servers, servers.len());
        findings.extend(of_cluster);
        if is_allowed {
            let scripts = Scripts::new(urls, self.prefix, self.timeout, is_cluster)
                .map_err(|failure| CallError::NoAnswer(failure.to_string()))?;
            findings.extend(scripts.judge().await);
        } else {
            findings.push(findings::scripts_not_tried());
        }
        // The store reports a timeout for a server that stopped answering; PING tells the two apart.
        match connection.call(&["PING"]).await {
            Err(CallError::NoAnswer(reason)) => Err(CallError::NoAnswer(reason)),
            _ => Ok(findings),
        }
    }

    /// The reachable primaries of a cluster, and the finding about the cluster; without rights, only the first node.
    async fn primaries(&self, first: Server) -> (Vec<Server>, Option<Finding>) {
        let facts = first.facts.clone();
        let (mut servers, mut unreachable) = (Vec::new(), Vec::new());
        for node in facts.nodes.iter().filter(|node| node.is_primary && !node.myself) {
            let other = first.address.of_node(&node.host, node.port);
            match Server::connect(other.clone(), self.timeout).await {
                Ok(server) => servers.push(server),
                Err(_) => unreachable.push(other.place()),
            }
        }
        // A replica decides nothing, so it is not checked itself.
        let is_primary = facts.nodes.iter().any(|node| node.is_primary && node.myself);
        if servers.is_empty() || is_primary {
            servers.insert(0, first);
        }
        (servers, Some(findings::of_cluster(&facts, &unreachable)))
    }
}

/// A server that answers.
struct Server {
    address: Address,
    connection: Connection,
    facts: Facts,
}

impl Server {
    async fn connect(address: Address, timeout: Duration) -> Result<Self, CallError> {
        let connection = Connection::open(&address, timeout).await?;
        match connection.call(&["PING"]).await {
            // PING may be forbidden to a user that may do everything else.
            Err(CallError::Server(error)) if findings::of_login("", &error).is_none() => {}
            answer => drop(answer?),
        }
        Ok(Self {
            facts: Facts::read(&connection).await?,
            address,
            connection,
        })
    }

    async fn rights(&self, prefix: &str) -> Result<Finding, CallError> {
        let key = format!("{prefix}:{{{}}}:doctor", scripts::unique_key());
        let (user, is_cluster) = (self.address.user(), self.facts.is_cluster());
        rights::judge(&self.connection, user, prefix, &key, is_cluster).await
    }
}
