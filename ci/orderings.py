"""Checks that comments about atomics, and texts about protocols, agree with the code. See ci/orderings.sh."""

import re
import sys
from pathlib import Path

import terms

ORDERING = re.compile(r"\bOrdering::(Relaxed|Acquire|Release|AcqRel|SeqCst)\b")
FUNCTION = re.compile(r"^\s*(pub(\([^)]*\))? )?(const |async |unsafe )*fn ")
# A comment that begins with the reason of an ordering, which is at most so many lines below it.
REASON = re.compile(r"\s*// (Relaxed|Acquire|Release|AcqRel|SeqCst)\b[^:.]*:(?:\s|$)")
FAR = 25
# The reason of an ordering is at most so many lines above it, or above it in the same function.
NEAR = 8
# An identifier, a path, or a group of them, such as `keyed_same_key*`.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*((::|\.)[A-Za-z_][A-Za-z0-9_]*)*\*?(\(\))?")
FILE = re.compile(r"[\w./-]+\.(rs|md|lua|sh|py|txt|toml|tla)|([\w-]+/)+[\w-]*")


def reasons(comments, ordering):
    """Whether the comments have a text that begins with the ordering's name, such as "Relaxed: ..." or "Acquire on failure: ..."."""
    return re.search(rf"//.*\b{ordering}\b[^:.]*:(\s|$)", comments, re.MULTILINE) is not None


def without_reason(path):
    """The lines of a file that have an ordering without a reason."""
    lines = path.read_text().split("\n")
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        if code.lstrip().startswith(("use ", "pub use ")):
            continue
        for ordering in ORDERING.findall(code):
            first = number
            while first > 0 and not FUNCTION.match(lines[first]):
                first -= 1
            first = min(first, max(0, number - NEAR))
            comments = "\n".join(line for line in lines[first : number + 1] if "//" in line)
            both = reasons(comments, "Acquire") and reasons(comments, "Release")
            if not (reasons(comments, ordering) or ordering == "AcqRel" and both):
                yield number + 1, ordering, line.strip()


def without_ordering(path):
    """The lines of comments that give a reason for an ordering that the code below them does not have."""
    lines = path.read_text().split("\n")
    for number, line in enumerate(lines):
        reason = REASON.match(line)
        if reason:
            code = ""
            for below in lines[number + 1 : number + 1 + FAR]:
                if FUNCTION.match(below):
                    break
                code += below.split("//")[0] + "\n"
            names = ORDERING.findall(code)
            # `Arc::get_mut` acquires what each dropped reference released.
            if not {reason[1], "AcqRel"} & set(names) and "Arc::get_mut(" not in code:
                yield number + 1, reason[1], line.strip()


def code_words(paths):
    """All words of the code, without its comments."""
    words = set()
    for path in paths:
        comment = {".rs": "//", ".lua": "--"}.get(path.suffix, "#")
        for line in path.read_text().split("\n"):
            words.update(re.findall(r"\w+", line.split(comment)[0]))
    return words


def unknown_names(text, words, files):
    """The names in backticks that are neither in the code nor a file."""
    for number, line in text:
        for quoted in re.findall(r"`([^`]+)`", line):
            if FILE.fullmatch(quoted) and ("/" in quoted or not NAME.fullmatch(quoted) or quoted.split(".")[-1] in ("rs", "md")):
                if not any(file == quoted or file.endswith("/" + quoted) or f"/{file}/".find(f"/{quoted.rstrip('/')}/") >= 0 for file in files):
                    yield number, quoted
            elif NAME.fullmatch(quoted):
                for name in re.split(r"::|\.", quoted.removesuffix("()")):
                    known = name in words
                    if name.endswith("*"):
                        known = any(word.startswith(name[:-1]) for word in words)
                    if not known and name:
                        yield number, quoted


def main():
    sources = sorted(Path("src").rglob("*.rs"))
    folders = ["src", "cli", "tests", "examples", "benches", "fuzz", "proofs"]
    every = [path for folder in folders for path in Path(folder).rglob("*") if path.is_file() and "target" not in path.parts]
    files = [str(path) for path in every] + ["ci/" + path.name for path in Path("ci").iterdir()]
    words = code_words(path for path in every if path.suffix in (".rs", ".lua", ".toml"))
    failed = orderings = 0
    for path in sources:
        orderings += len(ORDERING.findall(path.read_text()))
        for number, ordering, line in without_reason(path):
            print(f"{path}:{number}: {ordering} has no reason: {line}")
            failed += 1
        for number, ordering, line in without_ordering(path):
            print(f"{path}:{number}: the code below has no {ordering}: {line}")
            failed += 1
    texts = [(path, list(enumerate(path.read_text().split("\n"), 1))) for path in sorted(Path("src").rglob("protocol.md"))]
    for path, text in texts:
        for number, name in unknown_names(text, words, files):
            print(f"{path}:{number}: `{name}` is not in the code")
            failed += 1
    for path, number, name in terms.undefined():
        print(f"{path}:{number}: {name} has no documentation, so the index of terms has no definition of it")
        failed += 1
    print(f"{orderings} orderings in {len(sources)} files, and the names of {len(texts)} texts: {failed} without a reason or unknown")
    sys.exit(failed > 0)


main()
