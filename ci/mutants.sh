#!/usr/bin/env bash
# Shows that the tests can fail: applies each mutation of ci/mutants.txt to a copy of the project, and expects the test that
# the mutation names to fail. Exits with 1 if a mutation survives or does not apply. See ci/mutants.py.
#
#   ci/mutants.sh          runs all mutations
#   ci/mutants.sh TEXT     runs those whose claim, description, file or test contains TEXT
#   ci/mutants.sh --list   lists the mutations that do not apply, and those that were found under other names
source "$(dirname "$0")/common.sh"

needs python3 python3
# Without a server, the tests of a store pass without running.
command -v valkey-server >/dev/null || needs redis-server redis-server
python3 ci/mutants.py "$@"
