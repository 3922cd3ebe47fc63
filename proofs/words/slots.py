"""Requests in flight: at most the limit are held at any time, and each slot is released once, in one word.

The promise (src/algorithm/in_flight.rs): the word has the number of keys that it was given to, its generation, and the slots
that are held. A receipt releases slots of its own generation alone. There is no debt, because no receipt would release it.
"""

from dataclasses import dataclass

import z3

from kit import both, implies, integers, ite, prove


@dataclass(frozen=True)
class State:
    generation: object
    held: object


MOST_HELD = 2**20 - 1
LAST_GENERATION = 2**42 - 1

# specification


def admitted(state, limit, slots):
    """Whether the slots fit, and the state after that."""
    return state.held + slots <= limit, State(state.generation, state.held + slots)


def released(state, generation, slots):
    """Whether slots that were held in this generation are released, and the state after that."""
    possible = both(state.generation == generation, state.held >= slots)
    return possible, State(state.generation, state.held - slots)


def idle(state):
    return state.held == 0


def passed_on(state):
    """Whether the word can be given to another key, and its state then."""
    return state.generation < LAST_GENERATION, State(state.generation + 1, 0)


# proof


def proofs():
    state = State(*integers("own_generation held"))
    limit, slots, of_receipt, generation, other = integers("limit slots of_receipt generation other")
    # The log: the slots of outstanding receipts by generation.
    outstanding = z3.Function("outstanding", z3.IntSort(), z3.IntSort())

    def invariant(state, outstanding, generation):
        return both(
            state.held == outstanding(state.generation),
            outstanding(generation) >= 0,
            implies(generation > state.generation, outstanding(generation) == 0),
            1 <= state.generation,
            state.generation <= LAST_GENERATION,
            0 <= state.held,
            state.held <= MOST_HELD,
        )

    def changed(generation, slots):
        return lambda any_generation: outstanding(any_generation) + ite(any_generation == generation, slots, 0)

    known = [
        *(invariant(state, outstanding, each) for each in (other, generation, state.generation, state.generation + 1)),
        1 <= limit,
        limit <= MOST_HELD,
        slots >= 1,
    ]
    fresh = State(z3.IntVal(1), z3.IntVal(0))
    prove("slots: a fresh word keeps the invariant", [other >= 0], invariant(fresh, lambda each: z3.IntVal(0), other))

    fits, after = admitted(state, limit, slots)
    prove(
        "slots: an admission keeps it, and at most the limit are held",
        [*known, fits],
        both(invariant(after, changed(state.generation, slots), other), changed(state.generation, slots)(state.generation) <= limit),
    )
    prove("slots: a denial proves that the slots are held", [*known, z3.Not(fits)], outstanding(state.generation) + slots > limit)
    possible, back = released(state, generation, slots)
    receipt = [of_receipt == slots, outstanding(generation) >= of_receipt]
    prove(
        "slots: a release keeps it, and releases the slots of its receipt",
        [*known, *receipt, possible],
        both(invariant(back, changed(generation, -slots), other), back.held == state.held - slots),
    )
    prove("slots: every held slot of the key can be released", [*known, *receipt, generation == state.generation], possible)
    prove("slots: no receipt of an earlier key releases a slot", [*known, generation < state.generation], z3.Not(possible))

    can, next_state = passed_on(state)
    prove("slots: an idle word holds no slot of any receipt of its key", [*known, idle(state)], outstanding(state.generation) == 0)
    prove("slots: a word without slots is idle", [*known, outstanding(state.generation) == 0], idle(state))
    prove(
        "slots: a word that is passed on is of a generation without receipts",
        [*known, can],
        both(invariant(next_state, outstanding, other), next_state.generation > state.generation, next_state.held == 0),
    )
    prove("slots: the last generation is not passed on", [*known, state.generation == LAST_GENERATION], z3.Not(can))
    prove("slots: every other generation is", [*known, state.generation < LAST_GENERATION], can)


if __name__ == "__main__":
    proofs()
