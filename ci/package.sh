#!/usr/bin/env bash
# Shows that what is packed for the registry is every file of the repository but those listed below, that it builds from
# there alone, tests, examples and benches too, and that README.md links to nothing that is not there.
#
#   ci/package.sh            builds
#   ci/package.sh --tests    runs the packed tests as well
source "$(dirname "$0")/common.sh"

[[ $# -eq 0 || $* == --tests ]] || { echo "usage: ci/package.sh [--tests]"; exit 2; }
git ls-files >/dev/null 2>&1 || not_run "which files there should be is known from git only"

# What only those need who work on the crate, and packages of their own.
left_out='^(\.ci|\.github|ci|fuzz|benches/comparison)/|^(\.gitignore|benches/instructions\.txt|deny\.toml|rustfmt\.toml)$'
# What cargo adds.
added='^(\.cargo_vcs_info\.json|Cargo\.toml\.orig)$'
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
if ! diff <(git ls-files | grep -vE "$left_out" | sort) \
    <(cargo package --locked --allow-dirty --list 2>/dev/null | grep -vE "$added" | sort); then
    echo "< is not packed: it belongs into \`include\` of Cargo.toml, or to what is left out here; > is packed, and unknown to git"
    exit 1
fi

cargo package --locked --allow-dirty
name=$(sed -n '/^\[package\]/,/^$/s/^\(name\|version\) = "\(.*\)"$/\2/p' Cargo.toml | paste -sd-)
cd "$CARGO_TARGET_DIR/package/$name"
echo "$name: $(find . -type f | wc -l) files"
while read -r link; do
    [[ -e $link ]] || { echo "README.md leads to $link, which is not packed"; exit 1; }
done < <(grep -o '](\(\w\|[./-]\)*)' README.md | sed 's/^](\(.*\))$/\1/')
cargo check --locked --all-features --all-targets
if [[ $* == --tests ]]; then
    cargo test --locked --all-features
fi
