#!/usr/bin/env bash
# Shows that the tests can fail: applies each mutation of ci/mutants.txt to a copy of the project and expects the test
# that it names to fail. Exits with 1 if a mutation survives or no longer applies. See ci/mutants.py.
#
#   ci/mutants.sh          all of them
#   ci/mutants.sh TEXT     those whose claim, description, file or test contains the text
#   ci/mutants.sh --list   only says which no longer apply, and which were found under other names
source "$(dirname "$0")/common.sh"

needs python3 python3
# Without a server, tests of a store pass without having run.
command -v valkey-server >/dev/null || needs redis-server redis-server
python3 ci/mutants.py "$@"
