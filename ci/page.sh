#!/usr/bin/env bash
# Shows in a real browser that the page of a replay says what its JSON says: charts, slider, tables and answers, on wide and
# narrow screens, in the dark, on paper, without JavaScript, and whatever the log holds. With a folder as argument, leaves
# pictures there. Installs a browser where there is none and that is allowed.
source "$(dirname "$0")/common.sh"

pictures=${1:-}
needs python3 python3
needs chromium chromium
needs chromedriver chromium-driver
# As README.md's commands are built, so that one build serves both checks.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
cargo build --locked --release --package ringgate-cli
tool=$(cargo metadata --locked --no-deps --format-version 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release/ringgate

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -f ../shared/data/access.log ]]; then
    cp ../shared/data/access.log "$work/access.log"
else
    echo "no ../shared/data/access.log: one of our own instead"
    python3 ci/page/log.py >"$work/access.log"
fi
# A path that is markup.
mkdir "$work/<"
python3 ci/page/hostile.py >"$work/</title>\"'&.json"

cd "$work"
reports=()
# $1: the report's name; the rest: arguments of the tool.
report() {
    local name=$1
    shift
    "$tool" replay --quiet --json --html "$name.html" "$@" >"$name.json"
    reports+=("$name.json" "$name.html")
}
report access --rule 20/60s --compare access.log
report several --rule "20/60s as sharp" --rule "100/h algorithm log as sustained" --rule "60/60s by all as everybody" \
    --rule "5/s algorithm gcra as pace" access.log
report hostile --rule "20/60s by user as </script><img src=x onerror=alert(1)>" --rule "5/s by user as __proto__" \
    --rule "10/100ms by all as \"'&lt;"$'\xe2\x80\xae\x1b' --compare "</title>\"'&.json"
head -n 1 access.log >one.log
report one --rule 1/60s one.log
cd - >/dev/null
PYTHONDONTWRITEBYTECODE=1 python3 ci/page/check.py ${pictures:+--pictures "$pictures"} "${reports[@]/#/$work/}"
