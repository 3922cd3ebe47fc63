#!/usr/bin/env bash
# Shows that shared limits hold with real servers and with a cluster, also while these are killed, stopped, paused, full,
# read-only or cut off, or while their slots move. Also runs the tests of the metrics and of `ringgate redis check`. The tests
# start the servers at free ports. The script installs a server if it is missing and can be installed.
source "$(dirname "$0")/common.sh"

command -v valkey-server >/dev/null || needs redis-server redis-server
cargo test --locked --features redis-cluster --test redis
cargo test --locked --features redis-cluster,redis-tls --test redis_cluster_tls
cargo test --locked --package ringgate-server-tests --test observe
cargo test --locked --package ringgate-cli --test redis_check
