"""Prints the terms of the project: the name of each type, trait and constant, and each event of a protocol, with its definition.

    python3 ci/terms.py            all terms
    python3 ci/terms.py TEXT       the terms whose name contains TEXT

A name is defined by the first sentence of its documentation, and an event by its row in the table of events of a protocol.md.
So no definition is kept twice. ci/orderings.sh checks that each name has one.
"""

import re
import sys
from pathlib import Path

ITEM = re.compile(r"(?:pub(?:\([^)]*\))? )?(struct|enum|trait|type|const|static) ([A-Za-z_]\w*)")
EVENT = re.compile(r"^\| (\*[a-z ]+\*(?:, \*[a-z ]+\*)*)[^|]* \| ([^|]*)")
# Documentation of such an item would be a text of the help.
CLAP = re.compile(r"\b(clap::)?(Args|Subcommand|ValueEnum|Parser)\b")
SENTENCE = re.compile(r"(?<=[a-z0-9`)\]])[.:](?: |$)")


def first_sentence(lines):
    """The first sentence of a doc comment."""
    text = " ".join(lines).strip()
    return SENTENCE.split(text)[0].strip()


def items(path):
    """The items that a file declares outside functions and implementations: name, kind, line, and first sentence."""
    doc, helped = [], ""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("///"):
            doc.append(line[3:].strip() or ".")
        elif line.startswith("#[") and CLAP.search(line):
            helped = "a part of the command line, which `ringgate --help` describes"
        elif not line.startswith((" ", "#[", ")]", "//")):
            item = ITEM.match(line)
            if item:
                yield item[2], item[1], number, first_sentence(doc) or helped
            doc, helped = [], ""


def modules(path):
    """The module of a file with its first sentence, if the file has documentation of its own."""
    doc = []
    for line in path.read_text().split("\n"):
        if not line.startswith("//!"):
            break
        if not line[3:].strip():
            break
        doc.append(line[3:].strip())
    name = path.parent.name if path.name == "mod.rs" else path.stem
    if doc and name not in ("lib", "main"):
        yield name, "module", 1, first_sentence(doc)


def events(path):
    """The events of a protocol file: the rows of its tables of events."""
    head = ""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.startswith("|"):
            head = ""
            continue
        head = head or line
        event = EVENT.match(line) if head.startswith("| event |") else None
        if event:
            for name in re.findall(r"\*([a-z ]+)\*", event[1]):
                yield name, "event", number, event[2].strip()


def terms():
    """All terms: name, kind, file, line, definition."""
    for folder in ("src", "cli/src"):
        for path in sorted(Path(folder).rglob("*.rs")):
            if path.stem == "tests" or "tests" in path.parts or "specification" in path.parts:
                continue
            for found in (modules, items):
                for name, kind, number, text in found(path):
                    yield name, kind, path, number, text
        for path in sorted(Path(folder).rglob("protocol.md")):
            for name, kind, number, text in events(path):
                yield name, kind, path, number, text


def undefined():
    """The types and traits without documentation: file, line, name."""
    return [(path, number, name) for name, kind, path, number, text in terms() if not text and kind not in ("const", "static")]


if __name__ == "__main__":
    wanted = sys.argv[1].lower() if len(sys.argv) > 1 else ""
    for name, kind, path, number, text in sorted(terms(), key=lambda term: (term[0].lower(), str(term[2]))):
        if wanted in name.lower():
            print(f"{name} ({kind}, {path}:{number}): {text}")
