#!/usr/bin/env bash
# Shows that no fast path executes more than 1.10 times the instructions recorded in benches/instructions/instructions.txt, counted under
# valgrind. The counts are equal in each run, but depend on the compiler and the target. With another compiler or target, the
# script only prints them.
#
#   ci/instructions.sh             compares
#   ci/instructions.sh --record    records the counts
source "$(dirname "$0")/common.sh"

table=benches/instructions/instructions.txt
[[ $# -eq 0 || $* == --record ]] || { echo "usage: ci/instructions.sh [--record]"; exit 2; }

needs valgrind valgrind

# Without flags for a processor or a sanitizer, as users build the crate.
export RUSTFLAGS=
program=$(cargo build --locked --release --package ringgate-instructions --message-format json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\/instructions\)".*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Counts only the instructions of `counted_turns`, and writes a separate file after each `whole_path`.
valgrind --tool=callgrind --callgrind-out-file="$work/counts" --collect-atstart=no \
    --toggle-collect='instructions::counted_turns*' --dump-after='instructions::whole_path*' \
    "$program" 100000 >"$work/paths" 2>"$work/log" || {
    tail -n 20 "$work/log"
    # A path with a wrong outcome is a failure of the bench. An instruction that valgrind does not know is not.
    if grep -q "panicked at" "$work/log"; then exit 1; fi
    not_run "valgrind does not run the program here"
}
number=0
while read -r decisions name; do
    number=$((number + 1))
    awk -v name="$name" -v decisions="$decisions" '
        /^totals: / { total = $2 }
        # Fewer instructions than decisions: the counting did not work.
        END { if (total < decisions) exit 1; printf "%-42s %8.1f\n", name, total / decisions }
    ' "$work/counts.$number" >>"$work/new" || { echo "$name: nothing was counted"; exit 1; }
done <"$work/paths"

toolchain="# $(rustc --version), $(host)"
if [[ ${1:-} == --record ]]; then
    {
        echo "# Instructions per decision, written by ci/instructions.sh --record; see benches/README.md."
        echo "$toolchain"
        cat "$work/new"
    } >"$table"
    cat "$table"
    exit
fi

# The last word of a line is the count, and the others are the name of the path.
status=0
awk '
    /^#/ { next }
    { count = $NF; name = $0; sub(/ +[^ ]+$/, "", name) }
    NR == FNR { old[name] = count; next }
    FNR == 1 { printf "%-42s %8s %8s %7s\n", "instructions per decision", "recorded", "now", "ratio" }
    !(name in old) { printf "%-42s %8s %8.1f %7s  NOT RECORDED\n", name, "", count, ""; failed++; next }
    {
        ratio = count / old[name]
        more = (ratio > 1.1)
        printf "%-42s %8.1f %8.1f %7.2f%s\n", name, old[name], count, ratio, more ? "  MORE" : ""
        failed += more
        if (name == "QuantaClock::now" && ratio > 2) other_clock = 1
        delete old[name]
    }
    END {
        for (name in old) { printf "%-42s %8.1f %8s %7s  GONE\n", name, old[name], "", ""; failed++ }
        exit other_clock ? 3 : (failed > 0)
    }
' "$table" "$work/new" || status=$?

recorded=$(sed -n 2p "$table")
if [[ $recorded != "$toolchain" ]]; then
    not_run "the counts were recorded with ${recorded#\# }, and this is ${toolchain#\# }"
elif ((status == 3)); then
    not_run "the clock is read in another way here than where the table was recorded"
elif ((status != 0)); then
    echo "If the change is intended, record it: ci/instructions.sh --record"
    exit 1
fi
