#!/usr/bin/env bash
# Shows which changes of the functions on one word the unit tests notice: cargo-mutants changes each operator and each result of
# the files below, one at a time. It fails if a change is missed, also one that changes no result. ci/pure.txt has the last results.
#
#   ci/pure.sh        all changes, which takes hours
#   ci/pure.sh 0/8    every eighth change
source "$(dirname "$0")/common.sh"

[[ $# -le 1 ]] || { echo "usage: ci/pure.sh [SHARD/SHARDS]"; exit 2; }
tool mutants
export CARGO_PROFILE_TEST_DEBUG=0 PROPTEST_RNG_SEED=1 PROPTEST_MAX_SHRINK_ITERS=0
cargo mutants --package ringgate --file src/algorithm/unit_ring/word.rs --file src/algorithm/gcra/word.rs \
    --no-default-features --features std --shard "${1:-0/1}" --sharding round-robin --timeout 60 \
    --output "${CARGO_TARGET_DIR:-target}" -- --lib algorithm::
