#!/usr/bin/env bash
# Shows that the tests can fail: applies each mutation of ci/mutants.txt to a copy of the project, and
# expects the test that it names to notice. Exits with 1 if a mutation survives or no longer applies.
#
#   ci/mutants.sh          all of them
#   ci/mutants.sh TEXT     those whose name, file or test contains the text
source "$(dirname "$0")/common.sh"

work=${MUTANTS_DIR:-target/mutants}
mkdir -p "$work"
work=$(cd "$work" && pwd)
copy=$work/copy
log=$work/log
limit=${MUTANT_SECONDS:-120}
mkdir -p "$copy"
# Many small builds: quick to build matters more than quick to run.
export CARGO_TARGET_DIR=$work/target CARGO_INCREMENTAL=1 CARGO_PROFILE_MODELS_OPT_LEVEL=1
# Whether a mutation is noticed is not to depend on luck.
export PROPTEST_RNG_SEED=1

# Runs one named test. 3: does not compile.
run() (
    cd "$copy"
    case $1 in
        loom)
            export RUSTFLAGS="--cfg ringgate_loom"
            command="cargo test --quiet --profile models --features rules,tokio --test models" ;;
        lib) command="cargo test --quiet --features rules,tokio --lib" ;;
        redis-lib) command="cargo test --quiet --features redis --lib" ;;
        redis) command="cargo test --quiet --features redis,redis-cluster --test redis" ;;
        *) command="cargo test --quiet --features rules,tokio --test $1" ;;
    esac
    $command --no-run || exit 3
    timeout "$limit" $command "$2"
)

total=0 failed=0
check() {
    if [[ -n ${only:-} && "$what $file $run" != *"$only"* ]]; then return; fi
    total=$((total + 1))
    for item in Cargo.toml Cargo.lock src cli tests benches examples README.md; do
        rm -rf "${copy:?}/$item"
        cp -R "$item" "$copy/$item"
    done
    if ! FROM=$from TO=$to perl -0777 -i -pe '
        BEGIN { ($text = $ENV{FROM}) =~ s/\s//g; $text = join "\\s*", map quotemeta, split //, $text }
        $n = s/$text/$ENV{TO}/g;
        END { $? = $n == 1 ? 0 : 1 }' "$copy/$file"; then
        echo "STALE     $what: not exactly once in $file: $from"
        failed=$((failed + 1))
        return
    fi
    local status=0
    # shellcheck disable=SC2086
    run $run >"$log" 2>&1 || status=$?
    case $status in
        0) echo "SURVIVED  $what ($run)"; failed=$((failed + 1)) ;;
        3) echo "BROKEN    $what: does not compile"; tail -12 "$log"; failed=$((failed + 1)) ;;
        124) echo "UNDECIDED $what ($run: not ended after $limit s)"; failed=$((failed + 1)) ;;
        *)
            if grep -q "^test result: FAILED" "$log" || grep -q "panicked at" "$log"; then
                echo "caught    $what ($run)"
            else
                echo "BROKEN    $what: the test did not run"; tail -5 "$log"; failed=$((failed + 1))
            fi ;;
    esac
}

only=${1:-}
while IFS= read -r line; do
    case $line in
        "what: "*) what=${line#*: } to="" ;;
        "file: "*) file=${line#*: } ;;
        "from: "*) from=${line#*: } ;;
        "to: "*) to=${line#*: } ;;
        "test: "*) run=${line#*: }; check </dev/null ;;
    esac
done <ci/mutants.txt

echo "$((total - failed)) of $total mutations caught"
[[ $failed -eq 0 && $total -gt 0 ]]
