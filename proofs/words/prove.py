"""Runs the proofs, and prints one line for each: its seconds of the processor, the number of cases, the outcome and the claim.

    prove.py            all proofs, in two processes
    prove.py MODULE     those of one module, with a few layouts in place of all
    prove.py --first MODULE    as above, but ends with the first claim that is not proved; mutate.py uses it

Exits with 1 if a claim is refuted or unknown.
"""

import importlib
import multiprocessing
import pathlib
import sys
import time

import kit

# One process proves the claims of a line after the other. The second line takes as long as the first.
PARTS = [
    [("unit_ring", {}), ("intervals", {}), ("blocks", {})],
    [("strings", {}), ("strings.real_widths", {}), ("fields", {}), ("buckets", {}), ("periods", {}), ("slots", {})],
]
QUICK = {"unit_ring": {"units": [0, 3]}, "fields": {"lengths": [1, 33]}}


def run(jobs):
    for name, arguments in jobs:
        module, _, function = name.partition(".")
        getattr(importlib.import_module(module), function or "proofs")(**arguments)
    return kit.results


def unlisted():
    """The modules of this folder that have proofs, and are in no line of PARTS."""
    listed = {name.partition(".")[0] for part in PARTS for name, _ in part}
    folder = pathlib.Path(__file__).parent
    modules = {file.stem for file in folder.glob("*.py") if "\ndef proofs(" in file.read_text(encoding="utf-8")}
    return sorted(modules - listed)


def main():
    if missing := unlisted():
        sys.exit(f"not in PARTS: {', '.join(missing)}")
    began = time.monotonic()
    if len(sys.argv) > 1:
        kit.ends_with_first_failure = "--first" in sys.argv
        modules = [name for name in sys.argv[1:] if name != "--first"]
        try:
            results = run([(name, QUICK.get(name, {})) for name in modules])
        except kit.FirstFailure:
            results = kit.results
    else:
        with multiprocessing.get_context("spawn").Pool(len(PARTS)) as pool:
            results = [result for part in pool.map(run, PARTS, chunksize=1) for result in part]
    failed = [name for name, outcome, _ in results if outcome != "proved"]
    for name in failed:
        print(f"not proved: {name}")
    print(f"{len(results) - len(failed)} claims proved, {len(failed)} not, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed or not results else 0)


if __name__ == "__main__":
    main()
