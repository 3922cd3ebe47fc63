#!/usr/bin/env bash
# Shows that no fuzz target finds anything within FUZZ_SECONDS (default 30) each, beginning with FUZZ_SEED (default 1, so
# that what is found comes of a change). They run for longer by `cargo fuzz run <target>` where cargo-fuzz is installed;
# here plain cargo gets the flags that it would pass.
# A finding is left in fuzz/artifacts/<target>/; `cargo fuzz run <target> <file>` shows it again.
source "$(dirname "$0")/common.sh"

# Of libFuzzer.
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
        # Any failure is 1 to 125 for xargs, which goes on with the others.
        return 1
    fi
}
export -f fuzz

for source in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    printf '%s\0' "$name" "${FUZZ_SECONDS:-30}" "$target_dir/$(host)/release/$name"
done | xargs -0 -n 3 -P "$(nproc)" bash -c 'fuzz "$@"' fuzz
