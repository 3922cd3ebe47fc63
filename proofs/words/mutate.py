"""Shows that the proofs depend on every line of their specifications: mutates the lines one at a time, and expects a proof to fail.

    mutate.py            all mutations
    mutate.py I/N        every N-th mutation, from the I-th on; the others are only applied
    mutate.py MODULE     those of one module

A line of a specification is a line of code between `# specification` and `# proof`. Each one needs a mutation. A mutation is caught if a
claim is refuted or unknown. It is not caught if the proof crashes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))

# The module, the code and the code that replaces it. The code is found exactly once in the specification.
MUTATIONS = [
    ("strings", "    if is_empty(string):\n        return 0\n    newer", "    if is_empty(string):\n        return 1\n    newer"),
    ("strings", "lambda: 1 + ones(tail(string), zeros)", "lambda: 2 + ones(tail(string), zeros)"),
    ("strings", "lambda: ones(tail(string), zeros - 1)", "lambda: ones(tail(string), zeros)"),
    ("strings", "return ite(zeros <= 0, 0, newer)", "return ite(zeros < 0, 0, newer)"),
    ("strings", "        return 0\n    return ite(bits <= 0, 0, lambda", "        return 1\n    return ite(bits <= 0, 0, lambda"),
    ("strings", "ite(bits <= 0, 0, lambda: ite(head", "ite(bits <= 1, 0, lambda: ite(head"),
    ("strings", "count(tail(string), bits - 1)", "count(tail(string), bits - 2)"),
    ("strings", "        return string\n    return ite(bits <= 0, lambda", "        return cons(True, string)\n    return ite(bits <= 0, lambda"),
    ("strings", "ite(bits <= 0, lambda: empty(string)", "ite(bits <= 1, lambda: empty(string)"),
    ("strings", "truncated(tail(string), bits - 1)", "truncated(tail(string), bits - 2)"),
    ("strings", "        return string\n    if head(string):", "        return cons(True, string)\n    if head(string):"),
    ("strings", "    if head(string):\n", "    if not head(string):\n"),
    ("strings", "ite(mark <= 1, lambda: tail(string)", "ite(mark <= 2, lambda: tail(string)"),
    ("strings", "without(tail(string), mark - 1)", "without(tail(string), mark)"),
    ("strings", "return cons(False, without(tail(string), mark))", "return without(tail(string), mark)"),
    ("strings", "truncated(cons(False, string), bits)", "truncated(cons(True, string), bits)"),
    ("strings", "truncated(cons(True, string), bits)", "truncated(cons(False, string), bits)"),
    ("unit_ring", "quotient(layout.limit, layout.unit) + layout.summed", "quotient(layout.limit, layout.unit) + layout.summed - 1"),
    ("unit_ring", "cells = most(tick - state.tick, 0)", "cells = tick - state.tick"),
    ("unit_ring", "ite(cells < layout.summed, state.partial, 0)", "ite(cells < layout.summed - 1, state.partial, 0)"),
    ("unit_ring", "ite(cells < layout.summed, state.partial, 0)", "state.partial"),
    ("unit_ring", "state.marks.aged(layout, cells))", "state.marks.aged(layout, cells + 1))"),
    ("unit_ring", "state.marks.marked(layout, quotient(total, layout.unit))", "state.marks.marked(layout, quotient(total, 2 * layout.unit))"),
    ("unit_ring", "partial=total % layout.unit, marks", "partial=0 * total, marks"),
    ("unit_ring", "total = state.partial + permits\n    units_left", "total = permits\n    units_left"),
    ("unit_ring", "quotient(limit - total, layout.unit)", "quotient(limit - total, layout.unit) + 1"),
    ("unit_ring", "quotient(limit - total, layout.unit)", "quotient(limit - total, layout.unit) - 1"),
    ("unit_ring", "both(total <= limit, lambda: state", "both(total < limit, lambda: state"),
    ("unit_ring", "lambda: state.marks.at_most(layout, units_left))", "lambda: True)"),
    ("unit_ring", "return fits, appended(layout, state, total)", "return fits, appended(layout, state, permits)"),
    ("unit_ring", "newest = layout.unit * state.marks.of_age(0) + state.partial", "newest = layout.unit * state.marks.of_age(0)"),
    ("unit_ring", "fits, after = admitted(layout, state, limit, permits)", "fits, after = admitted(layout, state, limit + 1, permits)"),
    ("unit_ring", "both(newest + permits <= share, fits), after", "both(newest <= share, fits), after"),
    ("unit_ring", "total = least(state.partial + permits, length", "total = least(permits, length"),
    ("unit_ring", "length(layout) * layout.unit + layout.unit - 1", "layout.unit - 1"),
    ("unit_ring", "    return appended(layout, state, total)\n\n\ndef spent", "    return appended(layout, state, total - 1)\n\n\ndef spent"),
    ("unit_ring", "state.marks.of_age(layout.summed - 1) + state.partial\n\n\ndef refunded", "state.marks.of_age(layout.summed - 1)\n\n\ndef refunded"),
    ("unit_ring", "age = state.tick - tick", "age = state.tick - tick - 1"),
    ("unit_ring", "units, rest = quotient(permits, layout.unit), permits % layout.unit", "units, rest = quotient(permits, layout.unit), 0 * permits"),
    ("unit_ring", "young = state.marks.of_age(age)", "young = state.marks.of_age(layout.summed - 1)"),
    ("unit_ring", "both(age >= 0, age < layout.summed)", "age < layout.summed"),
    ("unit_ring", "both(age >= 0, age < layout.summed)", "age >= 0"),
    ("unit_ring", "complete = state.marks.of_age(layout.summed - 1) <= quotient", "complete = state.marks.of_age(layout.summed - 1) <= 1 + quotient"),
    ("unit_ring", "state.marks.without(young, units)", "state.marks.without(units, units)"),
    ("unit_ring", "without_units.without(young - units, 1)", "without_units.without(1, 1)"),
    ("unit_ring", "state.partial + layout.unit - rest)", "state.partial + rest)"),
    ("unit_ring", "whole = replace(state, marks=without_units)", "whole = state"),
    ("unit_ring", "partial=state.partial - rest)", "partial=state.partial)"),
    ("unit_ring", "has_mark = young > units", "has_mark = both(young > units, state.partial < rest)"),
    ("unit_ring", "both(counts, complete, units <= young, either", "both(counts, complete, either"),
    ("unit_ring", "either(has_mark, state.partial >= rest))", "has_mark)"),
    ("unit_ring", "chosen(rest == 0, whole,", "chosen(rest == 1, whole,"),
    ("unit_ring", "both(state.partial == 0, state.marks.of_age(layout.summed - 1) == 0)", "state.marks.of_age(layout.summed - 1) == 0"),
    ("unit_ring", "most(tick, state.tick + 1)", "most(tick, state.tick)"),
    ("buckets", "(least(now, END) + 1) * UNITS", "now * UNITS"),
    ("buckets", "return quotient_up(window, limit)", "return quotient(window, limit)"),
    ("buckets", "(burst + limit - 1) * permit_time(window, limit) - window", "(burst + limit) * permit_time(window, limit) - window"),
    ("buckets", "most(quotient(burst * lower, limit), 1)", "most(quotient(burst * lower, limit), 0)"),
    ("buckets", "least(share, quotient(others, permit_time(window, lower)) + 1)", "share"),
    ("buckets", "return policy.burst * policy.permit", "return policy.burst * policy.permit + policy.permit"),
    ("buckets", "most(state.time, now) + permits * policy.permit", "now + permits * policy.permit"),
    ("buckets", "fits = full - now <= tolerance(policy)", "fits = full - now <= tolerance(policy) + 1"),
    ("buckets", "return fits, State(full, state.lowered, False)", "return fits, State(full, False, False)"),
    ("buckets", "begin = most(state.time, now)\n    room", "begin = now\n    room"),
    ("buckets", "room = quotient(most(MAX_TIME - begin, 0), policy.permit)", "room = permits"),
    ("buckets", "taken = least(permits, room)", "taken = room"),
    ("buckets", "taken = least(permits, room)", "taken = least(permits, room - 1)"),
    ("buckets", "State(begin + taken * policy.permit, state.lowered, False)", "State(begin, state.lowered, False)"),
    ("buckets", "begin = most(receipt.before, receipt.at)", "begin = receipt.before"),
    ("buckets", "is_newest = state.time == begin", "is_newest = state.time >= begin"),
    ("buckets", "kept = receipt.permits - permits", "kept = 0 * permits"),
    ("buckets", "both(is_newest, state.refunded == False)", "both(is_newest)"),
    ("buckets", "receipt.permit, True, True)", "receipt.permit, False, True)"),
    ("buckets", "receipt.permit, True, True)", "receipt.permit, True, False)"),
    ("buckets", "ite(state.lowered, policy.ahead, 0) + 1", "1"),
    ("buckets", "passed_at(policy, state) <= now", "passed_at(policy, state) <= now + 1"),
    ("buckets", "passed_at(policy, state) <= now", "passed_at(policy, state) < now"),
    ("buckets", "later = most(now, state.time + 1)", "later = most(now, state.time)"),
    ("buckets", "both(state.lowered, passed_at(policy, state) > later)", "both(state.lowered, passed_at(policy, state) < later)"),
    ("buckets", "return later <= MAX_TIME, State", "return later >= 0, State"),
    ("buckets", "return later <= MAX_TIME, State", "return later < MAX_TIME, State"),
    ("periods", "State(most(period, state.period), ite", "State(period, ite"),
    ("periods", "ite(period > state.period, 0, state.used)", "state.used"),
    ("periods", "now = current(state, period)\n    fits", "now = state\n    fits"),
    ("periods", "fits = now.used + permits <= limit", "fits = now.used + permits <= limit + 1"),
    ("periods", "return fits, State(now.period, now.used + permits)", "return fits, State(now.period, permits)"),
    ("periods", "now = current(state, period)\n    taken", "now = state\n    taken"),
    ("periods", "least(permits, MAX_USED - now.used)", "permits"),
    ("periods", "return taken, State(now.period, now.used + taken)", "return taken, State(now.period, now.used)"),
    ("periods", "both(state.period == period, state.used >= permits)", "both(state.used >= permits)"),
    ("periods", "both(state.period == period, state.used >= permits)", "both(state.period == period)"),
    ("periods", "State(state.period, state.used - permits)", "State(state.period, 0 * permits)"),
    ("periods", "return state.period < period", "return state.period <= period"),
    ("periods", "state.period <= period, State(most", "state.period >= 0, State(most"),
    ("periods", "most(period, state.period + 1), 0)", "most(period, state.period), 0)"),
    ("slots", "state.held + slots <= limit, State(state.generation, state.held + slots)", "state.held <= limit, State(state.generation, state.held + slots)"),
    ("slots", "<= limit, State(state.generation, state.held + slots)", "<= limit, State(state.generation, slots)"),
    ("slots", "both(state.generation == generation, state.held >= slots)", "both(state.held >= slots)"),
    ("slots", "both(state.generation == generation, state.held >= slots)", "both(state.generation == generation, state.held > slots)"),
    ("slots", "State(state.generation, state.held - slots)", "State(state.generation, 0 * slots)"),
    ("slots", "return state.held == 0", "return state.held <= 1"),
    ("slots", "state.generation < LAST_GENERATION, State", "state.generation <= LAST_GENERATION, State"),
    ("slots", "State(state.generation + 1, 0)", "State(state.generation, 0)"),
    ("blocks", "both(state.blocked, now < least", "both(True, now < least"),
    ("blocks", "now < least(state.time * TICK, END)", "now <= least(state.time * TICK, END)"),
    ("blocks", "least(now + config.length(level), END)", "least(now + config.length(1), END)"),
    ("blocks", "return quotient_up(end, TICK)", "return quotient(end, TICK)"),
    ("blocks", "    tick = quotient(now, TICK)\n    in_window", "    tick = quotient_up(now, TICK)\n    in_window"),
    ("blocks", "both(negated(state.blocked), state.violations > 0, tick", "both(state.violations >= 0, tick"),
    ("blocks", "tick < state.time + config.window)", "tick <= state.time + config.window)"),
    ("blocks", "ite(in_window, state.time, most(tick, state.time))", "ite(in_window, state.time, tick)"),
    ("blocks", "begin - state.time >= config.forgiveness", "begin - state.time > config.forgiveness"),
    ("blocks", "level = ite(forgiven, 0, state.level)", "level = state.level"),
    ("blocks", "violations = ite(in_window, state.violations, 0) + 1", "violations = state.violations + 1"),
    ("blocks", "blocks = violations >= config.limit", "blocks = violations > config.limit"),
    ("blocks", "next_level = least(level + 1, MAX_LEVEL)", "next_level = level + 1"),
    ("blocks", "most(now, least(begin * TICK, END)), next_level)", "now, next_level)"),
    ("blocks", "counts = negated(in_force(state, now))", "counts = negated(state.blocked)"),
    ("blocks", "ite(blocks, next_level, level), ite(blocks, 0, violations))", "level, ite(blocks, 0, violations))"),
    ("blocks", "end = block_end(config, now, state.level)", "end = block_end(config, now, 1)"),
    ("blocks", "both(in_force(state, now), config.extends, end > state.time)", "both(in_force(state, now), end > state.time)"),
    ("blocks", "both(in_force(state, now), config.extends, end > state.time)", "both(in_force(state, now), config.extends)"),
    ("blocks", "State(end, state.blocked, state.level, 0)", "State(end, state.blocked, 0, 0)"),
    ("blocks", "level = ite(state.level > 0, config.forgiveness, 0)", "level = 0"),
    ("blocks", "window = ite(state.violations > 0, config.window, 0)", "window = 0"),
    ("blocks", "most(most(level, window), 1)", "most(level, window)"),
    ("blocks", "idle_tick(config, state) <= quotient(now, TICK)", "idle_tick(config, state) <= 1 + quotient(now, TICK)"),
    ("blocks", "later = most(quotient(now, TICK), state.time + 1)", "later = most(quotient(now, TICK), state.time)"),
    ("blocks", "later = most(quotient(now, TICK), state.time + 1)", "later = state.time + 1"),
    ("blocks", "return state.time <= quotient(now, TICK), State", "return state.time >= 0, State"),
    ("fields", "word = values[0]", "word = 0 * values[0]"),
    ("fields", "zip(widths[1:], values[1:])", "zip(widths[:-1], values[1:])"),
    ("fields", "word = (word << width) | value", "word = (word << width) + 2 * value"),
    ("fields", "    return word\n", "    return word << 1\n"),
    ("fields", "lower = sum(widths[index + 1 :])", "lower = sum(widths[index:])"),
    ("fields", "z3.LShR(word, lower) if", "z3.LShR(word, lower + 1) if"),
    ("fields", "return shifted & ((1 << widths[index]) - 1)", "return shifted"),
]  # fmt: skip


def specification(text):
    return text.split("# specification\n", 1)[1].split("# proof\n", 1)[0]


def lines_without_mutation():
    """The lines of specifications that no mutation changes."""
    found = []
    for module in sorted({module for module, _, _ in MUTATIONS}):
        text = open(os.path.join(HERE, f"{module}.py")).read()
        spec = specification(text)
        changed = set()
        for name, before, after in MUTATIONS:
            if name != module:
                continue
            if spec.count(before) != 1:
                found.append(f"{module}: {before!r} is found {spec.count(before)} times")
                continue
            old, new = spec.splitlines(), spec.replace(before, after).splitlines()
            changed |= {index for index, line in enumerate(old) if index >= len(new) or new[index] != line}
        in_text = False
        for index, line in enumerate(spec.splitlines()):
            code = line.strip()
            is_text = in_text or code.startswith('"""')
            if code.count('"""') == 1:
                in_text = not in_text
            if is_text or not code or code.startswith(("#", "@", "def ", "if is_empty(")) or index in changed:
                continue
            found.append(f"{module}: no mutation of: {code}")
    return found


def try_mutation(mutation):
    """How the proofs fail: the claim that is not proved. None if they do not."""
    module, before, after = mutation
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(HERE):
            if name.endswith(".py"):
                shutil.copy(os.path.join(HERE, name), folder)
        path = os.path.join(folder, f"{module}.py")
        text = open(path).read()
        spec = specification(text)
        with open(path, "w") as file:
            file.write(text.replace(spec, spec.replace(before, after)))
        command = [sys.executable, os.path.join(folder, "prove.py"), "--first", module]
        done = subprocess.run(command, capture_output=True, text=True)
        failed = [line for line in done.stdout.splitlines() if line.startswith("not proved: ")]
        if done.returncode == 1 and failed:
            return failed[0].removeprefix("not proved: ")
        return None if done.returncode == 0 else f"CRASHED: {done.stderr.strip().splitlines()[-1:]}"


def main():
    began = time.monotonic()
    problems = lines_without_mutation()
    for problem in problems:
        print(problem)
    chosen, argument = MUTATIONS, sys.argv[1] if len(sys.argv) > 1 else ""
    if "/" in argument:
        first, step = map(int, argument.split("/"))
        chosen = MUTATIONS[first % step :: step]
    elif argument:
        chosen = [mutation for mutation in MUTATIONS if mutation[0] == argument]
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutation, outcome in zip(chosen, pool.map(try_mutation, chosen)):
            caught = outcome is not None and not outcome.startswith("CRASHED")
            missed += not caught
            mark = "caught by" if caught else "MISSED  "
            print(f"{mark} {outcome or '':60}  <- {mutation[0]}: {mutation[1]!r} -> {mutation[2]!r}", flush=True)
    seconds = time.monotonic() - began
    tried = f"{len(chosen)} of {len(MUTATIONS)} mutations tried"
    print(f"{tried}: {len(chosen) - missed} caught, {missed} missed, {seconds:.0f} s")
    sys.exit(1 if missed or problems else 0)


if __name__ == "__main__":
    main()
