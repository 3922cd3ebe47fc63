#!/usr/bin/env bash
# Shows that deny.toml allows the licence of every dependency, that all dependencies come from the registry, and that users
# get no crate in two versions. The lock files of packages outside of the workspace are current. Without cargo-deny, the
# script checks only licences, sources and lock files, with cargo.
# Advisories need a network. Check them by hand: cargo deny check advisories
source "$(dirname "$0")/common.sh"

if cargo deny --version >/dev/null 2>&1; then
    cargo deny --locked --workspace check licenses sources
    # Users do not get the versions of crates that only tests need.
    for manifest in Cargo.toml cli/Cargo.toml; do
        cargo deny --locked --manifest-path "$manifest" --exclude-dev check bans
    done
    exit
fi
echo "cargo-deny is missing: only licences and sources are checked"

status=0
if grep '^source = ' Cargo.lock | grep -v '^source = "registry+'; then
    echo "the sources above are not the registry"
    status=1
fi

declare -A allowed excepted
while read -r licence; do
    allowed[$licence]=1
done < <(sed -n '/^allow = \[/,/^\]/s/^ *"\(.*\)",$/\1/p' deny.toml)
while read -r crate licence; do
    excepted[$crate]=$licence
done < <(sed -n 's/.*{ crate = "\(.*\)", allow = \["\(.*\)"\] }.*/\1 \2/p' deny.toml)
count=0
while IFS=$'\t' read -r crate expression; do
    # Translates the licence expression to arithmetic: "(MIT OR GPL-3.0-only) AND Zlib" becomes ( 1 || 0 ) && 1.
    sum=
    for word in $(sed 's/ WITH /-WITH-/g; s|/| OR |g; s/[()]/ & /g' <<<"$expression"); do
        case $word in
            AND) sum+=' && ' ;;
            OR) sum+=' || ' ;;
            '(' | ')') sum+=$word ;;
            *) if [[ ${allowed[$word]-} || $word == "${excepted[$crate]-}" ]]; then sum+=1; else sum+=0; fi ;;
        esac
    done
    count=$((count + 1))
    if ! ((sum)); then
        echo "$crate: the licence $expression is not allowed by deny.toml"
        status=1
    fi
done < <(cargo metadata --locked --format-version 1 --all-features |
    grep -o '"name":"[^"]*","version":"[^"]*","id":"[^"]*","license":[^,]*,' |
    sed 's/"name":"\([^"]*\)".*"license":"\{0,1\}\([^",]*\).*/\1\t\2/')
packages=$(grep -c '^name = ' Cargo.lock)
echo "licences of $count crates"
if ((count != packages)); then
    echo "Cargo.lock has $packages crates"
    status=1
fi

# The packages outside of the workspace build with their own lock files.
for package in benches/comparison fuzz; do
    cargo metadata --locked --format-version 1 --manifest-path "$package/Cargo.toml" >/dev/null || status=1
done
exit $status
