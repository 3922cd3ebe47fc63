#!/usr/bin/env bash
# Shows that no wording of ci/language.txt is in more lines than recorded there.
#
#   ci/language.sh             counts and compares
#   ci/language.sh --lines     prints the lines too
#   ci/language.sh --record    lowers the recorded numbers
source "$(dirname "$0")/common.sh"

[[ $# -eq 0 || $* == --lines || $* == --record ]] || { echo "usage: ci/language.sh [--lines|--record]"; exit 2; }
files() {
    find src cli examples tests benches fuzz -path '*/target' -prune -o -path benches/comparison -prune -o \
        \( -name '*.rs' -o -name '*.md' -o -name '*.lua' \) -print
    ls README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md
}
mapfile -t texts < <(files | sort)

status=0
new=$(mktemp)
trap 'rm -f "$new"' EXIT
while IFS= read -r line; do
    if [[ $line == \#* || -z $line ]]; then
        echo "$line" >>"$new"
        continue
    fi
    allowed=${line%%$'\t'*} pattern=${line#*$'\t'}
    found=$(PATTERN=$pattern perl -ne 'print "$ARGV:$.: $_" if /$ENV{PATTERN}/i; close ARGV if eof' "${texts[@]}")
    count=$(grep -c . <<<"$found" || true)
    printf '%5d of %-5d %s\n' "$count" "$allowed" "$pattern"
    if [[ $* == --lines || $count -gt $allowed ]]; then head -n 40 <<<"$found"; fi
    if ((count > allowed)); then status=1; fi
    printf '%s\t%s\n' "$((count < allowed ? count : allowed))" "$pattern" >>"$new"
done <ci/language.txt
if [[ $* == --record ]]; then cp "$new" ci/language.txt; fi
exit $status
