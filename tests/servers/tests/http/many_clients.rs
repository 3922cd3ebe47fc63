//! A thousand clients of one server, in tokio's paused time: clients that obey its responses, and clients that back off.

use core::iter;

use super::*;
use ringgate::Gcra;
use tower::util::BoxCloneSyncService;

const CLIENTS: usize = 1_000;

/// Times in nanoseconds, and the permits admitted then.
type Admissions = Mutex<Vec<(u64, u64)>>;

type Client = BoxCloneSyncService<Request<()>, Response<Body>, tower::BoxError>;

#[path = "../../../common/windows.rs"]
mod windows;

/// A server to which the way takes 10 ms, with its admissions.
fn server(rule: Rule<Parts>) -> (Client, Arc<Admissions>) {
    server_with_jitter(rule, Duration::ZERO)
}

/// A server that adds jitter to `Retry-After`.
fn server_with_jitter(rule: Rule<Parts>, max_jitter: Duration) -> (Client, Arc<Admissions>) {
    let rules = paused([rule]);
    let (start, admitted) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let record = Arc::clone(&admitted);
    let hello = tower::service_fn(move |_: Request<()>| {
        let at = u64::try_from(start.elapsed().as_nanos()).expect("a time");
        record.lock().expect("no panic").push((at, 1));
        core::future::ready(Ok::<_, Infallible>(Response::new(Body::default())))
    });
    let server = RateLimitLayer::from(rules).jitter(max_jitter).layer(hello);
    let remote = tower::service_fn(move |request| {
        let server = server.clone();
        async move {
            sleep(Duration::from_millis(10)).await;
            let Ok(response) = server.oneshot(request).await;
            sleep(Duration::from_millis(10)).await;
            Ok::<_, tower::BoxError>(response)
        }
    });
    (BoxCloneSyncService::new(remote), admitted)
}

/// A limiter of one process that spaces its requests evenly.
fn pace(text: &str) -> Fair<RateLimiter<Gcra, TokioClock>> {
    let pace = Gcra::token_bucket(quota(text), 1).expect("a bucket");
    Fair::new(RateLimiter::with_clock(pace, TokioClock::new()))
}

fn obedient(limiter: Fair<RateLimiter<Gcra, TokioClock>>, server: &Client) -> Client {
    let client = ClientRateLimitLayer::new(Arc::new(limiter)).layer(server.clone());
    BoxCloneSyncService::new(client)
}

/// Each client sends a request until it is admitted, and pauses by `pause(rejections)`. Returns the rejections of each.
async fn rejections(clients: impl Iterator<Item = Client>, pause: fn(u32) -> Duration) -> Vec<u32> {
    let tasks: Vec<_> = clients
        .enumerate()
        .map(|(name, client)| {
            tokio::spawn(async move {
                for rejected in 0.. {
                    let request = with("x-api-key", &name.to_string(), Request::new(()));
                    let response = client.clone().oneshot(request).await.expect("a response");
                    match response.status().as_u16() {
                        200 => return rejected,
                        status => assert_eq!(status, 429),
                    }
                    sleep(pause(rejected)).await;
                }
                unreachable!("the loop does not end")
            })
        })
        .collect();
    let mut rejections = Vec::new();
    for task in tasks {
        rejections.push(task.await.expect("no panic"));
    }
    rejections
}

fn no_pause(_: u32) -> Duration {
    Duration::ZERO
}

/// The clients that were rejected, and those of them that were admitted at the first retry.
fn first_retries(rejections: &[u32]) -> (usize, usize) {
    let rejected = rejections.iter().filter(|rejected| **rejected > 0).count();
    let once = rejections.iter().filter(|rejected| **rejected == 1).count();
    (rejected, once)
}

/// Prints a run, and checks that the server has admitted each client, and never more than its limit.
fn report(name: &str, rejections: &[u32], admitted: &Admissions, limit: u64) -> u32 {
    let mut admitted = admitted.lock().expect("no panic");
    let total = rejections.iter().sum();
    let (rejected, once) = first_retries(rejections);
    let most = windows::most_in_a_window(&mut admitted, 1_000_000_000);
    let end = admitted.last().expect("admissions").0 / 1_000_000;
    println!(
        "{name}: {total} rejections, {once} of {rejected} clients admitted at the first retry, {end} ms"
    );
    assert!(most <= limit, "{most} in a second");
    total
}

async fn naive() -> u32 {
    let (server, admitted) = server(rule("all", "100/s"));
    let backoff = |rejected| Duration::from_millis(100) * 2_u32.pow(rejected);
    let rejections = rejections(iter::repeat_n(server, CLIENTS), backoff).await;
    report("exponential backoff", &rejections, &admitted, 100)
}

/// Each client is a process of its own, and all share one limit of the server.
#[tokio::test(start_paused = true)]
async fn processes_with_jitter_are_admitted_at_their_first_retry() {
    let (server, admitted) = server(rule("all", "100/s"));
    // The server admits all in ten seconds.
    let clients = (0..CLIENTS).map(|_| obedient(pace("1000/s").jitter(Duration::from_secs(20)), &server));
    let rejections = rejections(clients, no_pause).await;
    let total = report("processes that obey", &rejections, &admitted, 100);
    let (rejected, once) = first_retries(&rejections);
    assert!(
        rejected >= 900 && once * 100 >= rejected * 95,
        "{once} of {rejected}"
    );
    let naive = naive().await;
    assert!(
        naive >= 5 * total,
        "{naive} rejections with backoff, {total} without"
    );
}

/// Each client is a process of its own without jitter. The server spreads their retries.
#[tokio::test(start_paused = true)]
async fn a_server_with_jitter_admits_clients_at_their_first_retry() {
    let mut shares = Vec::new();
    for max_jitter in [0, 30] {
        let (server, admitted) = server_with_jitter(rule("all", "100/s"), Duration::from_secs(max_jitter));
        let clients = (0..CLIENTS).map(|_| obedient(pace("1000/s"), &server));
        let rejections = rejections(clients, no_pause).await;
        let name = format!("a server with {max_jitter} s of jitter");
        report(&name, &rejections, &admitted, 100);
        let (rejected, once) = first_retries(&rejections);
        assert!(rejected >= 900, "{rejected}");
        shares.push(once * 100 / rejected);
    }
    assert!(shares[0] <= 50 && shares[1] >= 95, "{shares:?} %");
}

/// All clients are tasks of one process, which asks for twice what the server admits.
#[tokio::test(start_paused = true)]
async fn one_process_is_rejected_a_few_times() {
    let (server, admitted) = server(rule("all", "100/s"));
    let client = obedient(pace("200/s"), &server);
    let rejections = rejections(iter::repeat_n(client, CLIENTS), no_pause).await;
    let total = report("one process that obeys", &rejections, &admitted, 100);
    let (rejected, once) = first_retries(&rejections);
    assert!(
        rejected > 0 && once * 100 >= rejected * 95,
        "{once} of {rejected}"
    );
    let naive = naive().await;
    assert!(
        naive >= 50 * total,
        "{naive} rejections with backoff, {total} without"
    );
}

/// Each client has a limit of its own, so that `Retry-After` is exact without any jitter.
#[tokio::test(start_paused = true)]
async fn clients_with_their_own_limits_are_admitted_at_their_first_retry() {
    let key = HttpKey::header(HeaderName::from_static("x-api-key"));
    let (server, admitted) = server(rule("user", "1/s").by(&key));
    let clients: Vec<_> = (0..CLIENTS).map(|_| obedient(pace("1000/s"), &server)).collect();
    // Without a pause, since a response that leaves no permits would delay the next request.
    let first = rejections(iter::repeat_n(server, CLIENTS), no_pause).await;
    assert_eq!(first, [0; CLIENTS]);
    let rejections = rejections(clients.into_iter(), no_pause).await;
    report(
        "clients with their own limits",
        &rejections,
        &admitted,
        2 * CLIENTS as u64,
    );
    assert_eq!(first_retries(&rejections), (CLIENTS, CLIENTS));
}
