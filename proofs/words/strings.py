"""Strings of marks: what a decision counts, and what each event does to the number of marks of every age.

The promise (src/algorithm/unit_ring/protocol.md): a 1 is a full unit, and is called a mark. A 0 is the end of a cell. The age of a
mark is the number of zeros below it. The window sums `summed` cells, so it holds the marks with fewer than `summed` zeros below.
"""

import sys

import z3

from kit import TIMEOUT_SECONDS, Any, Claim, both, cons, either, empty, head, implies, induct, is_empty, ite, on_strings, prove, tail

sys.setrecursionlimit(10_000)

# specification


@on_strings
def ones(string, zeros):
    """The marks before the zero with this number, counted from 1: those of the newest `zeros` cells."""
    if is_empty(string):
        return 0
    newer = ite(head(string), lambda: 1 + ones(tail(string), zeros), lambda: ones(tail(string), zeros - 1))
    return ite(zeros <= 0, 0, newer)


@on_strings
def count(string, bits):
    """The marks among the newest `bits` bits."""
    if is_empty(string):
        return 0
    return ite(bits <= 0, 0, lambda: ite(head(string), 1, 0) + count(tail(string), bits - 1))


@on_strings
def truncated(string, bits) -> str:
    """The newest `bits` bits."""
    if is_empty(string):
        return string
    return ite(bits <= 0, lambda: empty(string), lambda: cons(head(string), truncated(tail(string), bits - 1)))


@on_strings
def without(string, mark) -> str:
    """The string without the mark with this number, counted from 1 at the newest. The older bits move down."""
    if is_empty(string):
        return string
    if head(string):
        return ite(mark <= 1, lambda: tail(string), lambda: cons(True, without(tail(string), mark - 1)))
    return cons(False, without(tail(string), mark))


def aged(string, bits):
    """A cell ends: a new 0, in a string of `bits` bits."""
    return truncated(cons(False, string), bits)


def marked(string, bits):
    """A unit becomes full: a new 1, in a string of `bits` bits."""
    return truncated(cons(True, string), bits)


# proof


def sound(string, zeros, bits):
    """What every number of marks fulfils."""
    return both(
        ones(string, zeros) >= 0,
        count(string, bits) >= 0,
        implies(zeros <= 0, ones(string, zeros) == 0),
        implies(bits <= 0, count(string, bits) == 0),
    )


def exact_or_full(marks, of_unbounded, bits, zeros):
    """A string of these bits is either long enough for the marks, or it has fewer zeros, and marks in all other bits."""
    return either(marks == of_unbounded, both(marks <= of_unbounded, marks >= bits - zeros + 1))


def bounded(string, bits, zeros):
    marks = ones(truncated(string, bits), zeros)
    return implies(both(bits >= 0, zeros >= 0), exact_or_full(marks, ones(string, zeros), bits, zeros))


def lemmas():
    induct(
        "strings: no number of marks is negative",
        "zeros bits",
        sound,
        lambda head, zeros, bits: [(zeros if head else zeros - 1, bits - 1)],
    )
    induct(
        "strings: the window holds at most M marks if and only if its lowest M + Z bits hold at most M",
        "most summed",
        lambda string, most, summed: both(
            sound(string, summed, most + summed),
            implies(
                both(most >= -1, summed >= 0),
                (count(string, most + summed) <= most) == (ones(string, summed) <= most),
            ),
        ),
        lambda head, most, summed: [(most - 1, summed), (most, summed - 1)],
    )
    induct(
        "strings: more cells have no fewer marks",
        "zeros",
        lambda string, zeros: both(sound(string, zeros, 0), ones(string, zeros) <= ones(string, zeros + 1)),
        lambda head, zeros: [(zeros,), (zeros - 1,), (zeros + 1,)],
    )
    induct(
        "strings: a bounded string has the marks of an unbounded one, or is full of marks",
        "bits zeros",
        lambda string, bits, zeros: both(sound(string, zeros, 0), bounded(string, bits, zeros)),
        lambda head, bits, zeros: [(bits - 1, zeros if head else zeros - 1)],
    )
    induct(
        "strings: a decision never counts beyond the bounded string",
        "bits counted",
        lambda string, bits, counted: implies(
            counted <= bits, count(truncated(string, bits), counted) == count(string, counted)
        ),
        lambda head, bits, counted: [(bits - 1, counted - 1)],
    )
    induct(
        "strings: a removed mark is one less for its age and every higher one, and none less for a lower one",
        "mark zeros",
        lambda string, mark, zeros: both(
            sound(string, zeros, 0),
            implies(
                mark >= 1,
                ones(without(string, mark), zeros) == ones(string, zeros) - ite(ones(string, zeros) >= mark, 1, 0),
            ),
        ),
        lambda head, mark, zeros: [(mark - 1, zeros) if head else (mark, zeros - 1), (mark, zeros)],
    )
    string, zeros, bits = Any("string"), z3.Int("zeros"), z3.Int("bits")
    sizes = [bits >= 1, zeros >= 1]
    prove(
        "strings: the end of a cell raises the age of each mark by one, or the string is full",
        [*sizes, bounded(string, bits - 1, zeros - 1)],
        exact_or_full(ones(aged(string, bits), zeros), ones(string, zeros - 1), bits, zeros),
    )
    prove(
        "strings: a new mark is one more for every age, or the string is full",
        [*sizes, bounded(string, bits - 1, zeros)],
        exact_or_full(ones(marked(string, bits), zeros), 1 + ones(string, zeros), bits, zeros),
    )


def real_widths(widths=61):
    """The counting rule for the bits of real words: each number of marks and of cells that fits, by unary counters.

    `held[i][n]` says that the lowest i bits hold at least n ones, and `ended[i][n]` that they hold at least n zeros.
    """
    bits = z3.Bools(" ".join(f"b{i}" for i in range(widths)))
    solver = z3.SolverFor("QF_FD")
    solver.set("timeout", TIMEOUT_SECONDS * 1000)

    def counters(name, counted):
        at_least = [[z3.BoolVal(n == 0) for n in range(widths + 2)]]
        for i, bit in enumerate(counted):
            row = [z3.BoolVal(True)]
            for n in range(1, widths + 2):
                if n > i + 1:
                    row.append(z3.BoolVal(False))
                    continue
                symbol = z3.Bool(f"{name}{i + 1}_{n}")
                solver.add(symbol == z3.Or(at_least[i][n], z3.And(bit, at_least[i][n - 1])))
                row.append(symbol)
            at_least.append(row)
        return at_least

    held = counters("held", bits)
    ended = counters("ended", [z3.Not(bit) for bit in bits])
    failed = None
    with Claim(f"real widths: the lowest i bits hold i ones and zeros, i up to {widths}") as this:
        for i in range(1, widths + 1):
            for n in range(i + 1):
                this.cases += 1
                # At least n ones if and only if not at least i − n + 1 zeros. Each row uses the one before, which is proved.
                equal = held[i][n] == z3.Not(ended[i][i - n + 1])
                solver.push()
                solver.add(z3.Not(equal))
                if solver.check() != z3.unsat:
                    failed = (i, n)
                solver.pop()
                solver.add(equal)
        if failed:
            this.outcome = f"REFUTED at {failed}"
    with Claim("real widths: the counting rule for every M and every Z with M + Z up to 61") as this:
        for summed in range(1, widths + 1):
            for most in range(0, widths - summed + 1):
                this.cases += 1
                # The window holds more than M marks if the mark with the number M + 1 has fewer than Z zeros below it.
                window = z3.Or(
                    [
                        z3.And(bits[i], held[i][most], z3.Not(held[i][most + 1]), z3.Not(ended[i][summed]))
                        for i in range(most, widths)
                    ]
                )
                solver.push()
                solver.add(window != held[most + summed][most + 1])
                if solver.check() != z3.unsat:
                    this.outcome = f"REFUTED for M = {most}, Z = {summed}"
                solver.pop()


def proofs():
    lemmas()


if __name__ == "__main__":
    proofs()
    real_widths()
