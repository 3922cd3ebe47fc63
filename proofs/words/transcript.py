"""Writes cases that the model of the proof decides: all combinations of boundary numbers, and random ones.

    transcript.py FILE [RANDOM]    RANDOM: the number of random cases of each algorithm, 5,000 by default

A line is the name of an algorithm, the twelve numbers of a case as in src/algorithm/specification, and what the step returns and the word
after it. The transitions are those that prove.py proves, called with integers.
"""

import itertools
import random
import sys

import blocks
import buckets
import fields
import periods
import slots
import unit_ring

NUMBERS = 12
DAY = 24 * 3600 * 10**9


def optional(value):
    return 0 if value is None else value + 1


def line(name, case, outcome):
    numbers = [*case, *[0] * (NUMBERS - len(case)), *(int(number) for number in outcome)]
    return f"{name} {' '.join(map(str, numbers))}\n"


def near(*middles):
    return sorted({max(0, middle + distance) for middle in middles for distance in (-1, 0, 1)})


# The unit ring: strict cells, and N cells of a classic ring.


def unit_outcome(case):
    variant, limit, cells, unit_bits, word, step, tick, lower, permits, charged = case
    layout = unit_ring.Layout(limit, cells + (variant == 0), 1 << unit_bits)
    widths = fields.unit_ring(unit_bits, unit_ring.length(layout))
    last = (1 << widths[0]) - 1

    def state_of(word):
        tick, marks, partial = (fields.field(widths, word, index) for index in range(3))
        return unit_ring.State(tick, partial, unit_ring.Bits(marks))

    def word_of(state):
        return fields.packed(widths, [state.tick, state.marks.string, state.partial])

    state = state_of(word)
    now = unit_ring.at(layout, state, tick)

    def instant(first):
        if first is None:
            return 0
        return optional(tick if first == now.tick else first if first <= last else None)

    def later(holds):
        states = (unit_ring.at(layout, state, now.tick + cells) for cells in range(layout.summed + 1))
        return next((state.tick for state in states if holds(state)), None)

    if step == 0:
        fits, after = unit_ring.admitted(layout, now, lower, permits)
        return (1, word_of(after)) if fits else (0, word)
    if step == 1:
        return permits, word_of(unit_ring.charged(layout, now, permits))
    if step == 2:
        if not 0 <= state.tick - charged < layout.summed:
            return 0, word
        possible, after = unit_ring.refunded(layout, state, charged, permits)
        return (1, word_of(after)) if possible else (0, word)
    if step == 3:
        return max(lower - unit_ring.spent(layout, now), 0), word
    if step == 4:
        return unit_ring.spent(layout, now), word
    if step == 5:
        return tick > state.tick and unit_ring.idle(layout, now), word
    if step == 6:
        next_state = unit_ring.passed_on(layout, state, tick)
        possible = state.tick <= tick and next_state.tick <= last
        return optional(word_of(next_state) if possible else None), word
    if step == 7:
        return instant(later(lambda state: unit_ring.admitted(layout, state, lower, permits)[0])), word
    return instant(later(lambda state: unit_ring.idle(layout, state))), word


LAYOUTS = [
    # Variant, limit, cells, unit bits: those of the constructor's table, the widest and the narrowest ones.
    (0, 1, 31, 0), (0, 5, 27, 0), (0, 10, 23, 0), (0, 30, 17, 1), (0, 60, 16, 2), (0, 100, 18, 3), (0, 1_000, 12, 6),
    (0, 10_000, 14, 10), (0, 10**6, 10, 17), (0, 10**9, 4, 28), (0, 3, 1, 0), (0, 3, 1, 2), (0, 57, 1, 0), (0, 1, 50, 0),
    (0, 1, 1, 50), (1, 5, 5, 0), (1, 7, 1, 3), (1, 10**12, 1, 40), (1, 50, 2, 0),
]  # fmt: skip


def unit_words(layout):
    """Words with boundary ticks, partial units and strings."""
    variant, limit, cells, unit_bits = layout
    length = (limit >> unit_bits) + cells + (variant == 0)
    widths = fields.unit_ring(unit_bits, length)
    summed, most = length - (limit >> unit_bits), limit >> unit_bits
    ones = (1 << length) - 1
    strings = {
        0, 1, ones, ones >> 1, ones - 1, 1 << (length - 1), ((1 << most) - 1) << (summed - 1), (1 << most) - 1,
        ((1 << most) - 1) << max(summed - 2, 0), 1 << (summed - 1), 1 << max(summed - 2, 0),
        0x5555555555555555 & ones, 0xAAAAAAAAAAAAAAAA & ones, 0x1111111111111111 & ones,
    }  # fmt: skip
    partials = {0, 1 << unit_bits >> 1, (1 << unit_bits) - 1, min(limit, (1 << unit_bits) - 1)}
    ticks = {0, summed, 2 * summed, (1 << widths[0]) - 1}
    for tick, partial, string in itertools.product(sorted(ticks), sorted(partials), sorted(strings)):
        if string <= ones and tick < 1 << widths[0]:
            yield fields.packed(widths, [tick, string, partial]), tick, widths, summed


def unit_boundaries():
    for layout in LAYOUTS:
        limit, unit = layout[1], 1 << layout[3]
        for word, tick, widths, summed in unit_words(layout):
            last = (1 << widths[0]) - 1
            for at in sorted({tick, tick + 1, tick + summed - 1, tick + summed, max(tick - 1, 0)}):
                at = min(max(at, summed), last)
                for lower, permits in ((limit, 1), (limit, limit), (limit, unit), (max(1, limit // 2), min(unit, limit))):
                    for step in (0, 7):
                        if permits <= lower:
                            yield (*layout, word, step, at, lower, permits, 0)
                for permits in {1, unit, limit, limit + 1, 62 * unit, 2**64 - 1}:
                    yield (*layout, word, 1, at, limit, permits, 0)
                for step in (3, 4, 5, 6, 8):
                    yield (*layout, word, step, at, limit, 1, 0)
            for charged in sorted({tick, max(tick - 1, 0), max(tick - summed + 1, 0), max(tick - summed, 0), tick + 1}):
                for permits in sorted({1, unit, unit + 1, max(limit // 2, 1), limit}):
                    yield (*layout, word, 2, max(tick, summed), limit, permits, charged)


def unit_random():
    layout = random.choice(LAYOUTS)
    variant, limit, cells, unit_bits = layout
    length = (limit >> unit_bits) + cells + (variant == 0)
    widths = fields.unit_ring(unit_bits, length)
    summed, last = cells + (variant == 0), (1 << widths[0]) - 1
    tick = random.randint(0, last)
    string = random.getrandbits(length) & (random.getrandbits(length) | random.getrandbits(length))
    partial = random.randrange(1 << unit_bits)
    word = fields.packed(widths, [tick, string, partial])
    lower = random.randint(1, limit)
    permits = random.randint(1, random.choice((lower, lower, 2 * limit)))
    step = random.randrange(9)
    at = min(max(tick + random.randint(-2, summed + 1), summed), last)
    charged = max(tick - random.randint(-1, summed), 0)
    return (*layout, word, step, at, lower, min(permits, lower) if step == 7 else permits, charged)


# The bucket.


def bucket_outcome(case):
    limit, window, burst, lower, word, step, reading, permits, before, charged, own = case
    window *= buckets.UNITS
    highest = buckets.permit_time(window, limit)
    ahead = 2 * window
    while ahead < burst * highest + burst:
        ahead *= 2
    if lower < limit:
        policy = buckets.Policy(
            buckets.permit_time(window, lower), buckets.lower_burst(window, limit, burst, lower), ahead
        )
    else:
        policy = buckets.Policy(highest, burst, ahead)
    time, lowered, refunded = (fields.field(fields.BUCKET, word, index) for index in range(3))
    state, now = buckets.State(time, lowered == 1, refunded == 1), buckets.units(reading)

    def word_of(state):
        return fields.packed(fields.BUCKET, [state.time, int(state.lowered), int(state.refunded)])

    if step == 0:
        fits, after = buckets.admitted(policy, state, now, permits)
        return (1, word_of(after)) if fits else (0, word)
    if step == 1:
        taken, after = buckets.charged(policy, state, now, permits)
        return taken, word_of(after)
    if step == 2:
        receipt = buckets.Receipt(before, now, charged, own)
        possible, after = buckets.refunded(state, receipt, permits)
        return (1, word_of(after)) if possible else (0, word)
    if step == 5:
        return word == 0 or buckets.idle(policy, state, now), word
    if step == 6:
        can, after = buckets.passed_on(policy, state, now)
        return optional(word_of(after) if can else None), word
    # A restored state, from a fresh word.
    can, begun = buckets.passed_on(policy, state, now)
    taken, after = buckets.charged(policy, begun if can and reading > 0 else state, now, permits)
    return taken, word_of(after)


def bucket_case(limit, window, burst, lower, time, flags, step, reading, permits, receipt):
    window_units = window * buckets.UNITS
    own = buckets.permit_time(window_units, limit)
    # A receipt whose charge is the newest write, or off by `receipt`.
    before = max(time - (permits + 1) * own + receipt, 0)
    reading = before // 2 if step == 2 else reading
    word = 0 if step == 9 else 4 * time + flags
    return (limit, window, burst, lower, word, step, reading, permits, before, permits + 1, own)


BUCKETS = [(1, 1_000, 1, 1), (10, 10**9, 10, 10), (7, 10**9, 3, 2), (100, 60 * 10**9, 250, 99), (10**9, 10**9, 10**9, 3)]
BUCKET_STEPS = (0, 1, 2, 5, 6, 9)


def bucket_boundaries():
    for limit, window, burst, lower in BUCKETS:
        own = buckets.permit_time(window * buckets.UNITS, limit)
        last = buckets.MAX_TIME
        for reading in (0, 1, 10**15, buckets.END - 1, buckets.END, 2**63 - 1):
            now = buckets.units(reading)
            times = {0, last, *near(now, now + burst * own, now + (burst - 1) * own, max(now - own, 0), last - 2 * own)}
            for time, flags, step in itertools.product(sorted(times), (0, 2, 3), BUCKET_STEPS):
                if time <= last:
                    for permits, receipt in ((1, 0), (1, 1), (burst, 0), (burst + 1, 0)):
                        yield bucket_case(limit, window, burst, lower, time, flags, step, reading, permits, receipt)


def bucket_random():
    window = random.randint(1_000, 10 ** random.randint(4, 16))
    limit = random.randint(1, min(window, 10 ** random.randint(1, 12)))
    burst = random.randint(1, limit)
    lower = random.choice((limit, random.randint(1, limit)))
    reading = random.randint(0, buckets.END)
    own = buckets.permit_time(window * buckets.UNITS, limit)
    time = max(0, buckets.units(reading) + random.randint(-burst * own, burst * own + 1))
    step, flags = random.choice(BUCKET_STEPS), random.choice((0, 2, 3))
    permits = random.randint(1, random.choice((1, burst, 2 * burst)))
    return bucket_case(limit, window, burst, lower, min(time, buckets.MAX_TIME), flags, step, reading, permits, random.choice((0, 0, 1)))


# Calendar, with days.


def calendar_outcome(case):
    limit, lower, word, step, day, permits, charged = case
    state = periods.State(*(fields.field(fields.PERIOD, word, index) for index in range(2)))
    now = periods.current(state, day)

    def word_of(state):
        return fields.packed(fields.PERIOD, [state.period, state.used])

    if step == 0:
        fits, after = periods.admitted(state, day, lower, permits)
        return (1, word_of(after)) if fits else (0, word)
    if step == 1:
        taken, after = periods.charged(state, day, permits)
        return taken, word_of(after)
    if step == 2:
        possible, after = periods.refunded(state, charged, permits)
        return (1, word_of(after)) if possible else (0, word)
    if step == 3:
        return max(lower - now.used, 0), word
    if step == 4:
        return now.used, word
    if step == 5:
        return periods.idle(state, day), word
    if step == 6:
        can, after = periods.passed_on(state, day)
        return optional(word_of(after) if can else None), word
    taken, after = periods.charged(periods.State(day, 0), day, permits)
    return taken, word_of(after)


CALENDAR_STEPS = (0, 1, 2, 3, 4, 5, 6, 9)


def calendar_case(limit, lower, period, used, step, day, permits, charged):
    word = 0 if step == 9 else fields.packed(fields.PERIOD, [period, used if period else 0])
    return (limit, lower, word, step, max(day, 1), max(permits, 1), charged)


def calendar_boundaries():
    for limit, lower in ((1, 1), (10, 3), (10**12, 10**12)):
        for period, step in itertools.product((0, 1, 2, 6_999), CALENDAR_STEPS):
            for used in {0, 1, lower - 1, lower, limit, periods.MAX_USED - 1, periods.MAX_USED}:
                for day in near(period):
                    for permits in {1, lower, lower + 1, max(lower - used, 1), used, periods.MAX_USED}:
                        yield calendar_case(limit, lower, period, used, step, day, permits, day)


def calendar_random():
    limit = random.randint(1, 10 ** random.randint(0, 12))
    lower = random.randint(1, limit)
    period = random.randint(0, 7_000)
    day = random.choice((period, random.randint(1, 7_000)))
    used = random.randint(0, random.choice((lower, periods.MAX_USED)))
    permits = random.randint(1, random.choice((lower, periods.MAX_USED)))
    return calendar_case(limit, lower, period, used, random.choice(CALENDAR_STEPS), day, permits, random.choice((period, day)))


# Requests in flight.


def slots_outcome(case):
    limit, lower, word, step, number, generation = case
    state = slots.State(*(fields.field(fields.SLOTS, word, index) for index in range(2)))
    # A word that was never written is of generation 1.
    state = slots.State(max(state.generation, 1), state.held)

    def word_of(state):
        return fields.packed(fields.SLOTS, [state.generation, state.held])

    if step == 0:
        fits, after = slots.admitted(state, lower, number)
        return (1, word_of(after)) if fits else (0, word)
    if step == 1:
        return 0, word
    if step == 2:
        possible, after = slots.released(state, generation, number)
        return (1, word_of(after)) if possible else (0, word)
    if step == 3:
        return max(lower - state.held, 0), word
    if step == 4:
        return state.held, word
    if step == 5:
        return slots.idle(state), word
    can, after = slots.passed_on(state)
    return optional(word_of(after) if can else None), word


def slots_boundaries():
    last, most = slots.LAST_GENERATION, slots.MOST_HELD
    for limit, lower in ((1, 1), (10, 3), (most, most), (most, 7)):
        for generation, step in itertools.product((0, 1, 2, last - 1, last), range(7)):
            for held in {0} if generation == 0 else {0, 1, lower - 1, lower, limit, most - 1, most}:
                for number in {1, max(lower - held, 1), lower, lower + 1, max(held, 1), held + 1, 2**64 - 1}:
                    for other in {max(generation, 1), max(generation - 1, 1), min(generation + 1, last)}:
                        yield (limit, lower, generation << 20 | held, step, number, other)


def slots_random():
    limit = random.randint(1, slots.MOST_HELD)
    lower, generation = random.randint(1, limit), random.randint(1, slots.LAST_GENERATION)
    held = random.randint(0, random.choice((lower, slots.MOST_HELD)))
    other = random.choice((generation, generation, max(generation - 1, 1)))
    number = random.randint(1, random.choice((lower, slots.MOST_HELD)))
    return (limit, lower, generation << 20 | held, random.randrange(7), number, other)


# Violations and blocks.


def block_outcome(case):
    limit, window, forgiveness, extends, first, factor, ceiling, word, step, now = case
    config = blocks.Config(
        limit, window, forgiveness, extends == 1, lambda level: min(first * factor ** max(level - 1, 0), ceiling)
    )
    time, blocked, level, violations = (fields.field(fields.BLOCK, word, index) for index in range(4))
    state = blocks.State(time, blocked == 1, level, violations)

    def word_of(state):
        return fields.packed(fields.BLOCK, [state.time, int(state.blocked), state.level, state.violations])

    if step == 0:
        # A denial is a violation, or a retry if the key is blocked.
        counts, after = blocks.violated(config, state, now)
        if not counts:
            counts, after = blocks.extended(config, state, now)
        return (1, word_of(after)) if counts else (0, word)
    if step == 1:
        return min(state.time * blocks.TICK, blocks.END) if blocks.in_force(state, now) else now, word
    if step == 2:
        return word == 0 or blocks.idle(config, state, now), word
    can, after = blocks.passed_on(state, now)
    return optional(word_of(after) if can else None), word


def block_boundaries():
    tick = blocks.TICK
    for limit, window, forgiveness, extends in itertools.product((1, 2, 5), (1, 100), (0, 50, 1_000), (0, 1)):
        for now in (0, tick - 1, 1_000 * tick, 1_000 * tick + 1, blocks.END - tick, blocks.END):
            newest = now // tick
            times = {0, *near(newest, max(newest - window, 0), max(newest - forgiveness, 0))}
            for time, blocked, level in itertools.product(sorted(times), (0, 1), (0, 1, 31)):
                if blocked and level == 0:
                    continue
                for violations in {0} if blocked else {0, 1, limit - 1}:
                    if violations < limit:
                        word = fields.packed(fields.BLOCK, [time, blocked, level, violations])
                        for step in range(4):
                            yield (limit, window, forgiveness, extends, 30 * tick, 3, 500 * tick, word, step, now)


def block_random():
    tick = blocks.TICK
    limit = random.randint(1, random.choice((4, 60_000)))
    window, forgiveness = random.randint(1, 10 ** random.randint(1, 9)), random.randint(0, 10 ** random.randint(1, 9))
    now = random.randint(0, 10 ** random.randint(8, 18))
    time = max(0, now // tick + random.choice((0, -window, -forgiveness)) + random.randint(-3, 3))
    blocked = random.randint(0, 1)
    violations = 0 if blocked else random.randrange(limit)
    word = fields.packed(fields.BLOCK, [time, blocked, random.randint(blocked, 31), violations])
    first = tick + random.randint(0, 10**12)
    ceiling = first + random.randint(0, 10**15)
    return (limit, window, forgiveness, random.randint(0, 1), first, random.randint(1, 5), ceiling, word, random.randrange(4), now)


SUBJECTS = {
    "unit": (unit_outcome, unit_boundaries, unit_random),
    "bucket": (bucket_outcome, bucket_boundaries, bucket_random),
    "calendar": (calendar_outcome, calendar_boundaries, calendar_random),
    "slots": (slots_outcome, slots_boundaries, slots_random),
    "block": (block_outcome, block_boundaries, block_random),
}


def main():
    path, cases = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
    random.seed(1)
    with open(path, "w") as file:
        for name, (outcome, boundaries, any_case) in SUBJECTS.items():
            written = 0
            for case in itertools.chain(boundaries(), (any_case() for _ in range(cases))):
                file.write(line(name, case, outcome(case)))
                written += 1
            print(f"{name}: {written} cases, {cases} of them random")


if __name__ == "__main__":
    main()
