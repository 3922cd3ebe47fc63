#!/usr/bin/env bash
# Shows that the commands that README.md gives to a newcomer work as they are written there.
source "$(dirname "$0")/common.sh"

log=../shared/data/access.log
if [[ ! -f $log ]]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    for second in 00 01 01 30 59; do
        echo "192.0.2.1 - - [17/May/2015:10:05:$second +0000] \"GET / HTTP/1.1\" 200 17 \"-\" \"-\""
    done >"$log"
    echo "no ../shared/data/access.log: five lines of our own instead"
fi
# The same programs, quicker to build.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
cargo run --locked --release --example guard
cargo run --locked --release --features config --example rules
cargo run --locked --release --package ringgate-servers --bin axum -- --once
needs redis-server redis-server
cargo run --locked --release --features redis --example redis
# At a port of our own, and whatever it thinks of this server.
redis-server --port 16379 --bind 127.0.0.1 --save "" >/dev/null &
server=$!
status=0
cargo run --locked --release --package ringgate-cli -- redis check redis://127.0.0.1:16379 || status=$?
kill "$server"
((status < 2)) || { echo "the check has not reached the server"; exit 1; }
cargo run --locked --release --package ringgate-cli -- replay --rule 20/60s --compare "$log"
cargo run --locked --release --package ringgate-cli -- suggest --window 60s --deny 1% "$log"
