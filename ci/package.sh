#!/usr/bin/env bash
# Shows that both packages can be published: each contains the right files and builds from them alone (the library with tests
# and examples), and every file that its README.md links to is packed.
#
#   ci/package.sh            builds
#   ci/package.sh --tests    also runs the packed tests
source "$(dirname "$0")/common.sh"

[[ $# -eq 0 || $* == --tests ]] || { echo "usage: ci/package.sh [--tests]"; exit 2; }
git ls-files >/dev/null 2>&1 || not_run "the expected files are listed by git, and this is no git repository"

# Files that only contributors need, and packages that are not published.
left_out='^(\.ci|\.github|benches|ci|cli|examples/(basic|servers)|fuzz|proofs/[^/]+|tests/servers)/|^(\.gitignore|Cargo\.lock|deny\.toml|rustfmt\.toml)$'
# Files that cargo adds.
added='^(Cargo\.lock|\.cargo_vcs_info\.json|Cargo\.toml\.orig)$'
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

# $1: a package; standard input: the files that it should have.
holds() {
    diff <(sort) <(cargo package --locked --allow-dirty --package "$1" --list 2>/dev/null | grep -vE "$added" | sort) ||
        { echo "$1: < is missing from the package, > should not be in it: see \`include\` in Cargo.toml and the lists in ci/package.sh"; exit 1; }
}
git ls-files | grep -vE "$left_out" | holds ringgate
(cd cli && git ls-files | grep -v '^tests/') | holds ringgate-cli

# With --workspace, the packages find each other before any of them is published. They are checked below instead of built here.
cargo publish --dry-run --no-verify --locked --allow-dirty --workspace
cargo package --no-verify --locked --allow-dirty --quiet --package ringgate --package ringgate-cli
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
root=$PWD unpacked=$CARGO_TARGET_DIR/package/unpacked
rm -rf "$unpacked"
mkdir -p "$unpacked"
cp Cargo.lock "$unpacked"
for name in ringgate ringgate-cli; do
    tar -xzf "$CARGO_TARGET_DIR/package/$name-$version.crate" -C "$unpacked"
    cd "$unpacked/$name-$version"
    echo "$name: $(find . -type f | wc -l) files"
    while read -r link; do
        [[ -e $link ]] || { echo "README.md of $name links to $link, which is not packed"; exit 1; }
    done < <(grep -o '](\(\w\|[./-]\)*)' README.md | sed 's/^](\(.*\))$/\1/')
done
# A workspace of what was unpacked: the tool uses the packed library. With the profile of this workspace, dependencies that
# ci/clippy.sh has checked are not checked again.
{
    printf '[workspace]\nresolver = "3"\nmembers = ["ringgate-%s", "ringgate-cli-%s"]\n' "$version" "$version"
    printf '[patch.crates-io]\nringgate = { path = "ringgate-%s" }\n' "$version"
    sed -n '/^\[profile\.dev/,/^$/p' "$root/Cargo.toml"
} >"$unpacked/Cargo.toml"
cd "$unpacked"
cargo check --workspace --all-features --all-targets
if [[ $* == --tests ]]; then
    cargo test --package ringgate --all-features
fi
