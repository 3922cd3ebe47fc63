//! The order in which a server is looked at.

// Floors, from the ground up: a module names only modules above it in this list.
mod address;
mod finding;
mod wire;
mod facts;
mod kind;
mod login;
mod memory;
mod persistence;
mod replication;
mod rights;
mod clock;
mod cluster;
mod latency;
mod strict;
mod report;

use core::time::Duration;

use self::address::Address;
use self::clock::Seen;
use self::facts::Facts;
use self::finding::{Finding, Level, merged};
use self::kind::Kind;
use self::latency::Figures;
use self::report::{Clock, Report};
use self::strict::Strict;
use self::wire::{Trouble, Wire, text};
use super::{DoctorArgs, Examined};
use crate::failure::Failure;

/// All of it takes so long at the most, and as many times the time of an answer: what is measured takes its time even
/// when answers come at once.
const PATIENCE: (Duration, u32) = (Duration::from_secs(5), 5);

/// A server that is looked at.
struct Server {
    place: String,
    user: String,
    wire: Wire,
    facts: Facts,
}

/// Looks at the server, or the cluster, for no longer than the arguments say.
///
/// # Errors
///
/// When the arguments make no sense, and when nobody answers in time.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Examined, Failure> {
    let urls = args.urls()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("no runtime can be started", error))?;
    let report = runtime.block_on(examine(args, &urls));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    let report = report?;
    Ok(Examined {
        text: if args.json { report.json()? } else { report.text() },
        problem: report.has_problem(),
    })
}

/// Looks at the server, or the cluster, that these addresses are of.
async fn examine(args: &DoctorArgs, urls: &[String]) -> Result<Report, Failure> {
    let within = Duration::from_millis(args.timeout);
    // Says of each what is wrong with it. Nothing is sent before the first wait.
    for url in urls {
        Strict::new(core::slice::from_ref(url), &args.prefix, within, false)?;
    }
    let addresses: Vec<Address> = urls.iter().filter_map(|url| Address::of(url)).collect();
    let server = addresses
        .iter()
        .map(Address::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let all = PATIENCE.0 + PATIENCE.1 * within;
    match tokio::time::timeout(all, look(args, urls, &addresses, within)).await {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(Silent(why))) => Err(Failure::Unreachable { server, why }),
        Err(_) => {
            let why = format!("its answers take so long that the look is not over after {all:?}");
            Err(Failure::Unreachable { server, why })
        }
    }
}

/// Nobody answers, and why.
struct Silent(String);

impl From<Trouble> for Silent {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Silent(why) => Self(why),
            Trouble::Error(error) => Self(error.words),
        }
    }
}

impl From<Failure> for Silent {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

async fn look(
    args: &DoctorArgs,
    urls: &[String],
    addresses: &[Address],
    within: Duration,
) -> Result<Report, Silent> {
    let mut why = Vec::new();
    for (url, address) in urls.iter().zip(addresses) {
        let wire = match hello(address, within).await {
            Ok(wire) => wire,
            Err(Trouble::Silent(silent)) => {
                why.push(silent);
                continue;
            }
            Err(Trouble::Error(error)) => {
                let finding = login::judge(address, &error);
                let finding = finding.ok_or(Silent(error.words))?;
                return Ok(Report::new(address.to_string()).with(finding));
            }
        };
        return look_at(args, (url, urls), address, wire, within).await;
    }
    Err(Silent(why.join("; ")))
}

/// Connects, and sees that questions are answered.
async fn hello(address: &Address, within: Duration) -> Result<Wire, Trouble> {
    let wire = Wire::to(address, within).await?;
    match wire.ask(&["PING"]).await {
        Err(Trouble::Error(error)) if login::judge(address, &error).is_none() => Ok(wire),
        answer => answer.map(|_| wire),
    }
}

/// `url`: of the server that answers; `urls`: all of them.
async fn look_at(
    args: &DoctorArgs,
    (url, urls): (&String, &[String]),
    address: &Address,
    wire: Wire,
    within: Duration,
) -> Result<Report, Silent> {
    let facts = Facts::of(&wire).await?;
    let mut report = Report::of(address.to_string(), Kind::of(&facts));
    if kind::is_sentinel(&facts) {
        return Ok(report.with(kind::judge(&facts)));
    }
    let cluster = facts.is_cluster();
    let first = Server {
        place: address.place(),
        user: address.user().to_owned(),
        wire: wire.clone(),
        facts,
    };
    let (servers, of_cluster) = if cluster {
        primaries(first, address, within).await?
    } else {
        (vec![first], None)
    };
    // While they are watched, the rest goes on.
    let watched: Vec<_> = servers
        .iter()
        .map(|server| tokio::spawn(clock::watch(server.wire.clone())))
        .collect();
    let (mut of_servers, mut may) = (Vec::new(), true);
    for server in &servers {
        let rights = server.rights(&args.prefix, cluster).await?;
        may &= rights.level != Level::Problem;
        let findings = [
            Some(kind::judge(&server.facts)),
            Some(rights),
            memory::judge(&server.facts),
            persistence::judge(&server.facts),
            replication::judge(&server.facts),
        ];
        let place = |finding| (server.place.clone(), finding);
        of_servers.extend(findings.into_iter().flatten().map(place));
    }
    report.findings = match servers.len() {
        1 => of_servers.into_iter().map(|(_, finding)| finding).collect(),
        nodes => merged(of_servers, nodes),
    };
    report.findings.extend(of_cluster);
    report.latency.extend(pings(&wire).await?);
    let urls = if cluster { urls } else { core::slice::from_ref(url) };
    let (finding, figures) = if may {
        Strict::new(urls, &args.prefix, within, cluster)?.judge().await
    } else {
        (strict::not_allowed(), Vec::new())
    };
    // A store says of a server that answers nobody any more only that it did not answer in time.
    if let Err(Trouble::Silent(why)) = wire.ask(&["PING"]).await {
        return Err(Silent(why));
    }
    report.findings.push(finding);
    report.latency.extend(figures);
    if !report.latency.is_empty() {
        report.findings.push(latency::judge(&report.latency));
    }
    let mut seen: Vec<(String, Seen)> = Vec::new();
    for (server, watched) in servers.iter().zip(watched) {
        let clock = watched
            .await
            .map_err(|_| Silent("the watch was given up".into()))??;
        seen.extend(clock.map(|clock| (server.place.clone(), clock)));
    }
    report.findings.extend(clock::judge_cluster(&seen));
    let clocks = seen.into_iter().map(|(server, seen)| Clock { server, seen });
    report.clocks.extend(clocks);
    Ok(report)
}

impl Server {
    async fn rights(&self, prefix: &str, cluster: bool) -> Result<Finding, Trouble> {
        let key = format!("{prefix}:{{{}}}:doctor", strict::nobodys());
        let user = match self.wire.ask(&["ACL", "WHOAMI"]).await {
            Ok(user) => text(&user),
            Err(Trouble::Error(_)) => None,
            Err(silent) => return Err(silent),
        };
        let user = user.as_deref().unwrap_or(&self.user);
        rights::judge(&self.wire, user, prefix, &key, cluster).await
    }
}

/// How long PINGs take, if they are allowed.
async fn pings(wire: &Wire) -> Result<Option<Figures>, Trouble> {
    let figures = Figures::of("PING", async |_| wire.ask(&["PING"]).await.map(drop));
    match figures.await {
        Ok(figures) => Ok(Some(figures)),
        Err(Trouble::Error(_)) => Ok(None),
        Err(silent) => Err(silent),
    }
}

/// All primaries of the cluster that this one is a node of, as far as they can be reached, and what is said of it.
async fn primaries(
    first: Server,
    address: &Address,
    within: Duration,
) -> Result<(Vec<Server>, Option<Finding>), Silent> {
    let asked = [vec!["CLUSTER", "INFO"], vec!["CLUSTER", "NODES"]];
    let answers = first.wire.ask_all(&asked).await?;
    let said: Option<Vec<String>> = answers.iter().map(|answer| text(answer.as_ref().ok()?)).collect();
    let Some([info, nodes]) = said.as_deref() else {
        // The rights say so.
        return Ok((vec![first], None));
    };
    let nodes = cluster::nodes(nodes);
    let (mut servers, mut away) = (Vec::new(), Vec::new());
    for node in nodes.iter().filter(|node| node.is_primary() && !node.myself) {
        let other = address.elsewhere(&node.host, node.port);
        match meet(&other, within).await {
            Ok(server) => servers.push(server),
            Err(_) => away.push(other.place()),
        }
    }
    // It may be a replica, which decides about nothing.
    if servers.is_empty() || nodes.iter().any(|node| node.is_primary() && node.myself) {
        servers.insert(0, first);
    }
    Ok((servers, Some(cluster::judge(info, &nodes, &away))))
}

async fn meet(address: &Address, within: Duration) -> Result<Server, Trouble> {
    let wire = hello(address, within).await?;
    Ok(Server {
        place: address.place(),
        user: address.user().to_owned(),
        facts: Facts::of(&wire).await?,
        wire,
    })
}
