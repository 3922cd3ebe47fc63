#!/usr/bin/env bash
# Shows that the commands of README.md, and the main commands of cli/README.md and the guide, work as they are written. The
# command of README.md for the tests is the check `test` of .ci/run, which is run as it is written there.
source "$(dirname "$0")/common.sh"

log=../shared/data/access.log
if [[ ! -f $log ]]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    for second in 00 01 01 30 59; do
        echo "192.0.2.1 - - [17/May/2015:10:05:$second +0000] \"GET / HTTP/1.1\" 200 17 \"-\" \"-\""
    done >"$log"
    echo "../shared/data/access.log is missing: a log of five lines is used instead"
fi
# These settings make the builds faster.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
mapfile -t commands < <(awk '/^In a clone of this repository/ { clone = 1 } clone && /^```/ { if (fences++) exit; next } fences' README.md)
[[ ${#commands[@]} == 2 && ${commands[1]} == "bash ci/test.sh" ]] ||
    { echo "README.md does not state one command for the example and \"bash ci/test.sh\" for the tests:"; printf '%s\n' "${commands[@]}"; exit 1; }
grep -q '^check test ' .ci/run || { echo ".ci/run does not run the test command of README.md"; exit 1; }
bash -c "${commands[0]}"
cargo run --locked --release --features config --example rules
cargo run --locked --release --package ringgate-servers --bin axum -- --once
needs redis-server redis-server
cargo run --locked --release --features redis --example redis
# A server at a free port. The check may report problems of this server.
redis-server --port 16379 --bind 127.0.0.1 --save "" >/dev/null &
server=$!
status=0
cargo run --locked --release --package ringgate-cli -- redis check redis://127.0.0.1:16379 || status=$?
kill "$server"
((status < 2)) || { echo "ringgate redis check did not reach the server"; exit 1; }
cargo run --locked --release --package ringgate-cli -- replay --rule 20/60s --compare "$log"
cargo run --locked --release --package ringgate-cli -- suggest --window 60s --deny 1% "$log"
