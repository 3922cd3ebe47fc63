"""GCRA: at most b + L − 1 permits in any interval of one window, in one word.

The promise (src/algorithm/gcra/mod.rs): a bucket of b permits that is refilled at L per W. The word has the time at which the
bucket is full again, in half nanoseconds. A permit takes T = ⌈W/L⌉ to refill. A refund takes back the newest charge alone. Lower limits
over the same word keep the bound of the bucket.
"""

from dataclasses import dataclass

import z3

from kit import Claim, both, implies, integers, ite, least, most, prove, quotient, quotient_up


@dataclass(frozen=True)
class State:
    time: object
    lowered: object = False
    refunded: object = False


@dataclass(frozen=True)
class Policy:
    permit: object
    burst: object
    ahead: object


@dataclass(frozen=True)
class Receipt:
    before: object
    at: object
    permits: object
    permit: object


MAX_TIME = 2**60 - 1
END = 15 * 366 * 24 * 3600 * 10**9
UNITS = 2

# specification


def units(now):
    """A reading in half nanoseconds, from 1 ns on, up to the end of time."""
    return (least(now, END) + 1) * UNITS


def permit_time(window, limit):
    """The time per permit, for a window in half nanoseconds."""
    return quotient_up(window, limit)


def lower_burst(window, limit, burst, lower):
    """The burst of a lower limit: in proportion, at least 1, and such that the last admission of a window exceeds no bound."""
    others = (burst + limit - 1) * permit_time(window, limit) - window
    share = most(quotient(burst * lower, limit), 1)
    return least(share, quotient(others, permit_time(window, lower)) + 1)


def tolerance(policy):
    return policy.burst * policy.permit


def admitted(policy, state, now, permits):
    """Whether the permits fit, and the state after that."""
    full = most(state.time, now) + permits * policy.permit
    fits = full - now <= tolerance(policy)
    return fits, State(full, state.lowered, False)


def charged(policy, state, now, permits):
    """The number of permits that are charged, whether they fit or not, and the state after that."""
    begin = most(state.time, now)
    room = quotient(most(MAX_TIME - begin, 0), policy.permit)
    taken = least(permits, room)
    return taken, State(begin + taken * policy.permit, state.lowered, False)


def refunded(state, receipt, permits):
    """Whether permits of the receipt can be given back, and the state after that."""
    begin = most(receipt.before, receipt.at)
    is_newest = state.time == begin + receipt.permits * receipt.permit
    kept = receipt.permits - permits
    return both(is_newest, state.refunded == False), State(begin + kept * receipt.permit, True, True)  # noqa: E712


def passed_at(policy, state):
    """The first time that is after every word of the key."""
    return state.time + ite(state.lowered, policy.ahead, 0) + 1


def idle(policy, state, now):
    return passed_at(policy, state) <= now


def passed_on(policy, state, now):
    """Whether the word can be given to another key, and its state then."""
    later = most(now, state.time + 1)
    lowered = both(state.lowered, passed_at(policy, state) > later)
    return later <= MAX_TIME, State(later, lowered, False)


# proof


def log_invariant(start, permit, time, permits):
    """The permits of the log with a stamp after `start` have moved the time that far from it."""
    return implies(permits > 0, time >= start + 1 + permits * permit)


class Setting:
    """Any interval, any policy with a rate at most that of the bucket, and any state with the last charge to it."""

    def __init__(self):
        self.start, self.window, self.limit, self.burst, self.permit = integers("start window limit burst permit")
        self.time, self.permits, self.now = integers("time permits now")
        self.count = z3.Int("count")
        self.ahead, self.highest, self.highest_before = integers("ahead highest highest_before")
        # The policy of this request, and the last charge with the time and the count before it.
        self.policy = Policy(z3.Int("own_permit"), z3.Int("own_burst"), self.ahead)
        self.last = Receipt(*integers("before last_at last_permits last_permit"))
        self.count_before = z3.Int("count_before")
        self.lowered, self.is_refunded, self.lowered_before = z3.Bools("lowered refunded lowered_before")
        self.state = State(self.time, self.lowered, self.is_refunded)
        self.facts = [
            self.window >= 1,
            self.limit >= 1,
            self.burst >= 1,
            self.permit >= 1,
            self.window <= self.limit * self.permit,
            self.policy.permit >= self.permit,
            self.policy.burst >= 1,
            self.policy.burst * self.policy.permit <= self.ahead,
            self.permits >= 1,
            self.time >= 0,
            self.now >= 1,
            self.count >= 0,
            self.count_before >= 0,
            self.last.before >= 0,
            self.last.at >= 1,
            self.last.permits >= 1,
            self.last.permit >= self.permit,
        ]

    def inside(self, stamp):
        return stamp > self.start

    def counted(self, stamp, permits):
        return ite(self.inside(stamp), permits, 0)

    def invariant(self, time, count):
        return log_invariant(self.start, self.permit, time, count)

    def newest(self, state, count, last, count_before):
        """A word that no refund has written is that of the last charge. Without the charge, the log was sound, too."""
        return implies(
            z3.Not(state.refunded),
            both(
                state.time == most(last.before, last.at) + last.permits * last.permit,
                count == count_before + self.counted(last.at, last.permits),
                self.invariant(last.before, count_before),
            ),
        )

    def known(self):
        return [
            *self.facts,
            self.invariant(self.time, self.count),
            self.newest(self.state, self.count, self.last, self.count_before),
        ]

    def words(self, state, highest):
        """`highest` is the highest time of all words of the key."""
        return both(
            highest >= state.time,
            ite(state.lowered, highest <= state.time + self.ahead, highest == state.time),
        )


def proofs():
    s = Setting()
    receipt = Receipt(s.time, s.now, s.permits, s.policy.permit)
    fits, after = admitted(s.policy, s.state, s.now, s.permits)
    count = s.count + s.counted(s.now, s.permits)
    prove(
        "bucket: an admission moves the time by the permits of the log",
        [*s.known(), fits],
        both(s.invariant(after.time, count), s.newest(after, count, receipt, s.count), after.time > s.time),
    )
    taken, debt, whole = a_debt(s)
    receipt_of_debt = Receipt(s.time, s.now, taken, s.policy.permit)
    count_of_debt = s.count + s.counted(s.now, taken)
    prove(
        "bucket: debt moves the time by the permits of the log",
        [*s.known(), *whole],
        both(
            s.invariant(debt.time, count_of_debt),
            s.newest(debt, count_of_debt, receipt_of_debt, s.count),
            debt.time >= s.time,
            debt.time <= MAX_TIME,
        ),
    )
    possible, back = refunded(s.state, s.last, s.permits)
    count_back = s.count - s.counted(s.last.at, s.permits)
    prove(
        "bucket: a refund of the newest charge takes exactly its permits from the log and from the time",
        [*s.known(), possible, s.permits <= s.last.permits],
        both(
            s.invariant(back.time, count_back),
            s.newest(back, count_back, s.last, s.count_before),
            back.time == s.time - s.permits * s.last.permit,
        ),
    )

    prove("bucket: the newest charge can be refunded", [*s.known(), z3.Not(s.is_refunded)], possible)

    bounds(s, fits, after, count)
    the_newest_receipt(s, after, back, possible)
    reuse(s, fits, after, debt, whole, back, possible)
    lower_limits()
    readings()


def a_debt(s):
    """A charge of debt, with a number in place of the quotient, and what is known of the number."""
    quotient_taken, after = charged(s.policy, s.state, s.now, s.permits)
    taken = z3.Int("taken")

    def facts(taken):
        end = most(s.time, s.now) + taken * s.policy.permit
        return [0 <= taken, taken <= s.permits, end <= MAX_TIME, implies(taken < s.permits, end + s.policy.permit > MAX_TIME)]

    fits = [s.time <= MAX_TIME, s.now <= MAX_TIME, s.policy.permit >= 1, s.permits >= 1]
    prove("bucket: debt is charged whole, or up to the end of the word", fits, both(*facts(quotient_taken)))
    product = taken * s.policy.permit >= taken * s.permit
    prove("bucket: debt takes no less time by a lower limit", [*s.facts, 0 <= taken], product)
    time = z3.substitute(after.time, (quotient_taken, taken))
    return taken, State(time, after.lowered, after.refunded), [s.time <= MAX_TIME, s.now <= MAX_TIME, *facts(taken), product]


def bounds(s, fits, after, count):
    in_interval = [s.inside(s.now), s.now <= s.start + s.window]
    own = [s.policy.permit == s.permit, s.policy.burst == s.burst]
    # In time, the permits of the log are below the window and the burst. Then in permits.
    time_bound = count * s.permit < s.window + s.burst * s.permit
    prove("bucket: the permits of an interval take less than a window and the burst", [*s.known(), *in_interval, *own, fits], time_bound)
    permits = z3.Int("sum")
    facts = [s.permit >= 1, s.window <= s.limit * s.permit, permits * s.permit < s.window + s.burst * s.permit]
    scaled = (permits - s.burst - s.limit) * s.permit < 0
    prove("bucket: as a product", facts, scaled)
    prove("bucket: an interval holds at most b + L - 1 permits", [*facts, scaled], permits <= s.burst + s.limit - 1)

    # A lower limit: the burst is such that (burst − 1)·T' is at most (b + L − 1)·T − W.
    bound = s.burst + s.limit - 1
    small = (s.policy.burst - 1) * s.policy.permit <= bound * s.permit - s.window
    facts = [*s.known(), *in_interval, fits, small]
    others = (count - s.permits) * s.permit + s.permits * s.policy.permit < s.window + s.policy.burst * s.policy.permit
    prove("bucket: the permits of an interval whose last has a lower limit, in time", facts, others)
    more = (s.permits - 1) * s.policy.permit >= (s.permits - 1) * s.permit
    prove("bucket: all but one of the last permits take no less time by a lower limit", s.facts, more)
    scaled = (count - 1 - bound) * s.permit < 0
    prove("bucket: with a lower limit, as a product", [*s.facts, small, others, more], scaled)
    prove("bucket: an interval with lower limits holds at most b + L - 1 permits", [s.permit >= 1, scaled], count <= bound)

    later = z3.Int("later")
    fits_later, _ = admitted(s.policy, s.state, later, s.permits)
    enough = s.permits <= s.policy.burst
    product = s.permits * s.policy.permit <= s.policy.burst * s.policy.permit
    prove("bucket: a request up to the burst takes at most its time", [*s.facts, enough], product)
    ready = s.time + s.permits * s.policy.permit - tolerance(s.policy)
    prove(
        "bucket: a request up to the burst fits from one time on",
        [*s.facts, enough, product, later >= 1],
        fits_later == (later >= ready),
    )
    prove("bucket: a request above the burst never fits", [*s.facts, s.permits * s.policy.permit > tolerance(s.policy)], z3.Not(fits_later))


def the_newest_receipt(s, after, back, possible):
    """A receipt whose charge is not the last write never matches the word, so no later charge is taken for it."""
    other = z3.Int("time_of_the_receipt")

    def older(state, last):
        return both(other <= state.time, implies(both(other == state.time, z3.Not(state.refunded)), last))

    # An outstanding receipt, whose time was that of the word when it was charged.
    charge = [*s.known(), other <= s.time, s.permits * s.policy.permit >= 1]
    prove("bucket: after an admission, no older receipt matches", [*charge, admitted(s.policy, s.state, s.now, s.permits)[0]], older(after, False))
    receipt = Receipt(*integers("receipt_before receipt_at receipt_permits receipt_permit"))
    time_of_charge = most(receipt.before, receipt.at) + receipt.permits * receipt.permit
    prove(
        "bucket: a receipt that does not match is refused",
        [*s.known(), older(s.state, False), other == time_of_charge],
        z3.Not(refunded(s.state, receipt, s.permits)[0]),
    )
    prove(
        "bucket: after a refund, no receipt matches",
        [*s.known(), possible, s.permits <= s.last.permits, other <= s.last.before],
        older(back, False),
    )


def reuse(s, fits, after, debt, whole, back, possible):
    highest = s.highest
    words = s.words(s.state, highest)
    prove("bucket: without a refund, words only grow", [*s.known(), fits, words], s.words(after, most(highest, after.time)))
    prove(
        "bucket: nor does debt lower a word",
        [*s.known(), *whole, words],
        s.words(debt, most(highest, debt.time)),
    )
    # The last charge was an admission, so it has left the word at most `ahead` after its stamp.
    before = s.words(State(s.last.before, s.lowered_before, False), s.highest_before)
    admission = s.time - s.last.at <= s.ahead
    prove(
        "bucket: no word is more than `ahead` above a word that a refund has written",
        [*s.known(), possible, s.permits <= s.last.permits, before, admission, s.highest == most(s.highest_before, s.time)],
        s.words(back, s.highest),
    )
    idle_now = idle(s.policy, s.state, s.now)
    can, next_state = passed_on(s.policy, s.state, s.now)
    prove("bucket: a word that no refund has lowered is idle as soon as its time is past", [z3.Not(s.lowered), s.now > s.time], idle_now)
    prove("bucket: a word can be passed on up to the end of the word", [s.time < MAX_TIME, s.now <= MAX_TIME], can)
    request = z3.Int("later")
    same = admitted(s.policy, next_state, request, s.permits)
    fresh = admitted(s.policy, State(z3.IntVal(0), z3.BoolVal(False), z3.BoolVal(False)), request, s.permits)
    prove(
        "bucket: a word that is passed on is above all words of the key before, and fresh for the next one",
        [*s.known(), words, idle_now, can, request >= s.now],
        both(next_state.time > highest, z3.Not(next_state.lowered), same[0] == fresh[0], same[1].time == fresh[1].time),
    )
    prove(
        "bucket: a word that is passed on early is above the one before, and remembers the words that are above it",
        [*s.known(), words, can],
        both(next_state.time > s.time, implies(next_state.time <= highest, next_state.lowered), next_state.time <= MAX_TIME,
             implies(next_state.lowered, highest <= next_state.time + s.ahead)),
    )
    reading = z3.Int("reading")
    reused = idle(s.policy, next_state, reading)
    prove("bucket: and is not idle before they are past", [*s.known(), words, can, reused], reading > highest)
    restored, state = charged(s.policy, State(s.now, z3.BoolVal(False), z3.BoolVal(False)), s.now, s.permits)
    prove(
        "bucket: a restored state is full no earlier than the saved one",
        [*s.facts, s.permits == quotient_up(most(s.time - s.now, 0), s.policy.permit), restored == s.permits, s.now <= MAX_TIME],
        state.time >= s.time,
    )


def lower_limits():
    """The burst of a lower limit fulfils what the bound needs, and its time is covered by `ahead`."""
    total, number = integers("total number")
    rounded = permit_time(total, number)
    prove(
        "bucket: the time of a permit is that of the window by the limit, rounded up",
        [total >= 1, number >= 1],
        both(number * rounded >= total, number * (rounded - 1) < total),
    )
    window, limit, burst, lower, permit, own, share, others = integers("window limit burst lower permit own share others")
    whole, rest = integers("whole rest")
    facts = [
        window >= 1,
        limit >= 1,
        burst >= 1,
        1 <= lower,
        lower <= limit,
        # T = ⌈W/L⌉ and T' = ⌈W/l⌉
        limit * permit >= window,
        limit * (permit - 1) < window,
        lower * own >= window,
        lower * (own - 1) < window,
        permit >= 1,
        own >= 1,
        others == (burst + limit - 1) * permit - window,
        others == whole * own + rest,
        0 <= rest,
        rest < own,
        # The share is b·l/L, rounded down, or 1.
        z3.Or(share * limit <= burst * lower, share == 1),
    ]
    chosen = least(share, whole + 1)
    expected = lower_burst(window, limit, burst, lower)
    division = [permit == permit_time(window, limit), own == permit_time(window, lower), whole == quotient(others, own)]
    prove(
        "bucket: the burst of a lower limit is the one of the proof",
        [window >= 1, limit >= 1, burst >= 1, lower >= 1, others == (burst + limit - 1) * permit - window, *division,
         share == most(quotient(burst * lower, limit), 1)],
        expected == chosen,
    )
    product = (chosen - 1) * own <= whole * own
    prove("bucket: the burst of a lower limit, as a product", [chosen <= whole + 1, own >= 1], product)
    prove("bucket: the burst of a lower limit keeps the bound", [*facts, product], (chosen - 1) * own <= others)
    prove("bucket: the others are not negative", [limit >= 1, burst >= 1, permit >= 1, limit * permit >= window,
          (burst - 1) * permit >= 0, others == (burst - 1) * permit + limit * permit - window], others >= 0)
    # L·share·T' ≤ b·l·T' < b·(W + l) ≤ b·(L·T + L)
    a, b, c = share * limit * own, burst * lower * own, burst * (window + lower)
    d = burst * (limit * permit + limit)
    with Claim("bucket: the burst of a lower limit takes at most b more than that of the bucket, or one window") as claim:
        one_step = [own >= 1, share * limit <= burst * lower]
        claim.case(one_step, a <= b)
        claim.case([burst >= 1, lower * (own - 1) < window], burst * (lower * own) <= c)
        claim.case([burst >= 1, limit * permit >= window, lower <= limit], c <= d)
        claim.case([a <= d, limit >= 1, burst >= 1], (share * own - burst * permit - burst) * limit <= 0)
        claim.case([(share * own - burst * permit - burst) * limit <= 0, limit >= 1], share * own <= burst * permit + burst)
        claim.case([lower >= 1, window >= 1, lower * (own - 1) < window], own - 1 < window)


def readings():
    """Readings in half nanoseconds keep their order, and an interval of readings is no longer in them."""
    first, second = integers("first second")
    prove(
        "bucket: readings keep their order, and twice their distance at most",
        [0 <= first, first <= second],
        both(units(first) <= units(second), units(second) - units(first) <= UNITS * (second - first), units(first) >= 1),
    )
    longest = 366 * 24 * 3600 * 10**9 * UNITS
    prove(
        "bucket: an admission fits into the word",
        [0 <= first, second <= units(first) + 2 * longest],
        second <= MAX_TIME,
    )


if __name__ == "__main__":
    proofs()
