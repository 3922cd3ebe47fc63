#!/usr/bin/env bash
# Shows that the first command of README.md works as it is written, and that the programs of the main commands of cli/README.md and
# the guide work with the arguments that are written there. They are the programs that ci/test.sh builds. The second command
# of README.md is the check `test` of .ci/run, which is run as it is written there.
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
mapfile -t commands < <(awk '/^In a clone of this repository/ { clone = 1 } clone && /^```/ { if (fences++) exit; next } fences { sub(/ +#.*/, ""); print }' README.md)
[[ ${#commands[@]} == 2 && ${commands[1]} == "bash ci/test.sh" ]] ||
    { echo "README.md does not state one command for the example and \"bash ci/test.sh\" for the tests:"; printf '%s\n' "${commands[@]}"; exit 1; }
grep -q '^check test ' .ci/run || { echo ".ci/run does not run the test command of README.md"; exit 1; }
bash -c "${commands[0]}"
# The other programs are those that `ci/test.sh` has built.
cargo build --locked --workspace --all-features --bins --examples
built=$(cargo metadata --locked --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/debug
"$built/examples/rules"
"$built/axum" --once
needs redis-server redis-server
"$built/examples/redis"
# A server at a free port. The check may report problems of this server.
redis-server --port 16379 --bind 127.0.0.1 --save "" >/dev/null &
server=$!
# Until it accepts connections, or has ended.
while ! (: </dev/tcp/127.0.0.1/16379) 2>/dev/null; do
    kill -0 "$server" || { echo "redis-server has ended"; exit 1; }
    sleep 0.1
done
status=0
"$built/ringgate" redis check redis://127.0.0.1:16379 || status=$?
kill "$server"
((status < 2)) || { echo "ringgate redis check did not reach the server"; exit 1; }
"$built/ringgate" replay --rule 20/60s --compare "$log"
"$built/ringgate" suggest --window 60s --deny 1% "$log"
