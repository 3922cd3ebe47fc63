"""Violations: a key is blocked from the violation that reaches the limit in its window, in one word.

The promise (src/rules/rule/block.rs): the first violation of a key opens a window. If the key reaches the number of violations in its window,
it is blocked from that violation on. A violation after the window, or after the block, opens a new window. The k-th block lasts
first · factor^(k − 1), and at most the ceiling, until the key is forgiven. Times are rounded to ticks of 10 ms.
"""

from dataclasses import dataclass

import z3

from kit import both, either, implies, integers, ite, least, most, negated, prove, quotient, quotient_up


@dataclass(frozen=True)
class State:
    time: object
    blocked: object
    level: object
    violations: object


@dataclass(frozen=True)
class Config:
    limit: object
    window: object
    forgiveness: object
    extends: object
    # The length of the block of each level, in nanoseconds.
    length: object


TICK = 10_000_000
MAX_LEVEL = 31
MAX_LIMIT = 2**16 - 1
# The last reading, and the last tick, which is its end.
END = 2**63 - 1
LAST_TICK = END // TICK + 1

# specification


def in_force(state, now):
    """Whether the key is blocked at the reading."""
    return both(state.blocked, now < least(state.time * TICK, END))


def block_end(config, now, level):
    """The end of a block of this level from the reading on, in ticks."""
    end = least(now + config.length(level), END)
    return quotient_up(end, TICK)


def violated(config, state, now):
    """Whether a violation counts, and the state after that. It does not count while the key is blocked."""
    tick = quotient(now, TICK)
    in_window = both(negated(state.blocked), state.violations > 0, tick < state.time + config.window)
    begin = ite(in_window, state.time, most(tick, state.time))
    forgiven = both(negated(in_window), begin - state.time >= config.forgiveness)
    level = ite(forgiven, 0, state.level)
    violations = ite(in_window, state.violations, 0) + 1
    blocks = violations >= config.limit
    next_level = least(level + 1, MAX_LEVEL)
    end = block_end(config, most(now, least(begin * TICK, END)), next_level)
    counts = negated(in_force(state, now))
    return counts, State(ite(blocks, end, begin), blocks, ite(blocks, next_level, level), ite(blocks, 0, violations))


def extended(config, state, now):
    """Whether a retry makes the block longer, and the state after that."""
    end = block_end(config, now, state.level)
    longer = both(in_force(state, now), config.extends, end > state.time)
    return longer, State(end, state.blocked, state.level, 0)


def idle_tick(config, state):
    """The first tick at which the state means as much as that of a key without violations."""
    level = ite(state.level > 0, config.forgiveness, 0)
    window = ite(state.violations > 0, config.window, 0)
    return state.time + most(most(level, window), 1)


def idle(config, state, now):
    return idle_tick(config, state) <= quotient(now, TICK)


def passed_on(state, now):
    """Whether the word can be given to another key, and its state then."""
    later = most(quotient(now, TICK), state.time + 1)
    return state.time <= quotient(now, TICK), State(later, False, 0, 0)


# proof


def proofs():
    time, level, violations, now, other = integers("time level violations now other")
    blocked = z3.Bool("blocked")
    state = State(time, blocked, level, violations)
    length = z3.Function("length", z3.IntSort(), z3.IntSort())
    limit, window, forgiveness = integers("limit window forgiveness")
    config = Config(limit, window, forgiveness, z3.Bool("extends"), length)
    # The log of the key: how many violations were counted since the window began, and the tick of the newest of them.
    logged, newest = integers("logged newest")

    def invariant(state, logged, newest):
        return both(
            0 <= state.time,
            state.time <= LAST_TICK,
            0 <= state.level,
            state.level <= MAX_LEVEL,
            implies(
                state.blocked,
                both(state.violations == 0, state.level >= 1),
            ),
            implies(
                negated(state.blocked),
                both(
                    state.violations == logged,
                    either(logged == 0, both(1 <= logged, logged < limit)),
                    implies(logged > 0, both(newest >= state.time, newest < state.time + window)),
                ),
            ),
        )

    lengths = [
        z3.And(length(each) >= TICK, length(each) <= END)
        for each in (level, level + 1, 1, z3.If(level + 1 < MAX_LEVEL, level + 1, MAX_LEVEL))
    ]
    known = [
        limit >= 1,
        limit <= MAX_LIMIT,
        window >= 1,
        forgiveness >= 0,
        0 <= now,
        now < END - TICK,
        logged >= 0,
        invariant(state, logged, newest),
        *lengths,
    ]
    fresh = State(z3.IntVal(0), z3.BoolVal(False), z3.IntVal(0), z3.IntVal(0))
    prove("block: a fresh word keeps the invariant", [limit >= 1, window >= 1], invariant(fresh, z3.IntVal(0), z3.IntVal(0)))

    counts, after = violated(config, state, now)
    tick = quotient(now, TICK)
    # What the log says of this violation, with its time no earlier than that of the word.
    at = most(tick, time)
    in_window = both(negated(blocked), logged > 0, at < time + window)
    log_after = ite(in_window, logged + 1, 1)
    newest_after = ite(in_window, most(at, newest), at)
    prove(
        "block: a violation keeps the invariant",
        [*known, counts],
        both(invariant(after, log_after, newest_after), after.time >= time),
    )
    prove(
        "block: it begins a block if and only if it is the one that reaches the limit in its window",
        [*known, counts],
        after.blocked == (log_after == limit),
    )
    prove(
        "block: a new window begins after the one before",
        [*known, counts, negated(in_window), negated(blocked), logged > 0],
        both(at >= time + window, implies(negated(after.blocked), both(after.time == at, after.violations == 1))),
    )
    prove("block: no violation counts while the block is in force", [*known, blocked, now < time * TICK], negated(counts))
    prove("block: every other one counts", [*known, z3.Or(negated(blocked), now >= time * TICK)], counts)
    forgiven = both(negated(in_window), at >= time + forgiveness)
    own_level = ite(forgiven, 0, level)
    begins = ite(now >= at * TICK, now, at * TICK)
    ends = begins + length(after.level)
    begun = both(
        after.level == ite(own_level < MAX_LEVEL, own_level + 1, MAX_LEVEL),
        after.time * TICK >= begins + length(after.level),
        after.time * TICK < begins + length(after.level) + TICK,
    )
    prove(
        "block: the k-th block since the key was forgiven has the k-th length, rounded up to a tick",
        [*known, counts, after.blocked, negated(in_window), ends <= END],
        begun,
    )
    prove(
        "block: also if earlier violations of its window count",
        [*known, counts, after.blocked, in_window],
        both(
            after.level == ite(level < MAX_LEVEL, level + 1, MAX_LEVEL),
            implies(
                most(now, time * TICK) + length(after.level) <= END,
                both(
                    after.time * TICK >= most(now, time * TICK) + length(after.level),
                    after.time * TICK < most(now, time * TICK) + length(after.level) + TICK,
                ),
            ),
        ),
    )
    prove("block: the level is kept until the key is forgiven", [*known, counts, negated(after.blocked)], after.level == own_level)

    longer, extension = extended(config, state, now)
    prove(
        "block: an extension ends later, and is of a block that is in force",
        [*known, longer],
        both(
            invariant(extension, logged, newest),
            extension.blocked,
            extension.time > time,
            extension.level == level,
            now < time * TICK,
            config.extends,
            implies(now + length(level) <= END, extension.time * TICK >= now + length(level)),
            implies(now + length(level) <= END, extension.time * TICK < now + length(level) + TICK),
        ),
    )
    prove(
        "block: a retry extends a block that extends if it ends later",
        [*known, blocked, now < time * TICK, config.extends, now + length(level) > time * TICK, now + length(level) <= END],
        longer,
    )
    prove(
        "block: a block is in force for every earlier reading",
        [*known, blocked, in_force(state, now), 0 <= other, other <= now],
        in_force(state, other),
    )

    later = z3.Int("later")
    of_word = violated(config, state, later)
    can, next_state = passed_on(state, now)
    of_next = violated(config, next_state, later)
    of_fresh = violated(config, fresh, later)

    def equal(this, that):
        # The level of a fresh word is forgiven, or 0.
        return both(this.time == that.time, this.blocked == that.blocked, this.level == that.level, this.violations == that.violations)

    prove(
        "block: an idle word means as much as a fresh one, from then on",
        [*known, idle(config, state, now), later >= now, later < END - TICK],
        both(of_word[0], of_fresh[0], equal(of_word[1], of_fresh[1])),
    )
    prove(
        "block: so does a word that is passed on, which is above all words of the key before",
        [*known, idle(config, state, now), can, later >= now, later < END - TICK],
        both(of_next[0], equal(of_next[1], of_fresh[1]), next_state.time > time),
    )
    prove(
        "block: a word that is passed on early is above all earlier ones, and has no violations",
        [*known, can],
        both(next_state.time > time, invariant(next_state, z3.IntVal(0), z3.IntVal(0)), time <= tick),
    )
    prove("block: a word whose time has come can be passed on, to the tick of the reading or a later one", [*known, time <= tick], both(can, next_state.time >= tick))
    prove(
        "block: a word is not idle while a violation or a level counts",
        [*known, z3.Or(both(violations > 0, tick < time + window), both(level > 0, tick < time + forgiveness), tick <= time)],
        negated(idle(config, state, now)),
    )
    prove(
        "block: it is idle afterwards",
        [*known, tick > time, tick >= time + window, tick >= time + forgiveness],
        idle(config, state, now),
    )


if __name__ == "__main__":
    proofs()
