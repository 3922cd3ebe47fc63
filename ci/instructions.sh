#!/usr/bin/env bash
# Shows that no fast path needs more than 1.10 times the instructions that benches/instructions.txt says, counted under
# valgrind. Counts are the same in every run, but follow from the compiler and the target: with others they are only
# printed.
#
#   ci/instructions.sh             compares
#   ci/instructions.sh --record    writes the table anew
source "$(dirname "$0")/common.sh"

table=benches/instructions.txt
[[ $# -eq 0 || $* == --record ]] || { echo "usage: ci/instructions.sh [--record]"; exit 2; }

needs valgrind valgrind

# As users build it: flags for a processor or a sanitizer are another program.
export RUSTFLAGS=
program=$(cargo build --locked --release --package ringgate-benches --bench instructions --message-format json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\/instructions-[^"]*\)".*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only what happens in `counted_turns` is counted, and written to a file of its own after each `whole_path`.
valgrind --tool=callgrind --callgrind-out-file="$work/counts" --collect-atstart=no \
    --toggle-collect='instructions::counted_turns*' --dump-after='instructions::whole_path*' \
    "$program" 100000 >"$work/paths" 2>"$work/log" || {
    tail -n 20 "$work/log"
    # A path that does not end as its name says is our fault; instructions that valgrind does not know are not.
    if grep -q "panicked at" "$work/log"; then exit 1; fi
    not_run "valgrind does not run the program here"
}
number=0
while read -r decisions name; do
    number=$((number + 1))
    awk -v name="$name" -v decisions="$decisions" '
        /^totals: / { total = $2 }
        # Not one instruction for each: nothing was counted.
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

# A path is all words of a line but the last, which is its count.
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
    not_run "the table is of ${recorded#\# }, and this is ${toolchain#\# }"
elif ((status == 3)); then
    not_run "the clock is read in another way here than where the table was recorded"
elif ((status != 0)); then
    echo "If that is meant to be: ci/instructions.sh --record"
    exit 1
fi
