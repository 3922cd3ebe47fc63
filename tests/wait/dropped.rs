//! Each future that waits is dropped at each await point: the next waiter is served at once, and no permit is lost.

use alloc::boxed::Box;

use super::*;

/// The point at which a future is dropped: after a number of polls, at once or when it is woken again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) polls: usize,
    pub(crate) when_woken: bool,
}

impl Cut {
    /// Polls the future and drops it at this point. Returns whether it was ready before.
    pub(crate) async fn off<F: Future>(self, future: F) -> bool {
        let mut future = pin!(future);
        let mut polls = 0;
        poll_fn(|context| {
            if polls == self.polls {
                return Poll::Ready(false);
            }
            polls += 1;
            match future.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(true),
                Poll::Pending if polls == self.polls && !self.when_woken => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// A wait for one permit.
type Wait<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

fn wait<'a, F: Future + 'a>(future: F) -> Wait<'a> {
    Box::pin(async move {
        future.await;
    })
}

/// A stream that yields an item at once.
struct One;

impl Stream for One {
    type Item = u64;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u64>> {
        Poll::Ready(Some(1))
    }
}

/// A sink that is always ready.
struct Ready;

impl Sink<u64> for Ready {
    type Error = ();

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, _: u64) -> Result<(), ()> {
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        Poll::Ready(Ok(()))
    }
}

async fn next<S: Stream>(stream: S) {
    let mut stream = pin!(stream);
    poll_fn(|context| stream.as_mut().poll_next(context)).await;
}

async fn ready<S: Sink<u64>>(sink: S) {
    let mut sink = pin!(sink);
    let _ = poll_fn(|context| sink.as_mut().poll_ready(context)).await;
}

/// Drops the first waiter of an exhausted limiter of one permit per second, and returns when the wait behind it was
/// served.
async fn dropped(cut: Cut, first: Wait<'_>, second: Wait<'_>) -> (bool, u128) {
    let began = Instant::now();
    // Polled after the first, so it is queued behind it.
    let behind = async {
        second.await;
        began.elapsed().as_millis()
    };
    let both = async { tokio::join!(cut.off(first), behind) };
    // Time is paused, so a wait that never ends is found at once.
    tokio::time::timeout(ms(60_000), both)
        .await
        .expect("every wait ends")
}

/// Tries every cut of one kind of wait.
async fn try_cuts<L>(what: &str, make: impl Fn() -> L, waits: impl for<'a> Fn(&'a L) -> [Wait<'a>; 2]) {
    for when_woken in [false, true] {
        for polls in 0.. {
            let limiter = make();
            let cut = Cut { polls, when_woken };
            let [first, second] = waits(&limiter);
            let (is_served, at) = dropped(cut, first, second).await;
            let expected = if is_served { 2000 } else { 1000 };
            assert_eq!(at, expected, "{what}, {cut:?}");
            // The queue is empty.
            let [third, _] = waits(&limiter);
            let began = Instant::now();
            tokio::time::timeout(ms(60_000), third)
                .await
                .expect("every wait ends");
            assert_eq!(began.elapsed(), ms(1000), "{what}, {cut:?}");
            if is_served {
                assert!(polls < 100, "{what}: {polls} await points");
                break;
            }
        }
    }
}

fn spent() -> Log {
    let limiter = log("1/1s");
    assert!(limiter.check(1).is_ok());
    limiter
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_limiter() {
    type First = fn(&Log) -> Wait<'_>;
    let waits: [(&str, First); 5] = [
        ("acquire", |it| wait(it.acquire(1))),
        ("within", |it| wait(it.acquire(1).within(ms(5000)))),
        ("acquire_owned", |it| wait(Arc::clone(it).acquire_owned(1))),
        ("a stream", |it| wait(next(PacedStream::new(One, it)))),
        ("an owned stream", |it| {
            wait(next(PacedStream::new(One, Arc::clone(it))))
        }),
    ];
    for (what, first) in waits {
        try_cuts(what, spent, |it| [first(it), wait(it.acquire(1))]).await;
    }
    let with_jitter = || {
        let limiter = Fair::new(super::bare_log("1/1s")).jitter(ms(0));
        assert!(limiter.check(1).is_ok());
        limiter
    };
    try_cuts("jitter", with_jitter, |it| {
        [wait(it.acquire(1)), wait(it.acquire(1))]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn waits_of_a_sink() {
    for owned in [false, true] {
        try_cuts("a sink", spent, |it| {
            let first = match owned {
                false => wait(ready(PacedSink::new(Ready, it))),
                true => wait(ready(PacedSink::new(Ready, Arc::clone(it)))),
            };
            [first, wait(it.acquire(1))]
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_key() {
    let spent = || {
        let ring = TimestampRing::new("1/1s".parse().unwrap()).unwrap();
        let limiter = super::keys::keyed(ring, 100);
        assert!(limiter.check(&1_u32).is_ok());
        limiter
    };
    try_cuts("acquire", spent, |it| {
        [wait(it.acquire(&1)), wait(it.acquire(&1))]
    })
    .await;
    try_cuts("acquire permits", spent, |it| {
        [wait(it.acquire((&1, 1))), wait(it.acquire((&1, 1)))]
    })
    .await;
    try_cuts("acquire_owned", spent, |it| {
        [
            wait(Arc::clone(it).acquire_owned((&1, 1))),
            wait(it.acquire((&1, 1))),
        ]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn waits_for_rules() {
    let spent = || {
        let rule = Rule::new("all", "1/1s".parse().unwrap()).algorithm(RuleAlgorithm::Log);
        let rules = super::fair_rules(RuleSetBuilder::<()>::new().rule(rule));
        assert!(rules.check(()).is_ok());
        rules
    };
    try_cuts("acquire", spent, |it| {
        [wait(it.acquire(&())), wait(it.acquire(&()))]
    })
    .await;
    try_cuts("acquire_owned", spent, |it| {
        [wait(Arc::clone(it).acquire_owned(())), wait(it.acquire(&()))]
    })
    .await;
}
