#!/usr/bin/env bash
# Shows that a large log is replayed in bounded memory, the same from a file, a pipe and compressed, and prints how fast:
# REPLAY_BYTES (default 100000000; 1000000000 for a gigabyte) of a log that is made up here.
source "$(dirname "$0")/common.sh"

bytes=${REPLAY_BYTES:-100000000}
# As ci/readme.sh builds it.
export CARGO_PROFILE_RELEASE_LTO=${CARGO_PROFILE_RELEASE_LTO:-off}
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=${CARGO_PROFILE_RELEASE_CODEGEN_UNITS:-16}
cargo build --locked --release --package ringgate-cli
tool=${CARGO_TARGET_DIR:-target}/release/ringgate
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
log=$directory/access.log
bash cli/tests/replay/generate.sh "$bytes" >"$log"
ls -l "$log"

# What follows the name of the input is the same whatever that is.
replay() {
    echo "== $1" >&2
    "$tool" replay --json --timings --rule 100/60s "${@:2}" 2>"$directory/said" | sed 's/^.*"lines":/"lines":/'
    grep -v '^note' "$directory/said" >&2
    # In MiB; the rest is said above.
    local most
    most=$(sed -n 's/^most memory in use *\([0-9]*\) MiB$/\1/p' "$directory/said")
    if ((${most:-0} > 100)); then
        echo "$most MiB are more than 100" >&2
        return 1
    fi
}

replay "a file" "$log" >"$directory/file.json"
replay "a pipe" <"$log" >"$directory/pipe.json"
replay "gzip" <(gzip -1 <"$log") >"$directory/gzip.json"
cmp "$directory/file.json" "$directory/pipe.json"
cmp "$directory/file.json" "$directory/gzip.json"
# Line by line, in order or not, as many as there are.
grep -q "^\"lines\":$(wc -l <"$log"),\"requests\":$(wc -l <"$log")," "$directory/file.json"
echo "the same from all three"
