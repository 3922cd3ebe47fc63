#!/usr/bin/env bash
# Shows that the tests can fail: applies mutations of ci/mutants.txt to a copy of the project, and expects the test that each
# mutation names to fail. Exits with 1 if a mutation survives or does not apply. See ci/mutants.py.
#
#   ci/mutants.sh            runs the mutations whose entry, code or test changed since the commit in ci/landed.txt, and a
#                            tenth of the others, which rotates with the number of commits
#   ci/mutants.sh all        runs all mutations
#   ci/mutants.sh TEXT...    runs those whose claim, code, file or test contains a TEXT
#   ci/mutants.sh --list     lists the claims without a mutation, and the mutations that do not apply
#   ci/mutants.sh --landed   records HEAD in ci/landed.txt, once a run has caught its mutations; commit that file with the
#                            next change
source "$(dirname "$0")/common.sh"

needs python3 python3
case ${1:-} in
    --list | --landed) ;;
    # Without a server, the tests of a store are skipped.
    *) command -v valkey-server >/dev/null || needs redis-server redis-server ;;
esac
python3 ci/mutants.py "$@"
