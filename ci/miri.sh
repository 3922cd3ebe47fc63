#!/usr/bin/env bash
# Shows that unit tests (once) and models (by seed: of the interleaving and of what weak memory answers) run in Miri
# without undefined behaviour, data races or failures: on this machine's kind, on 32 bits, and big-endian.
# MIRI_SEEDS: how many seeds on the first (default 4), a quarter of it on the others.
source "$(dirname "$0")/common.sh"

toolchain nightly miri rust-src
seeds=${MIRI_SEEDS:-4}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri

# $1: target; $2: Miri's flags; the rest: what to test.
run() {
    local target=$1 flags=$2
    shift 2
    echo "miri: $target, $flags, $*"
    MIRIFLAGS="-Zmiri-strict-provenance $flags" cargo +nightly miri test --locked --features rules --target "$target" "$@"
}

# Without isolation proptest finds its directory. Two long walks over plain numbers are left to `cargo test`.
PROPTEST_CASES=8 run "$(host)" -Zmiri-disable-isolation --lib -- \
    --skip shares_of_consecutive_cells_add_up_to_the_limit --skip sums_equal_counts
run "$(host)" "-Zmiri-many-seeds=0..$seeds" --test models
RUSTFLAGS=-Zrandomize-layout run i686-unknown-linux-gnu "-Zmiri-many-seeds=0..$((seeds / 4))" --test models
run s390x-unknown-linux-gnu "-Zmiri-many-seeds=0..$((seeds / 4))" --test models
