//! The least work of a table of limiters with an existing map: find the word, and add to it.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use dashmap::DashMap;

use crate::contestant::{Key, Keyed, Side};

/// The floor that decisions about keys are compared with.
pub const DASHMAP: &str = "floor: dashmap, add";

/// Returns maps that hash with ahash, each with the capacity for all keys.
pub fn keyed<K: Key>() -> Vec<Keyed<K>> {
    vec![
        Keyed::new(DASHMAP, Side::Floor, |keys| {
            let map: DashMap<K, AtomicU64, RandomState> =
                DashMap::with_capacity_and_hasher(keys, RandomState::new());
            move |key: &K| {
                let map = black_box(&map);
                match map.get(key) {
                    Some(word) => add(&word),
                    None => add(&map.entry(key.clone()).or_default()),
                }
            }
        }),
        Keyed::new("floor: papaya, add", Side::Floor, |keys| {
            let map: papaya::HashMap<K, AtomicU64, RandomState> =
                papaya::HashMap::with_capacity_and_hasher(keys, RandomState::new());
            move |key: &K| {
                let map = black_box(&map).pin();
                match map.get(key) {
                    Some(word) => add(word),
                    None => add(map.get_or_insert_with(key.clone(), AtomicU64::default)),
                }
            }
        }),
        Keyed::new("floor: scc, add", Side::Floor, |keys| {
            let map: scc::HashMap<K, AtomicU64, RandomState> =
                scc::HashMap::with_capacity_and_hasher(keys, RandomState::new());
            move |key: &K| {
                let map = black_box(&map);
                match map.read_sync(key, |_, word| add(word)) {
                    Some(added) => added,
                    None => add(map.entry_sync(key.clone()).or_default().get()),
                }
            }
        }),
        Keyed::new("floor: 64 RwLocks, add", Side::Floor, |keys| {
            let hasher = RandomState::new();
            let shard = || HashMap::with_capacity_and_hasher(keys / 64, RandomState::new());
            let shards: Vec<RwLock<HashMap<K, AtomicU64, RandomState>>> =
                (0..64).map(|_| RwLock::new(shard())).collect();
            move |key: &K| {
                let shard = &black_box(&shards)[(hasher.hash_one(key) >> 58) as usize];
                if let Some(word) = shard.read().expect("no thread panics").get(key) {
                    return add(word);
                }
                let mut map = shard.write().expect("no thread panics");
                add(map.entry(key.clone()).or_default())
            }
        }),
    ]
}

fn add(word: &AtomicU64) -> bool {
    word.fetch_add(1, Ordering::Relaxed) < u64::MAX
}
