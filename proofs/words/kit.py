"""The tools of the proofs: values that are numbers or symbols, claims, and induction over strings of bits.

A specification is a set of functions that work on Python's integers and on z3's terms. The proofs call them with terms, and
transcript.py with integers. So a condition is written with `ite`, `both`, `either` and `negated` in place of Python's keywords.
"""

import functools
import time

import z3

TIMEOUT_SECONDS = 240

# The claims that were tried: (name, outcome, seconds of the processor).
results = []
ends_with_first_failure = False


class FirstFailure(Exception):
    """Ends the proofs after a claim that is not proved."""


def is_term(value):
    return isinstance(value, z3.ExprRef)


def force(value):
    return value() if callable(value) else value


def ite(condition, this, that):
    """`this` if the condition holds, else `that`. A function is called only if its value is needed."""
    if isinstance(condition, bool):
        return force(this if condition else that)
    this, that = force(this), force(that)
    if hasattr(this, "branch"):
        return this.branch(condition, that)
    return z3.If(condition, this, that)


def lazily(conditions, neutral):
    """The conditions, of which functions are called in order, up to the first that decides."""
    known = []
    for condition in conditions:
        if callable(condition):
            condition = condition()
        known.append(condition)
        if isinstance(condition, bool) and condition != neutral:
            break
    return known


def both(*conditions):
    conditions = lazily(conditions, True)
    if any(is_term(condition) for condition in conditions):
        return z3.And(*conditions)
    return all(conditions)


def either(*conditions):
    conditions = lazily(conditions, False)
    if any(is_term(condition) for condition in conditions):
        return z3.Or(*conditions)
    return any(conditions)


def negated(condition):
    return z3.Not(condition) if is_term(condition) else not condition


def implies(condition, consequence):
    return either(negated(condition), consequence)


def least(a, b):
    return ite(a <= b, a, b)


def most(a, b):
    return ite(a >= b, a, b)


def quotient(dividend, divisor):
    """The quotient of numbers that are not negative, rounded down."""
    return dividend / divisor if is_term(dividend) or is_term(divisor) else dividend // divisor


def quotient_up(dividend, divisor):
    return quotient(dividend + divisor - 1, divisor)


def integers(names):
    return [z3.Int(name) for name in names.split()]


def decided(assumptions, claim):
    """The outcome of one query: proved, refuted with the counterexample, or unknown."""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_SECONDS * 1000)
    solver.add(*assumptions)
    solver.add(negated(claim))
    outcome = solver.check()
    if outcome == z3.unsat:
        return "proved"
    return f"REFUTED by {solver.model()}" if outcome == z3.sat else f"UNKNOWN: {solver.reason_unknown()}"


def satisfiable(assumptions):
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_SECONDS * 1000)
    solver.add(*assumptions)
    return solver.check() == z3.sat


class Claim:
    """A claim of one or more cases, which is proved if each case is. It prints one line."""

    def __init__(self, name):
        self.name = name
        self.outcome = "proved"
        self.cases = 0
        self.began = time.process_time()

    def __enter__(self):
        return self

    def case(self, assumptions, claim, may_be_void=False):
        """Proves that the assumptions imply the claim. The assumptions must have a model, or they would imply anything."""
        if self.outcome != "proved":
            return
        self.cases += 1
        self.outcome = decided(assumptions, claim)
        if self.outcome == "proved" and not may_be_void and not satisfiable(assumptions):
            self.outcome = "REFUTED: the assumptions have no model"

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        seconds = time.process_time() - self.began
        results.append((self.name, self.outcome, seconds))
        outcome = self.outcome.replace("\n", " ")
        print(f"{seconds:7.2f} s  {self.cases:5} cases  {outcome[:200]:<8}  {self.name}", flush=True)
        if ends_with_first_failure and self.outcome != "proved":
            raise FirstFailure


def prove(name, assumptions, claim):
    with Claim(name) as this:
        this.case(assumptions, claim)


# Strings of bits. The first bit is the newest one. A string is an integer, or one of these symbolic strings. After its last
# bit, each string goes on with zeros.


class Symbolic:
    def branch(self, condition, other):
        return Branch(condition, self, other)


class Empty(Symbolic):
    """The string of zeros alone."""


class Cons(Symbolic):
    """A string with one bit more than `tail`."""

    def __init__(self, head, tail):
        self.head, self.tail = head, tail


class Branch(Symbolic):
    def __init__(self, condition, this, that):
        self.condition, self.this, self.that = condition, this, that


class Any(Symbolic):
    """Any string, or the string that functions make of it. A function of it has any value."""

    def __init__(self, name, arguments=()):
        self.name, self.arguments = name, arguments


def on_strings(function):
    """Makes a function of a string, defined by cases as in `function(string, *arguments)`, work on symbolic strings."""

    # Of integers, most strings of a transcript end in the same bits.
    of_integers = functools.lru_cache(1 << 18)(function)

    def apply(string, *arguments):
        if isinstance(string, int):
            return of_integers(string, *arguments)
        if isinstance(string, Branch):
            return ite(
                string.condition,
                lambda: apply(string.this, *arguments),
                lambda: apply(string.that, *arguments),
            )
        if isinstance(string, Any):
            name = f"{function.__name__}({string.name})"
            arguments = (*string.arguments, *arguments)
            if function.returns_string:
                return Any(name, arguments)
            sorts = [z3.IntSort()] * (len(arguments) + 1)
            return z3.Function(name, *sorts)(*arguments)
        return function(string, *arguments)

    function.returns_string = function.__annotations__.get("return") is str
    apply.__name__ = function.__name__
    return apply


def is_empty(string):
    return string == 0 if isinstance(string, int) else isinstance(string, Empty)


def head(string):
    return bool(string & 1) if isinstance(string, int) else string.head


def tail(string):
    return string >> 1 if isinstance(string, int) else string.tail


def cons(bit, string):
    return (string << 1) | bit if isinstance(string, int) and isinstance(bit, bool) else Cons(bit, string)


def empty(like):
    return 0 if isinstance(like, int) else Empty()


def induct(name, numbers, claim, instances):
    """Proves `claim(string, *numbers)` for all strings and numbers, by induction over the length of the string.

    For a string with one bit more than `rest`, `instances(head, *numbers)` are the numbers with which the claim is used for
    `rest`.
    """
    numbers = integers(numbers)
    rest = Any("rest")
    with Claim(name) as this:
        this.case([], claim(Empty(), *numbers))
        for bit in (True, False):
            known = [claim(rest, *instance) for instance in instances(bit, *numbers)]
            this.case(known, claim(Cons(bit, rest), *numbers))
