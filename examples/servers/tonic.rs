//! A rate-limited tonic server, whose rejections tell the client when to retry.
//!
//! ```text
//! cargo run --release --package ringgate-servers --bin tonic -- --once
//! cargo run --release --package ringgate-servers --bin tonic
//! ```
//!
//! With `--once`, it sends itself requests, prints the decoded responses, and exits. The service is the health check of
//! tonic, which needs no generated code.

use core::error::Error;
use std::env;

use ringgate::http::{Grpc, HttpKey, RateLimitLayer};
use ringgate::{Rule, RuleSet};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
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

    let client = HttpKey::peer();
    let rules = RuleSet::builder()
        .rule(Rule::new("client", "3/min".parse()?).by(&client))
        .rule(Rule::new("total", "1000/s".parse()?))
        .build()?;

    let address = if once { "127.0.0.1:0" } else { "127.0.0.1:50051" };
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let (_reporter, health) = tonic_health::server::health_reporter();
    let serving = Server::builder()
        .layer(RateLimitLayer::from(rules).rejection_response(Grpc))
        .add_service(health)
        .serve_with_incoming(TcpListenerStream::new(listener));
    if !once {
        println!("grpc.health.v1.Health at {address}, three calls a minute for each client");
        return Ok(serving.await?);
    }
    tokio::spawn(serving);

    let channel = Channel::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let mut client = HealthClient::new(channel);
    for _ in 0..5 {
        match client.check(HealthCheckRequest::default()).await {
            Ok(response) => {
                let quota = response.metadata().get("ratelimit");
                println!(
                    "admitted: {:?}, ratelimit: {quota:?}",
                    response.get_ref().status()
                );
            }
            Err(status) => {
                println!("{:?}: {}", status.code(), status.message());
                if let Some(info) = status.get_details_retry_info() {
                    println!("  retry after {:?}", info.retry_delay);
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
