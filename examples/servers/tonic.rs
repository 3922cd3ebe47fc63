//! A gRPC server of tonic limited by rules, whose refusals say when to come back.
//!
//! ```text
//! cargo run --release --package ringgate-servers --bin tonic -- --once
//! cargo run --release --package ringgate-servers --bin tonic
//! ```
//!
//! With `--once` it sends itself requests, prints what a client makes of the answers, and ends. The service is the health
//! check that tonic comes with, since that needs no code to be generated.

use core::error::Error;
use std::env;

use ringgate::http::{ClientIp, HttpKey, RateLimitLayer};
use ringgate::{Rule, RuleSet};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::server::TcpConnectInfo;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let once = match (env::args().nth(1).as_deref(), env::args().nth(2)) {
        (None, _) => false,
        (Some("--once"), None) => true,
        _ => return Err("usage: tonic [--once]".into()),
    };

    let clients =
        ClientIp::peer().peer_from(|info: &TcpConnectInfo| info.remote_addr().map(|peer| peer.ip()));
    let client = HttpKey::client(clients).key();
    let rules = RuleSet::builder()
        .rule(Rule::new("client", "3/min".parse()?).by(&client))
        .rule(Rule::new("everybody", "1000/s".parse()?))
        .build()?;

    let address = if once { "127.0.0.1:0" } else { "127.0.0.1:50051" };
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let (_reporter, health) = tonic_health::server::health_reporter();
    let serving = Server::builder()
        .layer(RateLimitLayer::from(rules).grpc())
        .add_service(health)
        .serve_with_incoming(TcpListenerStream::new(listener));
    if !once {
        println!("grpc.health.v1.Health at {address}, three calls a minute");
        return Ok(serving.await?);
    }
    tokio::spawn(serving);

    let channel = Channel::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let mut client = HealthClient::new(channel);
    for _ in 0..5 {
        match client.check(HealthCheckRequest::default()).await {
            Ok(answer) => {
                let told = answer.metadata().get("ratelimit");
                println!("served: {:?}, ratelimit: {:?}", answer.get_ref().status(), told);
            }
            Err(status) => {
                println!("{:?}: {}", status.code(), status.message());
                if let Some(info) = status.get_details_retry_info() {
                    println!("  come back after {:?}", info.retry_delay);
                }
                if let Some(failure) = status.get_details_quota_failure() {
                    for violation in failure.violations {
                        println!("  {}: {}", violation.subject, violation.description);
                    }
                }
            }
        }
    }
    Ok(())
}
