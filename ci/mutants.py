"""Applies the mutations of ci/mutants.txt to a copy of the project, and runs for each the test that must fail.

    python3 ci/mutants.py            runs those that changed since they were last tried, and a tenth of the others
    python3 ci/mutants.py all        runs all mutations
    python3 ci/mutants.py TEXT...    runs those whose claim, code, file or test contains a TEXT
    python3 ci/mutants.py --list     only checks that each claim has a mutation, and that each mutation applies
    python3 ci/mutants.py --landed   records HEAD, the mutations of which a run has tried, in ci/landed.txt

A mutation belongs to a claim of a text, which is a protocol file or a comment about one. A comment beside the code names both,
and says what the code does for the claim:

    // Claim: table 6, an entry is renamed only after it is claimed.

The number is that of the claim in the text. Words in its place are those of a heading of the text, or of a bold phrase. The
mutated code begins in the statement or item that follows the comment (in Lua, on the line that follows), and is found there by
its tokens. So changes elsewhere, comments and white space do not lose a mutation. Each numbered claim has a mutation, or a
reason in ci/mutants.txt why it needs none.

A mutation has changed if its entry, the file of its code, or the file of its test differs from the commit in ci/landed.txt.
An old commit there only makes more mutations run, and a commit that is no ancestor of HEAD makes all run. The tenth depends on
the number of commits, so it rotates, and a second run for the same commit tries the same mutations.

A build takes longer than most tests, so mutations within functions are built together. In the copy, a function has its
body once more for each mutation, and the environment variable RINGGATE_MUTANT selects a mutation by its number. Without
that variable the copy equals the project, and each test must pass. These mutations are built separately: those outside of
functions, in const functions or in scripts, and those that do not compile beside the others.

A mutation is caught if the test fails or hangs. A test hangs if it takes 30 seconds and 20 times as long as without the
mutation.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

COPIED = ["Cargo.toml", "Cargo.lock", "src", "tests", "benches", "cli", "examples", "README.md"]
WORKERS = int(os.environ.get("MUTANT_WORKERS", os.cpu_count() or 1))
LIMIT = int(os.environ.get("MUTANT_SECONDS", "240"))
LANDED = os.path.join("ci", "landed.txt")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.abspath(os.environ.get("MUTANTS_DIR", os.path.join(ROOT, "target", "mutants")))

# The features and the target of each kind of test. Any other kind is the name of a test file.
# The profile of the models is a compromise: loom is optimized, and the models build fast for each mutation.
LOOM_PROFILE = ["--profile", "models", "--config", "profile.models.opt-level=1"]
LOOM_PROFILE += ["--config", 'profile.models.package."*".opt-level=3']
LOOM = ("calendar,rules,wait", [*LOOM_PROFILE, "--test", "models"])
KINDS = {
    "loom": LOOM,
    "lib": ("calendar,rules,wait", ["--lib"]),
    "shared": ("shared", ["--test", "shared"]),
    "wait": ("calendar,rules,shared,wait", ["--test", "wait"]),
    "redis-lib": ("redis", ["--lib"]),
    "redis": ("redis,redis-cluster", ["--test", "redis"]),
}

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/|--[^\n]*)|(?P<string>b?\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\\n]|\\.)')"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<number>[0-9][A-Za-z_0-9]*)|(?P<sign>[^\sA-Za-z_0-9])",
    re.S,
)
# A comment that names a claim.
ANCHOR = re.compile(r"^[ \t]*(?://|--) Claim: (.+)\.$", re.MULTILINE)


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


class Texts:
    """The texts whose claims have mutations: for each name, the file and the section."""

    def __init__(self, lines):
        self.by_name = {}
        for line in lines:
            name, file, section = re.fullmatch(r"(.+?) = (\S+?)(?: # (.+))?", line).groups()
            with open(os.path.join(ROOT, file), encoding="utf-8") as opened:
                text = re.sub(r"^//[/!] ?", "", opened.read(), flags=re.MULTILINE)
            if section:
                found = re.search(rf"^(#+) {re.escape(section)}$(.*?)(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL)
                text = found[2] if found else ""
            self.by_name[name] = (file, text)

    def numbered(self):
        """The numbered claims of all texts."""
        for name, (_, text) in self.by_name.items():
            for number in re.findall(r"^(?:(\d+)\. |- )\*\*(?:(I\d+)\*\*)?", text, re.MULTILINE):
                if any(number):
                    yield f"{name} {''.join(number)}"

    def error(self, claim):
        """Why a claim is in no text, or None."""
        title = claim.partition(",")[0]
        name = max((name for name in self.by_name if f"{title} ".startswith(f"{name} ")), key=len, default=None)
        if name is None:
            return "no such text"
        label = title[len(name) + 1 :]
        titles = re.findall(r"^#+ (.*)$|\*\*(.*?)\*\*", self.by_name[name][1], re.MULTILINE)
        is_number = re.fullmatch(r"I?\d+", label)
        known = title in self.numbered() if is_number else not label or any(label in " ".join(it).lower() for it in titles)
        return None if known else f"not in {self.by_name[name][0]}"


class Sources:
    """The files that mutations are looked for in: for each file, the text and its tokens; and the comments that name a claim."""

    def __init__(self):
        self.texts, self.anchors = {}, {}
        for folder, _, files in sorted(os.walk(os.path.join(ROOT, "src"))):
            for name in sorted(files):
                if name.endswith((".rs", ".lua")):
                    path = os.path.join(folder, name)
                    text = open(path, encoding="utf-8").read()
                    file = os.path.relpath(path, ROOT)
                    self.texts[file] = (text, tokens(text, name.endswith(".lua")))
                    for anchor in ANCHOR.finditer(text):
                        self.anchors.setdefault(anchor[1], []).append((file, anchor.end()))

    def find(self, mutation):
        """(file, start, end) of the code of a mutation, or why it is not found."""
        anchors = self.anchors.get(mutation["claim"], [])
        if len(anchors) != 1:
            return f"{len(anchors)} comments name the claim"
        [(file, after)] = anchors
        text, found = self.texts[file]
        lua = file.endswith(".lua")
        first = next((index for index, token in enumerate(found) if token[2] >= after), len(found))
        pattern = [token[1] for token in tokens(mutation["from"], lua)]
        places = [
            (file, found[index][2], found[index + len(pattern) - 1][3])
            for index in range(first, first + statement(text, found[first:], lua))
            if pattern and pattern == [token[1] for token in found[index : index + len(pattern)]]
        ]
        line = text.count("\n", 0, after) + 1
        return places[0] if len(places) == 1 else f"{len(places)} times in the statement after {file}:{line}"


def statement(text, found, lua):
    """The number of tokens of the statement or item with which the tokens begin; in Lua, of the line."""
    depth = 0
    for index, (_, token, start, _) in enumerate(found):
        if lua and "\n" in text[found[0][2] : start]:
            return index
        depth += (token in "([{") - (token in ")]}")
        following = found[index + 1][1] if index + 1 < len(found) else ""
        ends = token == ";" or token == "}" and following not in ("else", ".", "?", ")", ",", ";")
        if not lua and (depth < 0 or depth == 0 and ends):
            return index + 1
    return len(found)


def read(text):
    """The mutations of a text like that of ci/mutants.txt, the lines of its texts, and the claims without a mutation."""
    mutations, entry, texts, without = [], {}, [], []
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        value = value.strip()
        if key == "text":
            texts.append(value)
        elif key == "without":
            without.append(value.partition(":")[0])
        elif colon and key in ("claim", "from", "to", "test"):
            entry[key] = value
            if key == "test":
                entry.setdefault("to", "")
                mutations.append(entry)
                entry = {}
    return mutations, texts, without


def disagreements(pairs, sources, texts, without):
    """Lines that say where the mutations, the texts and the comments beside the code disagree."""
    claims = {mutation["claim"] for mutation, _ in pairs}
    numbers = {claim.partition(",")[0] for claim in claims}
    for mutation, place in pairs:
        if isinstance(place, str):
            yield f"{mutation['claim']}: {place}: {mutation['from']}"
    for claim in sorted(claims):
        if error := texts.error(claim):
            yield f"{claim}: {error}"
    for claim, places in sources.anchors.items():
        if claim not in claims:
            yield f"{claim}: no mutation, but a comment in {places[0][0]}"
    numbered = list(texts.numbered())
    for claim in numbered:
        if (claim in numbers) == (claim in without):
            yield f"{claim}: {'both a mutation and a reason for none' if claim in numbers else 'no mutation'}"
    for claim in without:
        if claim not in numbered:
            yield f"{claim}: no such claim"
    folders = [folder for folder, _, files in os.walk(os.path.join(ROOT, "src")) if "protocol.md" in files]
    protocols = {os.path.relpath(os.path.join(folder, "protocol.md"), ROOT) for folder in folders}
    for file in sorted(protocols - {file for file, _ in texts.by_name.values()}):
        yield f"{file}: not among the texts of ci/mutants.txt"


def git(*arguments):
    """The output of git, or None if it fails."""
    try:
        run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return run.stdout if run.returncode == 0 else None


def test_files(test):
    """The files that define the tests which a mutation names."""
    kind, *names = test.split()
    kind = {"loom": "models", "lib": "", "redis-lib": ""}.get(kind, kind)
    roots = [os.path.join("tests", f"{kind}.rs"), os.path.join("tests", kind)] if kind else ["src"]
    files = [root for root in roots if os.path.isfile(os.path.join(ROOT, root))]
    for root in roots:
        for folder, _, inside in os.walk(os.path.join(ROOT, root)):
            files += [os.path.relpath(os.path.join(folder, name), ROOT) for name in inside if name.endswith(".rs")]
    wanted = re.compile("|".join(rf"fn \w*{re.escape(name.rpartition('::')[2])}" for name in names) or "fn ")
    found = {file for file in files if wanted.search(open(os.path.join(ROOT, file), encoding="utf-8").read())}
    # A name of a module, and not of a function.
    return found or set(files)


def due(pairs):
    """Those of the mutations, given with their places, that a run without arguments tries, and a line that says why."""
    base = open(os.path.join(ROOT, LANDED), encoding="utf-8").read().strip()
    count = git("rev-list", "--count", "HEAD")
    if count is None or git("merge-base", "--is-ancestor", base, "HEAD") is None:
        return pairs, f"all {len(pairs)} mutations are tried: git does not find the commit of {LANDED} in the history of HEAD"
    changed = set(git("diff", "--no-renames", "--name-only", base).splitlines())
    changed |= set(git("ls-files", "--others", "--exclude-standard").splitlines())
    old = read(git("show", f"{base}:ci/mutants.txt"))[0]
    tenth, files, chosen, counts = int(count) % 10, {}, [], [0, 0]
    for mutation, place in pairs:
        test = mutation["test"]
        files.setdefault(test, test_files(test))
        new = mutation not in old or isinstance(place, str) or place[0] in changed or files[test] & changed
        turn = zlib.crc32(f"{mutation['claim']} {mutation['to']}".encode()) % 10 == tenth
        if new or turn:
            chosen.append((mutation, place))
            counts[0 if new else 1] += 1
    why = f"{counts[0]} changed since {base[:10]}, and {counts[1]} are of tenth {tenth} of the others"
    return chosen, f"{len(chosen)} of {len(pairs)} mutations are tried: {why}"


def body_around(text, found, start, end):
    """The body of the function around a place: (start, end), its braces left out; None if it cannot have variants."""
    opened, around = [], None
    for index, (_, token, at, after) in enumerate(found):
        if token == "{":
            head = []
            for _, earlier, _, _ in reversed(found[:index]):
                if earlier in "{};":
                    break
                head.insert(0, earlier)
            opened.append((after, head))
        elif token == "}" and opened:
            began, head = opened.pop()
            if began <= start and end <= at and "fn" in head:
                returned = head[head.index(">") :] if ">" in head else []
                plain = "const" not in head[: head.index("fn")] and not ("-" in head and "impl" in returned)
                # The innermost function ends first.
                around = around or (began, at, plain)
    return around[:2] if around and around[2] else None


# The code that selects a mutation. It is a part of `sync`, which the models contain, too.
CHOICE = """
/// Whether the mutation of this number is the one to try.
#[cfg(feature = "std")]
pub fn mutant(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let chosen = || std::env::var("RINGGATE_MUTANT").ok().and_then(|text| text.parse().ok());
    *CHOSEN.get_or_init(|| chosen().unwrap_or(0)) == number
}
"""


class Project:
    """The copy: with all mutations that can be built together, and then with one of the others at a time."""

    def __init__(self, sources, places):
        self.sources, self.places = sources, places
        self.copy = os.path.join(WORK, "copy")
        shutil.rmtree(self.copy, ignore_errors=True)
        os.makedirs(self.copy)
        for item in COPIED:
            path = os.path.join(ROOT, item)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(self.copy, item), ignore=shutil.ignore_patterns("target"))
            elif os.path.exists(path):
                shutil.copy2(path, os.path.join(self.copy, item))
        self.together, self.alone, self.programs = {}, [], {}
        for number, (mutation, place) in enumerate(places, 1):
            file, start, end = place
            text, found = sources.texts[file]
            body = body_around(text, found, start, end) if file.endswith(".rs") else None
            if body:
                self.together[number] = (mutation, place, body)
            else:
                self.alone.append((mutation, place))

    def write(self, file, text):
        with open(os.path.join(self.copy, file), "w", encoding="utf-8") as mutated:
            mutated.write(text)

    def weave(self):
        """Writes the files with all mutations of `together`: for each file, the lines of each mutation."""
        lines = {}
        for file, (text, _) in self.sources.texts.items():
            by_body = {}
            for number, (mutation, place, body) in self.together.items():
                if place[0] == file:
                    by_body.setdefault(body, []).append((number, mutation, place))
            for (began, ended), variants in sorted(by_body.items(), reverse=True):
                woven = "\n"
                for number, mutation, place in variants:
                    mutated = text[began : place[1]] + mutation["to"] + text[place[2] : ended]
                    first = text[:began].count("\n") + woven.count("\n") + 1
                    woven += f"if crate::sync::mutant({number}) {{{mutated}}} else "
                    lines.setdefault(file, []).append([first, first + mutated.count("\n"), number])
                shift = woven.count("\n") + 1
                for earlier in lines.get(file, [])[: -len(variants)]:
                    earlier[0] += shift
                    earlier[1] += shift
                text = text[:began] + woven + "{" + text[began:ended] + "}\n" + text[ended:]
            self.write(file, text + (CHOICE if file == os.path.join("src", "sync.rs") else ""))
        return lines

    def build(self, kind):
        """Builds the tests of a kind: (program, cargo's messages, its errors); no program if that fails."""
        features, target = KINDS.get(kind, ("calendar,rules,wait", ["--test", kind]))
        command = ["cargo", "test", "--quiet", "--locked", "--features", features, *target]
        command += ["--no-run", "--message-format", "json"]
        build = subprocess.run(command, cwd=self.copy, env=environment(kind), capture_output=True, text=True)
        messages = [json.loads(line) for line in build.stdout.splitlines() if line.startswith("{")]
        programs = [message["executable"] for message in messages if message.get("executable")]
        errors = [it["message"] for it in messages if it.get("message", {}).get("level") == "error"]
        if build.returncode != 0:
            return None, errors, "".join(error["rendered"] for error in errors) or build.stderr
        return programs[-1], errors, ""

    def build_together(self, kinds):
        """Builds the tests of each kind. What does not compile beside the others is left for later."""
        lines = self.weave()
        for kind in kinds:
            program, errors, output = self.build(kind)
            while program is None:
                broken = {
                    number
                    for error in errors
                    for span in error["spans"]
                    for first, last, number in lines.get(span["file_name"], [])
                    if first <= span["line_start"] <= last
                }
                if not broken:
                    sys.exit(f"{kind}: does not compile{last_lines(output)}")
                for number in broken:
                    self.alone.append(self.together.pop(number)[:2])
                lines = self.weave()
                program, errors, output = self.build(kind)
            self.programs[kind] = program

    def unweave(self):
        for file, (text, _) in self.sources.texts.items():
            self.write(file, text)


def environment(kind):
    env = dict(os.environ)
    env.update(
        CARGO_TARGET_DIR=os.path.join(WORK, "target"),
        CARGO_INCREMENTAL="1",
        CARGO_PROFILE_DEV_DEBUG="0",
        # A fixed seed: whether a mutation is caught must not depend on random numbers.
        PROPTEST_RNG_SEED="1",
        # The first failure is enough. Shrinking it takes long.
        PROPTEST_MAX_SHRINK_ITERS="0",
    )
    if kind == "loom":
        env["RUSTFLAGS"] = "--cfg ringgate_loom"
        # The folder of ci/loom.sh, which has built the dependencies. Its profile has another level of optimization for the
        # library, so no mutation gets into the builds of that script.
        env["CARGO_TARGET_DIR"] = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "loom")
    return env


def run_test(project, program, test, number=0, limit=LIMIT):
    """Runs a test: (outcome, output), with an outcome of passed, failed, hangs, or why none of these."""
    kind, _, name = test.partition(" ")
    run = subprocess.Popen(
        [program, *name.split()],
        cwd=project.copy,
        env={**environment(kind), "RINGGATE_MUTANT": str(number)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A separate session, so that servers which the test has started end with it.
        start_new_session=True,
    )
    late = threading.Event()

    def stop():
        os.killpg(run.pid, signal.SIGKILL)

    timer = threading.Timer(limit, lambda: (late.set(), stop()))
    timer.start()
    output, failed, overflows = "", False, False
    for line in run.stdout:
        output += line
        # The first failure decides, so the other tests need not end. A model whose stack overflows may hang afterwards.
        if "has overflowed its stack" in line:
            overflows = True
            stop()
            break
        if re.match(r"test .* \.\.\. FAILED$", line):
            failed = True
            stop()
            break
    run.stdout.close()
    status = run.wait()
    timer.cancel()
    if late.is_set():
        return "hangs" if limit < LIMIT else f"not ended after {LIMIT} s", output
    if overflows:
        return "the stack overflows, which shows nothing of the mutation", output
    # A model that fails again while it unwinds aborts.
    if failed or (status != 0 and "panicked at" in output):
        return "failed", output
    if "running 0 tests" in output:
        return "there is no such test", ""
    return ("passed" if status == 0 else "the test did not run"), output


def last_lines(text):
    return "".join(f"\n    {line}" for line in text.splitlines()[-12:])


class Results:
    """Counts outcomes, and prints a line for each."""

    def __init__(self):
        self.lock, self.caught, self.broken, self.unchanged = threading.Lock(), 0, 0, {}
        self.failures = []

    def limit(self, test):
        """The seconds after which a mutated test hangs: far more than it took without a mutation."""
        return min(LIMIT, 30 + 20 * self.unchanged.get(test, LIMIT))

    def add(self, mutation, test, outcome, output, seconds):
        with self.lock:
            if mutation is None:
                self.broken += outcome != "passed"
                self.unchanged[test] = seconds
                line = f"passes    {test}" if outcome == "passed" else f"BROKEN    {test}: {outcome}{last_lines(output)}"
            else:
                self.caught += outcome in ("failed", "hangs")
                word = {"failed": "caught", "hangs": "hangs", "passed": "SURVIVED"}.get(outcome, "UNDECIDED")
                line = f"{word:9} {mutation['claim']}: {mutation['from']} -> {mutation['to']} ({test})"
                if word == "UNDECIDED":
                    line += f": {outcome}{last_lines(output)}"
            print(f"{seconds:5.1f} s  {line}", flush=True)
            if line.split()[0] in ("BROKEN", "SURVIVED", "UNDECIDED"):
                self.failures.append(line)


def main(arguments):
    if arguments == ["--landed"]:
        with open(os.path.join(ROOT, LANDED), "w", encoding="utf-8") as landed:
            landed.write(git("rev-parse", "HEAD"))
        return 0
    mutations, texts, without = read(open(os.path.join(ROOT, "ci", "mutants.txt"), encoding="utf-8").read())
    sources = Sources()
    pairs = [(mutation, sources.find(mutation)) for mutation in mutations]
    if arguments == ["--list"]:
        failures = list(disagreements(pairs, sources, Texts(texts), without))
        print("".join(f"{line}\n" for line in failures) + f"{len(pairs)} mutations, {len(failures)} failures")
        print(f"without --list, {due(pairs)[1]}")
        return 1 if failures or not pairs else 0
    if arguments:
        texts_of = {id(mutation): " ".join([*mutation.values(), place[0]]) for mutation, place in pairs}
        pairs = [it for it in pairs if arguments == ["all"] or any(text in texts_of[id(it[0])] for text in arguments)]
    else:
        pairs, why = due(pairs)
        print(why, flush=True)
        if not pairs:
            return 0
    results, places = Results(), []
    for mutation, place in pairs:
        if isinstance(place, str):
            results.add(mutation, mutation["test"], f"{place}: {mutation['from']}", "", 0)
        else:
            places.append((mutation, place))
    project = Project(sources, places)
    began = time.monotonic()
    project.build_together(sorted({mutation["test"].split()[0] for mutation, _ in places}))
    print(f"{time.monotonic() - began:5.1f} s  {len(project.together)} mutations built together", flush=True)
    # `ci/loom.sh` shows that all models pass.
    tests = sorted({mutation["test"] for mutation, _ in places if not mutation["test"].startswith("loom ")})
    unchanged = [(None, test, 0) for test in tests]
    mutated = [(mutation, mutation["test"], number) for number, (mutation, _, _) in project.together.items()]

    def work(job):
        mutation, test, number = job
        began = time.monotonic()
        outcome, output = run_test(project, project.programs[test.split()[0]], test, number, results.limit(test))
        results.add(mutation, test, outcome, output, time.monotonic() - began)

    # The time of a test without mutations is known before those with one begin.
    for jobs in (unchanged, mutated):
        with ThreadPoolExecutor(WORKERS) as workers:
            list(workers.map(work, jobs))

    project.unweave()
    for mutation, place in sorted(project.alone, key=lambda pair: pair[0]["test"]):
        began, (file, start, end) = time.monotonic(), place
        text = sources.texts[file][0]
        project.write(file, text[:start] + mutation["to"] + text[end:])
        program, _, output = project.build(mutation["test"].split()[0])
        outcome = "does not compile"
        if program:
            outcome, output = run_test(project, program, mutation["test"], 0, results.limit(mutation["test"]))
        project.write(file, text)
        results.add(mutation, mutation["test"], outcome, output, time.monotonic() - began)
    # The first of them may be far above the end of the output.
    print("\n".join(results.failures + [f"{results.caught} of {len(pairs)} mutations caught; {results.broken} tests fail without any"]))
    return 0 if results.caught == len(pairs) > 0 and not results.broken else 1


sys.exit(main(sys.argv[1:]))
