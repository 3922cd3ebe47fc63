"""Calendar: at most L permits in each period, in one word.

The promise (src/algorithm/calendar/mod.rs): the word has the number of the newest charged period, and the permits that are charged to it.
A reading of an earlier period is decided in the newest one. A refund is taken from the period of its charge alone.
"""

from dataclasses import dataclass

import z3

from kit import both, either, implies, integers, ite, least, most, prove


@dataclass(frozen=True)
class State:
    period: object
    used: object


MAX_USED = 2**48 - 1

# specification


def current(state, period):
    """The state in the period of a reading, or in its own if that is later."""
    return State(most(period, state.period), ite(period > state.period, 0, state.used))


def admitted(state, period, limit, permits):
    """Whether the permits fit into the limit of the request, and the state after that."""
    now = current(state, period)
    fits = now.used + permits <= limit
    return fits, State(now.period, now.used + permits)


def charged(state, period, permits):
    """The number of permits that are charged, whether they fit or not, and the state after that."""
    now = current(state, period)
    taken = least(permits, MAX_USED - now.used)
    return taken, State(now.period, now.used + taken)


def refunded(state, period, permits):
    """Whether permits that were charged to the period can be given back, and the state after that."""
    possible = both(state.period == period, state.used >= permits)
    return possible, State(state.period, state.used - permits)


def idle(state, period):
    return state.period < period


def passed_on(state, period):
    """Whether the word can be given to another key, and its state then."""
    return state.period <= period, State(most(period, state.period + 1), 0)


# proof


class Log:
    """The exact log: the permits that are charged to each period, and not refunded."""

    def __init__(self, of_period):
        self.of_period = of_period

    def charged(self, period, permits):
        return Log(lambda any_period: self.of_period(any_period) + ite(any_period == period, permits, 0))


def invariant(state, log, any_period):
    """The word has the permits of its period, and no later one has any."""
    return both(
        state.used == log.of_period(state.period),
        implies(any_period > state.period, log.of_period(any_period) == 0),
        0 <= state.used,
        state.used <= MAX_USED,
    )


def proofs():
    state = State(*integers("period used"))
    reading, limit, lower, permits, other, receipt = integers("reading limit lower permits other receipt")
    log = Log(z3.Function("charged", z3.IntSort(), z3.IntSort()))
    known = [
        *(invariant(state, log, period) for period in (other, reading, receipt, state.period + 1)),
        log.of_period(other) >= 0,
        1 <= lower,
        lower <= limit,
        limit <= MAX_USED,
        permits >= 1,
        state.period >= 0,
        reading >= 1,
    ]
    fresh = State(z3.IntVal(0), z3.IntVal(0))
    nothing = Log(lambda period: z3.IntVal(0))
    prove("calendar: a fresh word keeps the invariant", [other >= 0], invariant(fresh, nothing, other))

    fits, after = admitted(state, reading, lower, permits)
    later = log.charged(after.period, permits)
    newest = both(after.period >= state.period, after.period >= reading, either(after.period == state.period, after.period == reading))
    prove(
        "calendar: an admission keeps it, and the period holds at most the limit of the request",
        [*known, fits],
        both(invariant(after, later, other), later.of_period(after.period) <= lower, newest),
    )
    prove(
        "calendar: a denial proves that the newest period has no room",
        [*known, z3.Not(fits)],
        log.of_period(most(reading, state.period)) + permits > lower,
    )
    taken, debt = charged(state, reading, permits)
    with_debt = log.charged(debt.period, taken)
    prove(
        "calendar: debt keeps it, and is charged whole unless the word is full",
        [*known],
        both(invariant(debt, with_debt, other), newest, debt.period == after.period, taken >= 0,
             either(taken == permits, debt.used == MAX_USED)),
    )
    possible, back = refunded(state, receipt, permits)
    without = log.charged(receipt, -permits)
    prove(
        "calendar: a refund keeps it, and takes the permits from the period of the charge",
        [*known, possible],
        both(invariant(back, without, other), back.period == receipt),
    )
    prove(
        "calendar: a refund is possible while its period is the newest one",
        [*known, log.of_period(receipt) >= permits, receipt == state.period],
        possible,
    )
    prove("calendar: a refund of an earlier period changes nothing", [*known, receipt < state.period], z3.Not(possible))

    can, next_state = passed_on(state, reading)
    request = z3.Int("request")
    as_fresh = both(
        current(state, request).used == 0,
        current(next_state, request).used == 0,
        current(next_state, request).period == current(fresh, request).period,
    )
    prove(
        "calendar: an idle word decides as a fresh one, and one that is passed on is above it",
        [*known, idle(state, reading), can, request >= reading],
        both(as_fresh, next_state.period > state.period, current(state, request).period == request),
    )
    prove("calendar: a word is idle in every later period, and can be passed on", [*known, reading > state.period], both(idle(state, reading), can))
    prove("calendar: a word that is passed on is above all earlier ones", [*known, can], both(next_state.period > state.period, next_state.used == 0))
    prove("calendar: a word of a later period is not passed on", [*known, state.period > reading], z3.Not(can))
    restored, begun = charged(next_state, reading, state.used)
    prove("calendar: a restored state has the permits of the saved one", [*known, can], both(restored == state.used, begun.used == state.used))

    # Period `n` begins at its start, and an interval as long as the shortest period touches two of them.
    starts = z3.Function("start", z3.IntSort(), z3.IntSort())
    first, last, shortest, begin = integers("first last shortest begin")
    lengths = [starts(n + 1) - starts(n) >= shortest for n in (first, first + 1)]
    in_first = both(starts(first) <= begin, begin < starts(first + 1))
    prove(
        "calendar: an interval as long as the shortest period touches two periods, so it has at most 2L",
        [*lengths, shortest >= 1, in_first, last == begin + shortest],
        both(last < starts(first + 2), last >= starts(first)),
    )


if __name__ == "__main__":
    proofs()
