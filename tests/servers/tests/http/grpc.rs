//! Rejections of gRPC requests, decoded by tonic.

use super::*;
use http_body::Body as _;
use tonic::{Code, Status};
use tonic_types::StatusExt;

fn status<B>(response: &Response<B>) -> Status {
    Status::from_header_map(response.headers()).expect("a status")
}

fn grpc() -> Request<()> {
    with("content-type", "application/grpc", Request::new(()))
}

#[test]
fn a_rejection_is_resource_exhausted_with_retry_info() {
    let mut service = layer([rule("é per cent %", "1/min"), rule("roomy", "9/min").cells(6)])
        .rejection_response(Grpc)
        .layer(Hello);
    assert_eq!(send(&mut service, Request::new(())).status(), 200);
    let rejected = send(&mut service, Request::new(()));
    assert_eq!(rejected.status(), 200);
    assert_eq!(header(&rejected, "content-type"), Some("application/grpc"));
    // A trailers-only response.
    assert!(rejected.body().is_end_stream());
    let status = status(&rejected);
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "rate limit exceeded: é per cent %");
    let details = status.get_error_details();
    let retry = details.retry_info().expect("retry info");
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(61)));
    let violations = &details.quota_failure().expect("a quota failure").violations;
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].subject, "é per cent %");
    assert_eq!(violations[0].description, "1 per 60s");
    // For HTTP clients and proxies.
    assert_eq!(header(&rejected, "retry-after"), Some("61"));
}

/// To the nanosecond. Zero fields are omitted in the encoding.
#[test]
fn the_delay_is_exact() {
    for (text, elapsed) in [("1/1ms", 0), ("1/1ms", 1), ("1/s", 1), ("1/366d", 123_456_789)] {
        let (live, clock) = live([rule("all", text).cells(1)]);
        let mut service = RateLimitLayer::new(Arc::clone(&live))
            .rejection_response(Grpc)
            .layer(Hello);
        send(&mut service, Request::new(()));
        clock.advance(Duration::from_nanos(elapsed));
        let (request, ()) = Request::new(()).into_parts();
        let rules = live.load();
        let expected = rules.check(&request).expect_err("no room").retry_after();
        let status = status(&send(&mut service, Request::new(())));
        let retry = status.get_details_retry_info().expect("retry info");
        assert_eq!(retry.retry_delay, expected, "{text}");
    }
}

/// Jitter is added to the delay, which is the time of `Retry-After`.
#[test]
fn the_delay_has_the_jitter_of_the_layer() {
    let mut service = layer([rule("all", "1/min")])
        .jitter(Duration::from_secs(20))
        .rejection_response(Grpc)
        .layer(Hello);
    send(&mut service, Request::new(()));
    let mut later = 0;
    for _ in 0..50 {
        let rejected = send(&mut service, Request::new(()));
        let details = status(&rejected).get_error_details();
        let delay = details.retry_info().expect("retry info").retry_delay;
        let delay = delay.expect("a delay");
        assert!((61..81).contains(&delay.as_secs()), "{delay:?}");
        later += u32::from(delay > Duration::from_secs(61));
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        assert_eq!(header(&rejected, "retry-after"), Some(&*seconds.to_string()));
    }
    assert!(later >= 40, "{later}");
}

/// By default, the response of a request depends on its content type. A browser's client reads the status from the headers of an empty
/// response that has the content type of its request.
#[test]
fn requests_of_grpc_get_a_response_of_grpc() {
    let mut service = layer([rule("all", "1/min")]).layer(Hello);
    let mut only_grpc = layer([rule("all", "1/min")])
        .rejection_response(Grpc)
        .layer(Hello);
    send(&mut service, grpc());
    send(&mut only_grpc, grpc());
    for (sent, expected) in [
        ("application/grpc", "application/grpc"),
        ("application/grpc+proto", "application/grpc"),
        ("application/grpc;charset=x", "application/grpc"),
        ("Application/GRPC", "application/grpc"),
        ("application/grpc-web", "application/grpc-web"),
        ("application/grpc-web+proto", "application/grpc-web+proto"),
        ("application/grpc-web-text", "application/grpc-web-text"),
        (
            "application/grpc-web-text+proto",
            "application/grpc-web-text+proto",
        ),
        ("application/grpc-web+json", "application/grpc-web+json"),
        (
            "Application/gRPC-Web+Proto; charset=utf-8",
            "application/grpc-web+proto",
        ),
    ] {
        let request = || with("content-type", sent, Request::new(()));
        for rejected in [send(&mut service, request()), send(&mut only_grpc, request())] {
            let found = status_and(&rejected, "content-type");
            assert_eq!(found, (200, Some(expected)), "{sent}");
            assert_eq!(header(&rejected, "retry-after"), Some("61"));
            assert!(rejected.body().is_end_stream());
            assert_eq!(status(&rejected).code(), Code::ResourceExhausted);
        }
    }
    for sent in [
        "application/grpcx",
        "application/grpc-webs",
        "text/grpc",
        "application/json",
    ] {
        let request = with("content-type", sent, Request::new(()));
        assert_eq!(send(&mut service, request).status(), 429, "{sent}");
    }
}

#[test]
fn a_missing_key_is_an_invalid_argument() {
    use ringgate::http::HttpKey;
    let key = HttpKey::peer().on_missing(ringgate::rules::OnMissingKey::Deny);
    let mut service = layer([rule("client", "1/min").by(&key)]).layer(Hello);
    let status = status(&send(&mut service, grpc()));
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.get_details_retry_info().is_none());
}

/// With tonic's client and server over a connection.
#[tokio::test]
async fn a_tonic_client_reads_retry_info() {
    use ringgate::http::HttpKey;
    use tokio_stream::wrappers::TcpListenerStream;
    use tonic::transport::{Channel, Server};
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;

    // Without an address, every request would be rejected.
    let key = HttpKey::peer();
    let limited = layer([rule("client", "2/min").by(&key)]).rejection_response(Grpc);
    let (listener, address) = listen().await;
    let (_reporter, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(limited).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let channel = Channel::from_shared(format!("http://{address}")).expect("an address");
    let mut client = HealthClient::new(channel.connect().await.expect("a connection"));
    for _ in 0..2 {
        let response = client
            .check(HealthCheckRequest::default())
            .await
            .expect("a response");
        assert!(response.metadata().get("ratelimit").is_some());
    }
    let status = client
        .check(HealthCheckRequest::default())
        .await
        .expect_err("no room");
    assert_eq!(status.code(), Code::ResourceExhausted);
    let retry = status.get_details_retry_info().expect("retry info");
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(62)));
}
