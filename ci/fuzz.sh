#!/usr/bin/env bash
# Shows that no fuzz target finds a failure. Each runs for FUZZ_SECONDS (default 30) from the seed FUZZ_SEED (default 1, so
# that a new failure is caused by a change). The script builds them with plain cargo and the flags of cargo-fuzz.
# With cargo-fuzz, `cargo fuzz run <target>` runs a target for longer. A failing input is saved in fuzz/artifacts/<target>/,
# and `cargo fuzz run <target> <file>` repeats it.
source "$(dirname "$0")/common.sh"

# libFuzzer is written in C++.
needs c++ g++
target_dir=${CARGO_TARGET_DIR:-fuzz/target}
flags=(
    -Dwarnings --cfg=fuzzing -Ccodegen-units=1 -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
)
# The named target keeps the flags from build scripts and macros.
RUSTFLAGS="${flags[*]}" cargo build --locked --release --bins --manifest-path fuzz/Cargo.toml \
    --target-dir "$target_dir" --target "$(host)"

fuzz() {
    local name=$1 seconds=$2 program=$3
    mkdir -p "fuzz/corpus/$name" "fuzz/artifacts/$name"
    if "$program" "fuzz/corpus/$name" -artifact_prefix="fuzz/artifacts/$name/" -timeout=20 \
        -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" >"$program.log" 2>&1; then
        echo "$name: $(tail -n 1 "$program.log")"
    else
        grep -av -e '^#' -e '^INFO' -e NEW_FUNC "$program.log" | tail -n 60
        echo "$name: FAILED"
        # xargs continues with the other targets after an exit code of 1 to 125.
        return 1
    fi
}
export -f fuzz

for source in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    printf '%s\0' "$name" "${FUZZ_SECONDS:-30}" "$target_dir/$(host)/release/$name"
done | xargs -0 -n 3 -P "$(nproc)" bash -c 'fuzz "$@"' fuzz
