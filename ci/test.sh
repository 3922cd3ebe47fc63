#!/usr/bin/env bash
# Shows that all tests pass: unit tests, doctests, comparisons with references, models on real threads, and the command-line
# tool. Also shows that each claim of a protocol file has a mutation in ci/mutants.txt that applies. Property tests use the
# seed PROPTEST_RNG_SEED (default 1, so that a new failure is caused by a change).
#
# On Debian, the script installs redis-server if it is missing. Tests of a store that have no server print
# `skipped: no redis-server`. The last line counts them as skipped, and the script exits with 77.
source "$(dirname "$0")/common.sh"

status=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT
if provide python3 python3; then
    python3 ci/mutants.py --list || status=1
else
    echo "python3 is missing and cannot be installed here: whether each claim has a mutation is not checked"
fi

server=yes
command -v valkey-server >/dev/null || provide redis-server redis-server || server=""
[[ $server ]] || echo "redis-server is missing and cannot be installed here, so tests of a store are skipped. Packages:" \
    "redis-server of Debian and Ubuntu (as root: apt-get install redis-server), valkey of Fedora, redis of Arch and Homebrew"
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
# With one thread, the harness runs tests on the main thread, which does not have the name of the test.
[[ $(getconf _NPROCESSORS_ONLN) != 1 ]] || export RUST_TEST_THREADS=${RUST_TEST_THREADS:-2}
cargo test --locked --workspace --all-features --no-fail-fast 2>&1 | tee "$log" || status=$?

# The harness counts a skipped test as passed. A test that lacks two programs is skipped once.
skipped=$(grep -ao 'skipped: no .*: [A-Za-z0-9_: ]*$' "$log" | sort -u || true)
count=$(sed -n 's/.*: //p' <<<"$skipped" | sort -u | wc -l)
echo
sed 's/: [^:]*\(::[^:]*\)*$//' <<<"$skipped" | sort | uniq -c | sed -n 's/^ *\([0-9]*\) \(skipped.*\)/\2: \1/p'
awk -v skipped="$count" '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    END { printf "%d passed, %d failed, %d ignored, %d skipped\n", passed - skipped, failed, ignored, skipped }
' "$log"
((status == 0)) || exit "$status"
[[ $server ]] || not_run "$count tests were skipped: no redis-server"
