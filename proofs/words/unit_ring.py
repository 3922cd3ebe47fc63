"""The unit ring: at most L permits in any interval of one window, in one word.

The promise (src/algorithm/unit_ring/protocol.md): a unit is u = 2^k permits. The word has the tick of the newest charged cell, the
permits that are not yet a unit, and a string of marks, one for each full unit. A window sums `summed` cells: N + 1 for a strict
ring. The string has ⌊L/u⌋ + `summed` bits.

The transitions work on any kind of marks. For the transcript, these are the bits of a word. For the proof, they are the numbers of
marks of each age, which change as the lemmas of strings.py say.
"""

from dataclasses import dataclass, replace

import z3

import strings
from kit import Claim, both, either, implies, integers, ite, least, most, negated, quotient


@dataclass(frozen=True)
class State:
    tick: object
    partial: object
    marks: object


@dataclass(frozen=True)
class Layout:
    limit: object
    summed: object
    unit: int


# specification


def length(layout):
    return quotient(layout.limit, layout.unit) + layout.summed


def at(layout, state, tick):
    """The state in the cell of `tick`, or in its own cell if that is newer."""
    cells = most(tick - state.tick, 0)
    partial = ite(cells < layout.summed, state.partial, 0)
    return State(state.tick + cells, partial, state.marks.aged(layout, cells))


def appended(layout, state, total):
    """The state with `total` permits in place of the partial unit."""
    marks = state.marks.marked(layout, quotient(total, layout.unit))
    return replace(state, partial=total % layout.unit, marks=marks)


def admitted(layout, state, limit, permits):
    """Whether the permits fit into a limit that is at most that of the layout, and the state after that."""
    total = state.partial + permits
    units_left = quotient(limit - total, layout.unit)
    fits = both(total <= limit, lambda: state.marks.at_most(layout, units_left))
    return fits, appended(layout, state, total)


def admitted_by_share(layout, state, limit, share, permits):
    """As `admitted`, where the newest cell gets at most its share of the limit."""
    newest = layout.unit * state.marks.of_age(0) + state.partial
    fits, after = admitted(layout, state, limit, permits)
    return both(newest + permits <= share, fits), after


def charged(layout, state, permits):
    """The state with more permits, whether they fit or not. More units than the string has bits leave it full of marks."""
    total = least(state.partial + permits, length(layout) * layout.unit + layout.unit - 1)
    return appended(layout, state, total)


def spent(layout, state):
    return layout.unit * state.marks.of_age(layout.summed - 1) + state.partial


def refunded(layout, state, tick, permits):
    """Whether permits that were charged at `tick` can be given back, and the state after that."""
    age = state.tick - tick
    units, rest = quotient(permits, layout.unit), permits % layout.unit
    young = state.marks.of_age(age)
    counts = both(age >= 0, age < layout.summed)
    complete = state.marks.of_age(layout.summed - 1) <= quotient(layout.limit, layout.unit)
    without_units = state.marks.without(young, units)
    one_more = replace(state, marks=without_units.without(young - units, 1))
    broken = appended(layout, one_more, state.partial + layout.unit - rest)
    whole = replace(state, marks=without_units)
    taken = replace(whole, partial=state.partial - rest)
    has_mark = young > units
    possible = both(counts, complete, units <= young, either(has_mark, state.partial >= rest))
    return possible, chosen(rest == 0, whole, lambda: chosen(has_mark, broken, taken))


def idle(layout, state):
    """Whether nothing counts any more."""
    return both(state.partial == 0, state.marks.of_age(layout.summed - 1) == 0)


def passed_on(layout, state, tick):
    """The state of the next cell or a later one, for another key or a restored state."""
    return at(layout, state, most(tick, state.tick + 1))


# proof


def chosen(condition, this, that):
    """One of two states. For terms, both are kept: the proof takes them apart."""
    if isinstance(condition, bool):
        this = this if condition else that
        return this() if callable(this) else this
    that = that() if callable(that) else that
    return State(
        ite(condition, this.tick, that.tick),
        ite(condition, this.partial, that.partial),
        Numbers(this.marks.facts, lambda age: ite(condition, this.marks.of_age(age), that.marks.of_age(age))),
    )


class Numbers:
    """Marks as their numbers by age. A number that is asked for adds the facts about it, which strings.py proves."""

    counter = 0

    def __init__(self, facts, of_age):
        self.facts = facts
        self.of_age = of_age

    @classmethod
    def anything(cls, facts, ages):
        """Any numbers, which do not fall with the age. `ages` are those of the proof."""
        function = z3.Function("marks", z3.IntSort(), z3.IntSort())
        for age in ages:
            facts.append(function(age) >= 0)
            for other in ages:
                facts.append(z3.Implies(age <= other, function(age) <= function(other)))
        return cls(facts, function)

    def bounded(self, layout, unbounded):
        """Lemma: a bounded string has the marks of an unbounded one, or is full of marks."""
        Numbers.counter += 1
        function = z3.Function(f"marks{Numbers.counter}", z3.IntSort(), z3.IntSort())

        def of_age(age):
            value = function(age)
            full = length(layout) - (age + 1) + 1
            self.facts.append(z3.Or(value == unbounded(age), z3.And(value <= unbounded(age), value >= full)))
            return value

        return Numbers(self.facts, of_age)

    def aged(self, layout, cells):
        """Lemma: the end of a cell raises the age of each mark by one."""
        shifted = self.bounded(layout, lambda age: ite(age < cells, 0, self.of_age(age - cells)))
        return Numbers(self.facts, lambda age: ite(cells < layout.summed, shifted.of_age(age), 0))

    def marked(self, layout, units):
        """Lemma: a new mark is one more for every age."""
        return self.bounded(layout, lambda age: self.of_age(age) + units)

    def at_most(self, layout, units):
        """Lemma: the counting rule. It reads no bit beyond the string."""
        return self.of_age(layout.summed - 1) <= units

    def without(self, newest, number):
        """Lemma: a removed mark is one less for its age and every higher one. So much for `number` of them, oldest first."""

        def of_age(age):
            before = self.of_age(age)
            return before - ite(before >= newest, number, most(0, before - (newest - number)))

        return Numbers(self.facts, of_age)


class Log:
    """The exact log: the permits that were charged, and not refunded, in the newest cells up to an age."""

    def __init__(self, of_age):
        self.of_age = of_age

    def aged(self, cells):
        return Log(lambda age: ite(age < cells, 0, self.of_age(age - cells)))

    def charged(self, permits):
        return Log(lambda age: self.of_age(age) + permits)

    def refunded(self, at_age, permits):
        return Log(lambda age: self.of_age(age) - ite(age >= at_age, permits, 0))


def invariant(layout, state, log, age):
    """Unless debt has filled the string: the permits charged since then are at most those of the marks and the partial unit."""
    units = state.marks.of_age(age)
    return implies(
        units <= quotient(layout.limit, layout.unit),
        log.of_age(age) <= layout.unit * units + state.partial,
    )


def close(layout, state, log, age):
    """Without refunds, less than a unit counts too long."""
    return layout.unit * state.marks.of_age(age) + state.partial < log.of_age(age) + layout.unit


class Setting:
    """Any layout of this unit, any state of it, and any log, with what is known of them at some ages."""

    def __init__(self, unit):
        self.facts = facts = []
        limit, summed, tick, partial, self.age, self.cells, self.permits = integers(
            "limit summed tick partial age cells permits"
        )
        self.charge_age, self.lower = integers("charge_age lower")
        self.layout = Layout(limit, summed, unit)
        window = summed - 1
        ages = [self.age, window, self.charge_age, self.age - self.cells, window - self.cells, 0]
        self.state = State(tick, partial, Numbers.anything(facts, ages))
        function = z3.Function("charged", z3.IntSort(), z3.IntSort())
        for age in ages:
            facts += [function(age) >= 0]
            facts += [z3.Implies(age <= other, function(age) <= function(other)) for other in ages]
        self.log = Log(function)
        facts += [limit >= 1, summed >= 1, tick >= 0, 0 <= partial, partial < unit]
        facts += [0 <= self.age, self.age < summed, self.permits >= 1, 0 <= self.cells, self.lower >= 1, self.lower <= limit]
        self.ages = [age for age in ages]

    def known(self, *properties):
        """The properties hold for every age of the window, so for those of the proof."""
        known = []
        for age in self.ages:
            inside = z3.And(0 <= age, age < self.layout.summed)
            known += [z3.Implies(inside, holds(self.layout, self.state, self.log, age)) for holds in properties]
        return known

    def prove(self, claim, assumptions, consequence):
        claim.case([*self.facts, *assumptions], consequence)


UNITS = range(62)


def proofs(units=UNITS):
    for name, check in CHECKS:
        with Claim(f"unit ring, every L and N, u = 2^{units[0]} to 2^{units[-1]}: {name}") as claim:
            for bits in units:
                check(claim, Setting(1 << bits))
    removals()
    repetitions()


def a_fresh_word(claim, s):
    fresh = State(0, 0, Numbers(s.facts, lambda age: z3.IntVal(0)))
    nothing = Log(lambda age: z3.IntVal(0))
    s.prove(
        claim, [], both(invariant(s.layout, fresh, nothing, s.age), close(s.layout, fresh, nothing, s.age), idle(s.layout, fresh))
    )


def a_cell_ends(claim, s):
    tick = s.state.tick + s.cells
    after, log = at(s.layout, s.state, tick), s.log.aged(s.cells)
    known = s.known(invariant, close)
    goal = both(
        invariant(s.layout, after, log, s.age),
        close(s.layout, after, log, s.age),
        after.tick == tick,
        0 <= after.partial,
        after.partial < s.layout.unit,
    )
    s.prove(claim, known, goal)


def an_older_reading(claim, s):
    older = z3.Int("older")
    after = at(s.layout, s.state, older)
    goal = both(after.tick == s.state.tick, after.partial == s.state.partial, invariant(s.layout, after, s.log, s.age))
    s.prove(claim, [older <= s.state.tick, *s.known(invariant)], goal)


def an_admission(claim, s):
    fits, after = admitted(s.layout, s.state, s.lower, s.permits)
    log, known = s.log.charged(s.permits), s.known(invariant)
    window = s.layout.summed - 1
    goal = both(
        log.of_age(window) <= s.lower,
        invariant(s.layout, after, log, s.age),
        spent(s.layout, after) == spent(s.layout, s.state) + s.permits,
        after.tick == s.state.tick,
        0 <= after.partial,
        after.partial < s.layout.unit,
    )
    s.prove(claim, [*known, fits], goal)


def a_denial(claim, s):
    fits, _ = admitted(s.layout, s.state, s.lower, s.permits)
    window = s.layout.summed - 1
    goal = s.log.of_age(window) + s.permits + s.layout.unit - 1 > s.lower
    s.prove(claim, [*s.known(invariant, close), negated(fits)], goal)


def an_admission_by_share(claim, s):
    share = z3.Int("share")
    fits, after = admitted_by_share(s.layout, s.state, s.lower, share, s.permits)
    log = s.log.charged(s.permits)
    goal = both(
        log.of_age(0) <= share, log.of_age(s.layout.summed - 1) <= s.lower, invariant(s.layout, after, log, s.age)
    )
    s.prove(claim, [*s.known(invariant), fits], goal)


def a_fixed_window(claim, s):
    """One cell, and a unit above the limit: the partial unit counts, and a mark is debt."""
    if s.layout.unit == 1:
        return
    fits, after = admitted(s.layout, s.state, s.lower, s.permits)
    debt = s.state.marks.of_age(0) > 0
    goal = both(
        fits == both(s.state.partial + s.permits <= s.lower, negated(debt)),
        implies(fits, both(after.partial == s.state.partial + s.permits, after.marks.of_age(0) == 0)),
        implies(both(close(s.layout, s.state, s.log, 0), invariant(s.layout, s.state, s.log, 0), negated(debt)),
                s.log.of_age(0) <= s.state.partial),
    )
    s.prove(claim, [s.layout.summed == 1, s.layout.limit < s.layout.unit], goal)


def a_charge(claim, s):
    after, log = charged(s.layout, s.state, s.permits), s.log.charged(s.permits)
    known = s.known(invariant, close)
    goal = both(
        invariant(s.layout, after, log, s.age),
        close(s.layout, after, log, s.age),
        after.tick == s.state.tick,
        0 <= after.partial,
        after.partial < s.layout.unit,
    )
    s.prove(claim, known, goal)


def a_full_string_denies(claim, s):
    fits, _ = admitted(s.layout, s.state, s.lower, s.permits)
    full = s.state.marks.of_age(s.layout.summed - 1) > quotient(s.layout.limit, s.layout.unit)
    s.prove(claim, [full], negated(fits))


def a_refund(claim, s):
    possible, after = refunded(s.layout, s.state, s.state.tick - s.charge_age, s.permits)
    log = s.log.refunded(s.charge_age, s.permits)
    # The charge of this age holds the permits, so the permits of lower ages are not among them.
    holds = [
        z3.Implies(age < s.charge_age, s.log.of_age(age) <= s.log.of_age(s.charge_age) - s.permits) for age in s.ages
    ]
    window = s.layout.summed - 1
    known = [*s.known(invariant), *holds, s.log.of_age(s.charge_age) >= s.permits, possible]
    goal = both(
        invariant(s.layout, after, log, s.age),
        spent(s.layout, after) == spent(s.layout, s.state) - s.permits,
        0 <= after.partial,
        after.partial < s.layout.unit,
        0 <= s.charge_age,
        s.charge_age <= window,
        after.tick == s.state.tick,
    )
    s.prove(claim, known, goal)


def a_refund_in_its_cell(claim, s):
    """A refund of a charge that was just made gives back the state."""
    fits, between = admitted(s.layout, s.state, s.lower, s.permits)
    possible, after = refunded(s.layout, between, s.state.tick, s.permits)
    goal = both(
        possible,
        after.partial == s.state.partial,
        after.marks.of_age(s.age) == s.state.marks.of_age(s.age),
    )
    s.prove(claim, [fits], goal)


def a_refund_that_is_refused(claim, s):
    """A charge that no longer counts, or that is newer than the word, is not refunded, nor anything in a string full of marks."""
    possible, _ = refunded(s.layout, s.state, s.state.tick - s.charge_age, s.permits)
    full = s.state.marks.of_age(s.layout.summed - 1) > quotient(s.layout.limit, s.layout.unit)
    s.prove(claim, [z3.Or(s.charge_age < 0, s.charge_age >= s.layout.summed, full)], negated(possible))


def a_refund_of_too_much(claim, s):
    """More permits than the marks and the partial unit hold since the charge are not refunded, whatever the receipt says."""
    possible, _ = refunded(s.layout, s.state, s.state.tick - s.charge_age, s.permits)
    counted = s.layout.unit * s.state.marks.of_age(s.charge_age) + s.state.partial
    s.prove(claim, [0 <= s.charge_age, s.charge_age < s.layout.summed, s.permits > counted], negated(possible))


def a_refund_that_is_possible(claim, s):
    """A charge whose permits are in the log, and which still counts, is refunded, if the string is not full."""
    possible, _ = refunded(s.layout, s.state, s.state.tick - s.charge_age, s.permits)
    full = s.state.marks.of_age(s.layout.summed - 1) > quotient(s.layout.limit, s.layout.unit)
    counts = [0 <= s.charge_age, s.charge_age < s.layout.summed, s.log.of_age(s.charge_age) >= s.permits]
    s.prove(claim, [*s.known(invariant), *counts, negated(full)], possible)


def an_idle_word(claim, s):
    """A word that is idle decides as a fresh one: nothing counts, in this cell and in every later one."""
    after = at(s.layout, s.state, s.state.tick + s.cells)
    later = both(idle(s.layout, after), spent(s.layout, after) == 0)
    s.prove(claim, [idle(s.layout, s.state)], both(later, implies(s.permits <= s.lower, admits(s, after))))


def a_word_becomes_idle(claim, s):
    after = at(s.layout, s.state, s.state.tick + s.cells)
    s.prove(claim, [s.cells >= s.layout.summed], idle(s.layout, after))


def a_reused_word(claim, s):
    """The word that another key gets is above all words of this key, and idle if this one is."""
    now = z3.Int("now")
    before, after = at(s.layout, s.state, now), passed_on(s.layout, s.state, now)
    goal = both(after.tick > s.state.tick, after.tick >= now, implies(idle(s.layout, before), idle(s.layout, after)))
    s.prove(claim, [now >= s.state.tick, s.cells == after.tick - s.state.tick], goal)


def a_restored_state(claim, s):
    """A fresh state that is charged with the permits that count is at least as strict for every age."""
    fresh = State(s.state.tick, 0, Numbers(s.facts, lambda age: z3.IntVal(0)))
    begun = passed_on(s.layout, fresh, s.state.tick)
    after = charged(s.layout, begun, spent(s.layout, s.state))
    full = after.marks.of_age(s.age) > quotient(s.layout.limit, s.layout.unit)
    as_strict = both(after.marks.of_age(s.age) >= s.state.marks.of_age(s.age), after.partial >= s.state.partial)
    s.prove(claim, [spent(s.layout, s.state) > 0], both(either(full, as_strict), begun.tick > s.state.tick))


def admits(s, state):
    return admitted(s.layout, state, s.lower, s.permits)[0]


CHECKS = [
    ("a fresh word keeps the invariant", a_fresh_word),
    ("a cell that ends keeps it, and less than a unit counts too long", a_cell_ends),
    ("an older reading changes nothing", an_older_reading),
    ("an admission keeps it, and the window holds at most the limit of the request", an_admission),
    ("a denial proves that the window holds more than l - u permits with those of the request", a_denial),
    ("an admission by shares keeps it, and the newest cell holds at most its share", an_admission_by_share),
    ("a fixed window counts in the partial unit alone", a_fixed_window),
    ("debt keeps it", a_charge),
    ("a string full of marks denies every request", a_full_string_denies),
    ("a refund keeps it, and releases exactly its permits", a_refund),
    ("a refund in the cell of its charge gives back the state", a_refund_in_its_cell),
    ("a refund of a charge that does not count, or from a full string, is refused", a_refund_that_is_refused),
    ("a refund of more permits than are counted is refused", a_refund_of_too_much),
    ("a refund of a charge that counts is possible", a_refund_that_is_possible),
    ("an idle word decides as a fresh one, now and later", an_idle_word),
    ("a word is idle when the window has passed", a_word_becomes_idle),
    ("a word that is passed on is above all earlier ones", a_reused_word),
    ("a restored state is at least as strict", a_restored_state),
]


def removals():
    """`without` for a number of marks, from the lemma for one mark, by induction over the number."""
    before, newest, number = integers("before newest number")

    def after(count):
        return before - ite(before >= newest, count, most(0, before - (newest - count)))

    with Claim("unit ring: marks removed one by one, oldest first, are the removed marks of the transitions") as claim:
        claim.case([before >= 0, newest >= 0], after(z3.IntVal(0)) == before)
        next_one = newest - number
        claim.case(
            [before >= 0, number >= 0, number < newest],
            after(number + 1) == after(number) - ite(after(number) >= next_one, 1, 0),
        )


def repetitions():
    """`bounded` for several new bits, from the lemma for one bit, by induction over their number."""
    bits, zeros, exact, before, after = integers("bits zeros exact before after")

    def full(value, unbounded, newest):
        return either(value == unbounded, both(value <= unbounded, value >= bits - newest + 1))

    with Claim("unit ring: a bounded string of several new bits has the marks of an unbounded one, or is full") as claim:
        # One more cell: the marks below the zero `zeros` are those that were below the zero before it.
        claim.case([zeros >= 1, full(before, exact, zeros - 1), full(after, before, zeros)], full(after, exact, zeros))
        # One more mark.
        claim.case([zeros >= 1, full(before, exact, zeros), full(after, before + 1, zeros)], full(after, exact + 1, zeros))


class Bits:
    """Marks as the bits of a word, for the transcript."""

    def __init__(self, string):
        self.string = string

    def of_age(self, age):
        return strings.ones(self.string, age + 1)

    def aged(self, layout, cells):
        if cells >= layout.summed:
            return Bits(0)
        string = self.string
        for _ in range(cells):
            string = strings.aged(string, length(layout))
        return Bits(string)

    def marked(self, layout, units):
        string = self.string
        # More marks than the string has bits leave it full.
        for _ in range(min(units, length(layout))):
            string = strings.marked(string, length(layout))
        return Bits(string)

    def at_most(self, layout, units):
        return strings.count(self.string, units + layout.summed) <= units

    def without(self, newest, number):
        string = self.string
        for mark in range(newest, newest - number, -1):
            string = strings.without(string, mark)
        return Bits(string)
