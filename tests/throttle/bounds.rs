//! No window moves more bytes than the bound, and the bytes arrive unchanged.

use super::*;
use proptest::prelude::*;

/// A history: the limiters, the behavior of the inner stream, and the sizes of the calls.
#[derive(Clone, Debug)]
struct History {
    own: Option<usize>,
    shared: Option<usize>,
    limit: u64,
    window: Duration,
    behavior: Behavior,
    seed: u64,
    sizes: Vec<usize>,
    pauses: Vec<u16>,
}

fn history() -> impl Strategy<Value = History> {
    let behavior = (0..100_u8, 0..200_u8, 0..20_u8).prop_map(|(pending, short, error)| Behavior {
        pending,
        short,
        error,
    });
    let limits = prop_oneof![
        (0..KINDS).prop_map(|own| (Some(own), None)),
        (0..KINDS).prop_map(|shared| (None, Some(shared))),
        (0..KINDS, 0..KINDS).prop_map(|(own, shared)| (Some(own), Some(shared))),
    ];
    let sizes = prop::collection::vec(1..3_000_usize, 1..40);
    let pauses = prop::collection::vec(prop_oneof![4 => Just(0), 1 => 1..400_u16], 1..5);
    (
        limits,
        1..5_000_u64,
        20..2_000_u64,
        behavior,
        any::<u64>(),
        sizes,
        pauses,
    )
        .prop_map(
            |((own, shared), limit, window, behavior, seed, sizes, pauses)| History {
                own,
                shared,
                // An even ring needs at least one permit per cell.
                limit: limit + 5,
                window: Duration::from_millis(window),
                behavior,
                seed,
                sizes,
                pauses,
            },
        )
}

/// Moves bytes in one direction, and checks the bounds, the charges and the bytes.
async fn run(history: History, reading: bool) {
    let log = Log::new();
    let wire = Wire::new(history.behavior, history.seed);
    let written = Arc::clone(&wire.written);
    let mut builder = Throttled::builder(wire);
    let (mut bounds, mut all_counters) = (Vec::new(), Vec::new());
    let window = history.window;
    if let Some(own) = history.own {
        let (own, counters) = limiter(kind(own, history.limit, window));
        bounds.push(own.bound());
        all_counters.push((counters, true));
        builder = if reading {
            builder.read(own)
        } else {
            builder.write(own)
        };
    }
    if let Some(shared) = history.shared {
        let (shared, counters) = limiter(kind(shared, history.limit, window));
        bounds.push(shared.bound());
        all_counters.push((counters, false));
        let shared = Arc::new(Fair::new(shared));
        builder = match reading {
            true => builder.read_shared(shared),
            false => builder.write_shared(shared),
        };
    }
    let mut stream = builder.build().unwrap();
    let mut pauses = history.pauses.iter().cycle();
    let (mut buf, mut through) = (vec![0; 3_000], Vec::new());
    let bytes: Vec<u8> = (0..3_000).map(|at| Wire::byte(at * 7)).collect();
    for &size in &history.sizes {
        tokio::time::sleep(Duration::from_millis(u64::from(*pauses.next().unwrap()))).await;
        let moved = match reading {
            true => stream.read(&mut buf[..size]).await,
            false => stream.write(&bytes[..size]).await,
        };
        let Ok(moved) = moved else { continue };
        assert!(moved > 0 && moved <= size);
        log.note(moved);
        through.extend_from_slice(if reading { &buf[..moved] } else { &bytes[..moved] });
    }
    for bound in bounds {
        assert!(
            log.most_in(window) <= bound,
            "{} of {bound}: {history:?}",
            log.most_in(window)
        );
    }
    // The charges are the moved bytes and the forfeited ones.
    for (counters, own) in all_counters {
        let forfeited = if own { 0 } else { stream.forfeited() };
        assert_eq!(counters.charged(), log.sum() + forfeited);
        assert_eq!(counters.forced.load(Ordering::Relaxed), 0);
        assert!(
            !own || counters.locked.load(Ordering::Relaxed) == 0,
            "a locked instruction"
        );
    }
    if reading {
        assert_eq!(stream.forfeited(), 0);
        let expected: Vec<u8> = (0..through.len() as u64).map(Wire::byte).collect();
        assert_eq!(through, expected);
    } else {
        assert_eq!(through, *written.lock().unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_window_reads_more_than_its_bound(history in history()) {
        paused(run(history, true));
    }

    #[test]
    fn no_window_writes_more_than_its_bound(history in history()) {
        paused(run(history, false));
    }
}

/// Several connections share one limiter in both directions.
#[tokio::test(start_paused = true)]
async fn many_connections_together_keep_the_bound() {
    let window = Duration::from_millis(300);
    for number in 0..KINDS {
        let (shared, counters) = limiter(kind(number, 20_000, window));
        let bound = shared.bound();
        let shared = Arc::new(Fair::new(shared));
        let log = Log::new();
        let mut tasks = Vec::new();
        for seed in 1..=20_u64 {
            let behavior = Behavior::new(30, 100, 0);
            let stream = both_ways(&shared, Wire::new(behavior, seed * 12_345));
            let (mut reader, mut writer) = tokio::io::split(stream);
            let (read, written) = (log.clone(), log.clone());
            tasks.push(tokio::spawn(async move {
                let mut buf = vec![0; 2_000];
                loop {
                    read.note(reader.read(&mut buf).await.unwrap());
                }
            }));
            tasks.push(tokio::spawn(async move {
                loop {
                    written.note(writer.write(&[7; 2_000]).await.unwrap());
                }
            }));
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        tasks.into_iter().for_each(|task| task.abort());
        tokio::task::yield_now().await;
        let most = log.most_in(window);
        assert!(most <= bound, "{number}: {most} of {bound}");
        assert!(counters.charged() >= log.sum());
        // A sliding log refunds nothing, so unwritten bytes are forfeited.
        let least = if number == 5 { 20_000 } else { 20_000 * 10 * 7 / 10 };
        assert!(log.sum() >= least, "{number}: {}", log.sum());
    }
}
