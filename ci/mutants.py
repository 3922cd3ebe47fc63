"""Applies each mutation of ci/mutants.txt to a copy of the project and runs the test that must notice it.

    python3 ci/mutants.py            all of them
    python3 ci/mutants.py TEXT       those whose claim, description, file or test contains the text
    python3 ci/mutants.py --list     only checks that each still applies, and says where

A mutation is found by its tokens. Comments and white space do not count. If the code is not found as written, it is
searched again with every name as a placeholder, in its file and then in all files, so that a renamed variable, type,
method or file does not lose the mutation. It must be found exactly once.
"""

import itertools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

COPIED = ["Cargo.toml", "Cargo.lock", "src", "tests", "benches", "cli", "examples", "README.md"]
WORKERS = int(os.environ.get("MUTANT_WORKERS", os.cpu_count() or 1))
LIMIT = int(os.environ.get("MUTANT_SECONDS", "120"))
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.abspath(os.environ.get("MUTANTS_DIR", os.path.join(ROOT, "target", "mutants")))

# The features and the target that a kind of test is built with. Others than these are files of tests.
LOOM = ("rules,tokio", ["--profile", "models", "--test", "models"])
KINDS = {
    "loom": LOOM,
    "lib": ("rules,tokio", ["--lib"]),
    "shared": ("shared", ["--test", "shared"]),
    "redis-lib": ("redis", ["--lib"]),
    "redis": ("redis,redis-cluster", ["--test", "redis"]),
}

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/|--[^\n]*)|(?P<string>b?\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\\n]|\\.)')"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<number>[0-9][A-Za-z_0-9]*)|(?P<sign>[^\sA-Za-z_0-9])",
    re.S,
)
# Names that mean something by themselves: keywords, and what the mutations of orderings are about.
FIXED = set(
    "as break const continue else enum fn for if impl in let loop match mod move mut pub ref return self Self static "
    "struct super trait true false type unsafe use where while Ok Err Some None Option Result bool u8 u32 u64 u128 usize "
    "i64 Relaxed Acquire Release AcqRel SeqCst Ordering fence min max saturating_sub saturating_add wrapping_add "
    "wrapping_sub compare_exchange load store swap fetch_add local then end and or not nil tonumber redis call".split()
)


def tokens(text, lua=False):
    """(kind, text, start, end) of each token that counts."""
    found = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "comment":
            # "--" begins a comment in Lua only.
            if match.group().startswith("--") != lua:
                if match.group().startswith("--"):
                    inner = tokens(" " * 2 + match.group()[2:], lua)
                    found += [("sign", "-", match.start() + i, match.start() + i + 1) for i in (0, 1)]
                    found += [(k, t, match.start() + s, match.start() + e) for k, t, s, e in inner]
                else:
                    found += [("sign", c, match.start() + i, match.start() + i + 1) for i, c in enumerate("//")]
            continue
        found.append((kind, match.group(), match.start(), match.end()))
    return found


def matches(pattern, text, renamed):
    """Where the pattern stands in the text: (start, end, names), names: what each name of the pattern is called there."""
    places = []
    if not pattern:
        return places
    for first in range(len(text) - len(pattern) + 1):
        names, taken = {}, {}
        for (kind, wanted, _, _), (other_kind, there, _, _) in zip(pattern, text[first:]):
            if kind != other_kind:
                break
            if kind == "name" and renamed and wanted not in FIXED:
                if there in FIXED or names.setdefault(wanted, there) != there or taken.setdefault(there, wanted) != wanted:
                    break
            elif wanted != there:
                break
        else:
            places.append((text[first][2], text[first + len(pattern) - 1][3], names))
    return places


class Sources:
    """The files that mutations are looked for in, as tokens."""

    def __init__(self):
        self.texts = {}
        for folder, _, files in os.walk(os.path.join(ROOT, "src")):
            for name in files:
                if name.endswith((".rs", ".lua")):
                    path = os.path.join(folder, name)
                    text = open(path, encoding="utf-8").read()
                    self.texts[os.path.relpath(path, ROOT)] = (text, tokens(text, name.endswith(".lua")))

    def find(self, mutation):
        """(file, start, end, names, how), or why not."""
        file = mutation["file"]
        pattern = tokens(mutation["from"], file.endswith(".lua"))
        others = [path for path in self.texts if path.endswith(file[-3:])]
        for how, files, renamed in [
            ("as written", [file], False),
            ("renamed", [file], True),
            ("moved", others, False),
            ("moved and renamed", others, True),
        ]:
            if how.startswith("moved") and len(pattern) < 6:
                continue
            places = [
                (path, *place)
                for path in files
                if path in self.texts
                for place in matches(pattern, self.texts[path][1], renamed)
            ]
            if len(places) == 1:
                return (*places[0], how)
            if len(places) > 1 and not renamed:
                return f"{len(places)} times in {', '.join(sorted({place[0] for place in places}))}"
        return "not found"


def read(path):
    mutations, entry = [], {}
    for line in open(path, encoding="utf-8"):
        key, colon, value = line.rstrip("\n").partition(":")
        if not colon or key not in ("claim", "what", "file", "from", "to", "test"):
            continue
        entry[key] = value.strip()
        if key == "test":
            entry.setdefault("to", "")
            mutations.append(entry)
            entry = {}
    return mutations


def environment(worker, kind):
    env = dict(os.environ)
    env.update(
        # Of each worker: cargo would take the copies of two workers for one package.
        CARGO_TARGET_DIR=os.path.join(worker, "target"),
        CARGO_INCREMENTAL="1",
        CARGO_PROFILE_DEV_DEBUG="0",
        CARGO_PROFILE_MODELS_OPT_LEVEL="1",
        # Whether a mutation is noticed must not depend on luck.
        PROPTEST_RNG_SEED="1",
    )
    if kind == "loom":
        env["RUSTFLAGS"] = "--cfg ringgate_loom"
        env["CARGO_TARGET_DIR"] += "-loom"
    return env


def build_test(worker, kind):
    """Builds the tests of a kind: whether that succeeds, and cargo's output."""
    features, target = KINDS.get(kind, ("rules,tokio", ["--test", kind]))
    command = ["cargo", "test", "--quiet", "--locked", "--features", features, *target]
    build = subprocess.run(
        [*command, "--no-run", "--message-format", "json-render-diagnostics"],
        cwd=os.path.join(worker, "copy"), env=environment(worker, kind), capture_output=True, text=True,
    )
    return build.returncode == 0, build


def run_test(worker, test):
    """Builds the copy's test and runs it: (outcome, output), with an outcome of passed, failed, or why neither."""
    kind, _, name = test.partition(" ")
    built, build = build_test(worker, kind)
    if not built:
        return "does not compile", build.stderr
    programs = [json.loads(line).get("executable") for line in build.stdout.splitlines() if line.startswith("{")]
    program = [path for path in programs if path][-1]
    run = subprocess.Popen(
        [program, *name.split()],
        cwd=os.path.join(worker, "copy"), env=environment(worker, kind), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        # A session of its own: servers that the test has started end with it.
        start_new_session=True,
    )
    try:
        output, _ = run.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return f"not ended after {LIMIT} s", ""
    if "running 0 tests" in output:
        return "there is no such test", ""
    if run.returncode == 0:
        return "passed", output
    if "test result: FAILED" in output or "panicked at" in output:
        return "failed", output
    return "the test did not run", output


def last_lines(text):
    return "".join(f"\n    {line}" for line in text.splitlines()[-12:])


def try_out(worker, mutation, sources):
    """The outcome of one mutation, as a line."""
    place = sources.find(mutation)
    what = f"[{mutation['claim']}] {mutation['what']} ({mutation['test']})"
    if isinstance(place, str):
        return False, f"STALE     {what}: {place}: {mutation['from']}"
    file, start, end, names, how = place
    note = "" if how == "as written" else f", {how}: {file}"
    text = sources.texts[file][0]
    to = mutation["to"]
    if names:
        to = re.sub(r"[A-Za-z_][A-Za-z_0-9]*", lambda name: names.get(name.group(), name.group()), to)
    path = os.path.join(worker, "copy", file)
    with open(path, "w", encoding="utf-8") as mutated:
        mutated.write(text[:start] + to + text[end:])
    try:
        outcome, output = run_test(worker, mutation["test"])
    finally:
        with open(path, "w", encoding="utf-8") as restored:
            restored.write(text)
    if outcome == "failed":
        return True, f"caught    {what}{note}"
    if outcome == "passed":
        return False, f"SURVIVED  {what}{note}"
    return False, f"UNDECIDED {what}: {outcome}{note}{last_lines(output)}"


def try_unchanged(worker, test):
    """Whether a test passes without any mutation: a test that always fails notices nothing."""
    outcome, output = run_test(worker, test)
    if outcome == "passed":
        return True, f"passes    {test}"
    return False, f"BROKEN    {test}, without a mutation: {outcome}{last_lines(output)}"


def prepare(kinds):
    """Makes the folders of the workers. The first one builds the tests, and the others get copies of what it has built."""
    workers = [os.path.join(WORK, f"worker-{number}") for number in range(WORKERS)]
    for worker in workers:
        copy = os.path.join(worker, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        os.makedirs(copy)
        for item in COPIED:
            path = os.path.join(ROOT, item)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(copy, item), ignore=shutil.ignore_patterns("target"))
            elif os.path.exists(path):
                shutil.copy2(path, os.path.join(copy, item))
    for kind in kinds:
        build_test(workers[0], kind)
    for worker in workers[1:]:
        for target in ("target", "target-loom"):
            built, copied = os.path.join(workers[0], target), os.path.join(worker, target)
            if os.path.exists(built) and not os.path.exists(copied):
                # With the times of the files, by which cargo sees that nothing has changed.
                shutil.copytree(built, copied, symlinks=True)
    return workers


def main(arguments):
    only_list = "--list" in arguments
    wanted = " ".join(argument for argument in arguments if argument != "--list")
    mutations = [m for m in read(os.path.join(ROOT, "ci", "mutants.txt")) if wanted in " ".join(m.values())]
    sources = Sources()
    if only_list:
        stale = 0
        for mutation in mutations:
            place = sources.find(mutation)
            if isinstance(place, str):
                stale += 1
                print(f"STALE     {mutation['what']}: {mutation['file']}: {place}: {mutation['from']}")
            elif place[4] != "as written":
                print(f"{place[4]:9} {mutation['what']}: {place[0]}")
        print(f"{len(mutations) - stale} of {len(mutations)} mutations apply")
        return 1 if stale or not mutations else 0
    # Tests of one kind follow one another, which keeps builds small. `ci/loom.sh` shows that all models pass.
    waiting, lines = queue.Queue(), threading.Lock()
    by_kind = sorted(mutations, key=lambda m: (m["test"].split()[0], m["file"]))
    for kind, group in itertools.groupby(by_kind, key=lambda m: m["test"].split()[0]):
        group = list(group)
        if kind != "loom":
            for test in sorted({mutation["test"] for mutation in group}):
                waiting.put(test)
        for mutation in group:
            waiting.put(mutation)
    caught = broken = 0

    def work(worker):
        nonlocal caught, broken
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            if isinstance(job, str):
                good, line = try_unchanged(worker, job)
            else:
                good, line = try_out(worker, job, sources)
            with lines:
                if isinstance(job, str):
                    broken += not good
                else:
                    caught += good
                print(f"{time.monotonic() - began:5.1f} s  {line}", flush=True)

    workers = prepare(sorted({mutation["test"].split()[0] for mutation in mutations}))
    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{caught} of {len(mutations)} mutations caught" + (f"; {broken} tests fail without any" if broken else ""))
    return 0 if caught == len(mutations) > 0 and not broken else 1


sys.exit(main(sys.argv[1:]))
