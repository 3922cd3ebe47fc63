#!/usr/bin/env bash
# Shows that no fuzz target finds a failure in FUZZ_RUNS inputs (default 50000; a tenth for lines of logs and a third for quotas,
# which take longer, and whose formats have tests of their own), from the seed FUZZ_SEED (default 1). So a run on a fast machine
# searches no further than one on a slow machine. With FUZZ_SECONDS, each target runs for that time instead:
# use it for a long search. The script builds the targets with plain cargo and the flags of cargo-fuzz.
# With cargo-fuzz, `cargo fuzz run <target>` does the same. A failing input is saved in fuzz/artifacts/<target>/, and
# `cargo fuzz run <target> <file>` repeats it.
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
    local name=$1 program=$2 runs=${FUZZ_RUNS:-50000} length
    case $name in
        lines) runs=$((runs / 10)) ;;
        quota) runs=$((runs / 3)) ;;
    esac
    # A corpus of an earlier search would change the inputs of a run of fixed length.
    if [[ -n ${FUZZ_SECONDS:-} ]]; then
        length=("fuzz/corpus/$name" "-max_total_time=$FUZZ_SECONDS")
    else
        length=("-runs=$runs")
    fi
    mkdir -p "fuzz/corpus/$name" "fuzz/artifacts/$name"
    if "$program" "${length[@]}" -artifact_prefix="fuzz/artifacts/$name/" -timeout=20 \
        -seed="${FUZZ_SEED:-1}" >"$program.log" 2>&1; then
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
    printf '%s\0' "$name" "$target_dir/$(host)/release/$name"
done | xargs -0 -n 2 -P "$(nproc)" bash -c 'fuzz "$@"' fuzz
