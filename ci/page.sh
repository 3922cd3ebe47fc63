#!/usr/bin/env bash
# Shows in a real browser that the HTML report of a replay has the contents of its JSON report: charts, slider, tables and
# answers. The checks use wide and narrow screens, the dark theme, printing, no JavaScript, and logs with hostile contents.
# With a folder as argument, the script saves screenshots there. It installs a browser if none is found.
source "$(dirname "$0")/common.sh"

pictures=${1:-}
needs python3 python3
needs chromium chromium
needs chromedriver chromium-driver
# The same build settings as in ci/readme.sh, so that one build serves both checks.
# The program that `ci/test.sh` has built.
cargo build --locked --workspace --all-features --bins --examples
tool=$(cargo metadata --locked --no-deps --format-version 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/ringgate

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -f ../shared/data/access.log ]]; then
    cp ../shared/data/access.log "$work/access.log"
else
    echo "../shared/data/access.log is missing: a generated log is used instead"
    python3 ci/page/log.py >"$work/access.log"
fi
# The name of this file contains markup.
mkdir "$work/<"
python3 ci/page/hostile.py >"$work/</title>\"'&.json"

cd "$work"
reports=()
# $1: the name of the report; the rest: arguments of the tool.
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
    --rule "10/100ms by all as \\\"'&lt;"$'\xe2\x80\xae\x1b' --compare "</title>\"'&.json"
head -n 1 access.log >one.log
report one --rule 1/60s one.log
cd - >/dev/null
PYTHONDONTWRITEBYTECODE=1 python3 ci/page/check.py ${pictures:+--pictures "$pictures"} "${reports[@]/#/$work/}"
