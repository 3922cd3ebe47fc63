#!/usr/bin/env bash
# Shows that shared limits hold with real servers and with a cluster, also while these are killed, stopped, paused, full,
# read-only or cut off, or while their slots move. Also runs the tests of the metrics and of `ringgate redis check`. The tests
# start the servers at free ports. The script installs a server if it is missing and can be installed.
#
#   ci/redis.sh           with the server that is installed
#   ci/redis.sh valkey    with Valkey, from Debian's backports, unpacked into a temporary folder
source "$(dirname "$0")/common.sh"

# Unpacks Valkey, and puts its programs before others on the path, under the names of Redis.
valkey() {
    local folder packages=(valkey-server valkey-tools valkey-sentinel)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    mkdir "$folder/lists" "$folder/path"
    # The first source of Debian that this machine uses, for the suite of backports.
    awk 'BEGIN { RS = "" } NR == 1' /etc/apt/sources.list.d/debian.sources |
        sed "s/^Suites:.*/Suites: $(. /etc/os-release && echo "$VERSION_CODENAME")-backports/" >"$folder/debian.sources"
    local apt=(apt-get -q -o Dir::Etc::sourcelist="$folder/debian.sources" -o Dir::Etc::sourceparts=-
        -o Dir::State::lists="$folder/lists" -o APT::Sandbox::User=root)
    (cd "$folder" && "${apt[@]}" update && "${apt[@]}" download "${packages[@]}") >/dev/null 2>&1 ||
        not_run "Valkey cannot be downloaded here"
    local package program
    for package in "$folder"/*.deb; do dpkg -x "$package" "$folder"; done
    for program in server cli sentinel; do ln -s "$folder/usr/bin/valkey-$program" "$folder/path/redis-$program"; done
    PATH=$folder/path:$PATH
    redis-server --version
}

case ${1:-} in
    "") command -v valkey-server >/dev/null || needs redis-server redis-server ;;
    valkey) valkey ;;
    *) echo "usage: ci/redis.sh [valkey]" && exit 2 ;;
esac
cargo test --locked --features redis-cluster --test redis
cargo test --locked --features redis-cluster,redis-tls --test redis_cluster_tls
cargo test --locked --package ringgate-server-tests --test observe
cargo test --locked --package ringgate-cli --test redis_check
