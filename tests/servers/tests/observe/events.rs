use super::*;
use ringgate::http::{ClientIp, HttpKey, PeerAddress, RateLimitLayer};
use ringgate::observe::DenialEvents;
use tower::{Layer, Service};

struct Request {
    user: &'static str,
    bytes: u64,
}

const REQUEST: Request = Request {
    user: "kept secret",
    bytes: 1,
};

/// Two rules whose limits are used up, and their clock.
fn full() -> Result<(RuleSet<Request, ManualClock>, ManualClock), Box<dyn Error>> {
    let clock = ManualClock::new();
    let user = Key::new("user", |request: &Request, key| request.user.hash(key));
    let bytes = Cost::new("bytes", |request: &Request| request.bytes);
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("user", "2/h".parse()?).also("2/2h".parse()?).by(&user))
        .rule(Rule::new("bytes", "10/h".parse()?).cost(&bytes))
        .build_with(clock.clone(), SEEDS)?;
    for _ in 0..2 {
        rules.check(&REQUEST).map_err(|denied| denied.to_string())?;
    }
    Ok((rules, clock))
}

fn deny(rules: &RuleSet<Request, ManualClock>, events: &DenialEvents, times: u32) {
    for _ in 0..times {
        let answer = rules.check(&REQUEST).inspect_err(|denied| events.emit(denied));
        assert!(answer.is_err());
    }
}

/// The suppressed events of each event that so many denials emit.
fn suppressed(
    recorder: &EventRecorder,
    rules: &RuleSet<Request, ManualClock>,
    events: &DenialEvents,
    times: u32,
) -> Vec<String> {
    let emitted = recorder.during(|| deny(rules, events, times));
    emitted
        .iter()
        .map(|fields| fields["suppressed"].clone())
        .collect()
}

/// The only event that a denial of a request emits.
fn emitted(rules: &RuleSet<Request, ManualClock>, request: &Request) -> Fields {
    let events = DenialEvents::new("10/s".parse().expect("a quota")).expect("events");
    let mut emitted = EventRecorder::new(LevelFilter::WARN).during(|| {
        events.emit(&rules.check(request).expect_err("no room"));
    });
    assert_eq!(emitted.len(), 1, "{emitted:?}");
    emitted.remove(0)
}

/// The only message of several requests.
fn only(messages: Vec<String>) -> String {
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.into_iter().collect()
}

/// No event is emitted within the second. After the second and one cell, three more are emitted, of which the first counts all suppressed
/// events.
#[test]
fn events_keep_their_quota_and_the_next_event_counts_those_suppressed() -> Result<(), Box<dyn Error>> {
    let (rules, clock) = full()?;
    let events = DenialEvents::new("3/s".parse()?)?;
    let recorder = EventRecorder::new(LevelFilter::TRACE);
    for (later, denials, counts) in [
        (0, 50, &["0", "0", "0"][..]),
        (900, 10, &[]),
        (1_000, 5, &["57", "0", "0"]),
        (60_000, 1, &["2"]),
    ] {
        clock.advance(Duration::from_millis(later));
        assert_eq!(suppressed(&recorder, &rules, &events, denials), counts);
    }
    Ok(())
}

#[test]
fn an_event_has_the_rules_and_the_quota_and_not_the_key() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let request = Request { bytes: 9, ..REQUEST };
    let fields = emitted(&rules, &request);
    let names: Vec<_> = fields.keys().copied().collect();
    let all = "limit message remaining retry_after_ms rules suppressed";
    let all: Vec<&str> = all.split(' ').collect();
    assert_eq!(names, all);
    assert_eq!(fields["message"], "rate limit reached");
    assert_eq!(fields["rules"], "user, bytes");
    // The quota of two hours has the longest retry time. Its cells are as long as those of the hour.
    assert_eq!((&*fields["limit"], &*fields["remaining"]), ("2", "0"));
    let denied = rules.check(&request).expect_err("both are full");
    let wait = denied.retry_after().expect("a time");
    let millis = wait.as_nanos().div_ceil(1_000_000);
    assert_eq!(fields["retry_after_ms"], millis.to_string());
    assert!(wait > Duration::from_secs(7200), "{wait:?}");
    assert!(!format!("{fields:?}").contains("secret"));
    Ok(())
}

/// Emits one denial with these parts of the request.
fn emitted_with(events: &DenialEvents, parts: &[(&str, &str)]) -> Result<Fields, Box<dyn Error>> {
    let (rules, _) = full()?;
    let mut emitted = EventRecorder::new(LevelFilter::WARN).during(|| {
        let denied = rules.check(&REQUEST).expect_err("full");
        events.emit_with(&denied, |event| {
            for &(name, value) in parts {
                let part = match name {
                    "key" => &mut event.key,
                    "client" => &mut event.client,
                    _ => &mut event.path,
                };
                *part = Some(value.into());
            }
        });
    });
    Ok(emitted.pop().ok_or("no event")?)
}

#[test]
fn parts_of_a_request_are_redacted_unless_revealed() -> Result<(), Box<dyn Error>> {
    let long = "x".repeat(300);
    for (name, value, revealed) in [
        ("key", "alice", "alice"),
        ("client", "192.0.2.7", "192.0.2.7"),
        ("client", "2001:db8::1", "2001:db8::1"),
        ("path", "/reset?token=secret", "/reset?token=secret"),
        ("key", "", ""),
        // A recorder gets it unchanged, and a subscriber that writes lines escapes it.
        ("key", "a\nWARN forged", "a\nWARN forged"),
        ("path", long.as_str(), &long[..256]),
    ] {
        let events = DenialEvents::new("1000/s".parse()?)?;
        let fields = emitted_with(&events, &[(name, value)])?;
        let shown = &fields[name];
        assert_eq!(shown.len(), 16, "{shown}");
        assert!(shown.chars().all(|c| c.is_ascii_hexdigit()), "{shown}");
        let mut others = ["key", "client", "path"]
            .into_iter()
            .filter(|other| *other != name);
        assert!(others.all(|other| !fields.contains_key(other)), "{fields:?}");
        // The same digits for the same value, and others for another one or in another instance.
        assert_eq!(emitted_with(&events, &[(name, value)])?[name], *shown);
        assert_ne!(emitted_with(&events, &[(name, "another")])?[name], *shown);
        let other = DenialEvents::new("1000/s".parse()?)?;
        assert_ne!(emitted_with(&other, &[(name, value)])?[name], *shown);

        let events = events.revealed();
        assert_eq!(emitted_with(&events, &[(name, value)])?[name], revealed);
    }
    let events = DenialEvents::new("1000/s".parse()?)?.revealed();
    let parts = [("key", "alice"), ("client", "192.0.2.7"), ("path", "/")];
    let fields = emitted_with(&events, &parts)?;
    assert!(
        parts.iter().all(|(name, value)| fields[name] == *value),
        "{fields:?}"
    );
    Ok(())
}

/// A suppressed event costs no text.
#[test]
fn parts_are_read_for_emitted_events_only() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let events = DenialEvents::new("2/s".parse()?)?;
    let mut read = 0;
    let mut deny = |times| {
        for _ in 0..times {
            let denied = rules.check(&REQUEST).expect_err("full");
            events.emit_with(&denied, |_| read += 1);
        }
        read
    };
    assert_eq!(deny(10), 0, "no subscriber");
    let mut all = 0;
    EventRecorder::new(LevelFilter::WARN).during(|| all = deny(10));
    assert_eq!(all, 2);
    Ok(())
}

#[test]
fn a_request_that_is_never_admitted_has_no_retry_time() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let fields = emitted(
        &rules,
        &Request {
            user: "another",
            bytes: 11,
        },
    );
    assert_eq!(fields["rules"], "bytes");
    assert_eq!((&*fields["limit"], &*fields["remaining"]), ("10", "8"));
    assert!(!fields.contains_key("retry_after_ms"));
    Ok(())
}

#[test]
fn the_retry_time_is_rounded_up() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let rules = RuleSetBuilder::<str>::new()
        .rule(Rule::new("all", "1/s".parse()?).algorithm(ringgate::rules::RuleAlgorithm::Log))
        .build_with(clock.clone(), SEEDS)?;
    rules.check("").map_err(|denied| denied.to_string())?;
    clock.advance(Duration::from_micros(500));
    let events = DenialEvents::new("10/s".parse()?)?;
    let emitted = EventRecorder::new(LevelFilter::WARN).during(|| {
        let denied = rules.check("").expect_err("full");
        assert!(denied.retry_after().expect("a time") < Duration::from_millis(1000));
        events.emit(&denied);
    });
    assert_eq!(emitted[0]["retry_after_ms"], "1000");
    Ok(())
}

#[test]
fn an_event_without_a_subscriber_is_neither_emitted_nor_counted() -> Result<(), Box<dyn Error>> {
    let (rules, _) = full()?;
    let events = DenialEvents::new("1/s".parse()?)?;
    deny(&rules, &events, 20);
    for (level, denials, counts) in [(LevelFilter::ERROR, 20, &[][..]), (LevelFilter::WARN, 1, &["0"])] {
        // The quota was not charged for those that were not emitted.
        let found = suppressed(&EventRecorder::new(level), &rules, &events, denials);
        assert_eq!(found, counts);
    }
    Ok(())
}

#[test]
fn each_denial_of_several_threads_is_emitted_or_counted() -> Result<(), Box<dyn Error>> {
    const THREADS: usize = 8;
    const EACH: u32 = 2_000;
    let (rules, clock) = full()?;
    let events = DenialEvents::new("5/s".parse()?)?;
    let recorder = EventRecorder::new(LevelFilter::WARN);
    let emitted = thread::scope(|scope| {
        let work = || recorder.record(|| deny(&rules, &events, EACH));
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .for_each(|worker| worker.join().expect("a worker"));
        recorder.take()
    });
    assert_eq!(emitted.len(), 5);
    clock.advance(Duration::from_secs(2));
    let last = recorder.during(|| deny(&rules, &events, 1));
    let all = emitted.iter().chain(&last);
    let suppressed: u64 = all
        .map(|fields| fields["suppressed"].parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(suppressed + 5, THREADS as u64 * u64::from(EACH));
    Ok(())
}

/// The messages that are logged about these requests, under a rule with this key.
fn logged(
    key: Key<http::request::Parts>,
    requests: impl IntoIterator<Item = http::Request<()>>,
) -> Vec<String> {
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("client", "9/s".parse().expect("a quota")).by(&key))
        .build_with(ManualClock::new(), SEEDS)
        .expect("rules");
    let layer = RateLimitLayer::from(rules);
    let inner = tower::service_fn(|_: http::Request<()>| {
        let response = http::Response::new(String::new());
        core::future::ready(Ok::<_, core::convert::Infallible>(response))
    });
    let events = EventRecorder::new(LevelFilter::WARN).during(|| {
        for request in requests {
            drop(layer.clone().layer(inner).call(request));
        }
    });
    events.iter().map(|event| event["message"].clone()).collect()
}

/// Requests with these `X-Forwarded-For` headers, of the proxy 10.0.0.1.
fn forwarded(lines: &[Option<&'static str>]) -> Vec<String> {
    let clients = ClientIp::peer()
        .x_forwarded_for(["10.0.0.0/8"])
        .expect("a network");
    let request = |line: &Option<&'static str>| {
        let mut request = http::Request::new(());
        request.extensions_mut().insert(PeerAddress([10, 0, 0, 1].into()));
        if let Some(line) = line {
            let line = http::HeaderValue::from_static(line);
            request.headers_mut().insert("x-forwarded-for", line);
        }
        request
    };
    logged(HttpKey::client(clients), lines.iter().map(request))
}

/// Each request is rejected, and the log has one line for all.
#[test]
fn a_missing_address_is_logged_once() {
    let event = only(logged(HttpKey::peer(), [(); 3].map(|()| http::Request::new(()))));
    assert!(
        event.contains("gives requests no key") && event.contains("PeerAddress"),
        "{event}"
    );
}

/// The log says what was given, which the response does not.
#[test]
fn an_address_that_cannot_be_read_is_logged_once() {
    let lines = ["192.0.2.1", "192.0.2.1, unknown", "unix:", "192.0.2.2"];
    let event = only(forwarded(&lines.map(Some)));
    for part in [
        "`x-forwarded-for` states no address",
        "given: \"unknown\"",
        "[2001:db8::1]:4711",
    ] {
        assert!(event.contains(part), "{event}");
    }
}

#[test]
fn a_trusted_proxy_without_the_header_is_logged_once() {
    let event = only(forwarded(&[None, None, Some("192.0.2.1"), None]));
    assert!(
        event.contains("trusted proxy 10.0.0.1") && event.contains("`x-forwarded-for`"),
        "{event}"
    );
}
