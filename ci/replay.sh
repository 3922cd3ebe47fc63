#!/usr/bin/env bash
# Shows that a large log is replayed in 100 MiB of memory, with equal results from a file, a pipe and gzip. Prints the time of
# each run. The log is generated, with REPLAY_BYTES bytes (default 100000000).
source "$(dirname "$0")/common.sh"

bytes=${REPLAY_BYTES:-100000000}
# The same build settings as in ci/readme.sh, so that one build serves both checks.
export CARGO_PROFILE_RELEASE_LTO=${CARGO_PROFILE_RELEASE_LTO:-off}
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=${CARGO_PROFILE_RELEASE_CODEGEN_UNITS:-16}
cargo build --locked --release --package ringgate-cli
tool=${CARGO_TARGET_DIR:-target}/release/ringgate
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
log=$directory/access.log
bash cli/tests/replay/support/generate.sh "$bytes" >"$log"
ls -l "$log"

# Replays an input with at most 100 MiB of memory. The result after the name of the input is the same for all inputs.
replay() {
    local start=$SECONDS
    (ulimit -d 102400 && exec "$tool" replay --json --quiet --rule 100/60s "${@:2}" 2>"$directory/errors") |
        sed 's/^.*"lines":/"lines":/'
    grep -v '^note' "$directory/errors" >&2 || true
    echo "$1: $((SECONDS - start)) s" >&2
}

replay "a file" "$log" >"$directory/file.json"
replay "a pipe" <"$log" >"$directory/pipe.json"
replay "gzip" <(gzip -1 <"$log") >"$directory/gzip.json"
cmp "$directory/file.json" "$directory/pipe.json"
cmp "$directory/file.json" "$directory/gzip.json"
# Each line of the log is a request.
grep -q "^\"lines\":$(wc -l <"$log"),\"requests\":$(wc -l <"$log")," "$directory/file.json"
echo "the three results are equal"
