#!/usr/bin/env bash
# Shows that limits over many machines hold against real servers, single ones and a cluster, which the tests start and stop
# on ports of their own (with its metrics and `ringgate redis check`): also while these are killed, stopped, paused, full, read-only, cut off, or their slots move. Installs a server
# where there is none and that is allowed.
source "$(dirname "$0")/common.sh"

command -v valkey-server >/dev/null || needs redis-server redis-server
cargo test --locked --features redis-cluster --test redis
cargo test --locked --features redis-cluster,redis-tls --test redis_cluster_tls
cargo test --locked --package ringgate-server-tests --test observe
cargo test --locked --package ringgate-cli --test redis_check
