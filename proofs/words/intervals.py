"""From the cells of a window to any interval of one window, and the rings that sum other cells.

The promise (src/lib.rs, "Guarantees"): any half-open interval of length W holds at most L permits of a strict ring, 2L of a classic
ring or a fixed window, and L + ⌈L/N⌉ of an even ring. The cells are at least W/N wide. The stamp of a decision lies in the cell that it charges.
"""

import z3

from kit import both, integers, prove


def proofs():
    width, cells, window, first, last = integers("width cells window first last")
    first_cell, last_cell, first_part, last_part = integers("first_cell last_cell first_part last_part")
    times = [
        width >= 1,
        cells >= 1,
        window >= 1,
        window <= cells * width,
        first == first_cell * width + first_part,
        last == last_cell * width + last_part,
        0 <= first_part,
        first_part < width,
        0 <= last_part,
        last_part < width,
        last - window < first,
        first <= last,
    ]
    span = last_cell - first_cell
    # (last_cell − first_cell)·width is below (cells + 1)·width.
    hint = (span - cells) * width < width
    prove("intervals: the parts of two cells differ by less than a cell", times, hint)
    prove("intervals: one window touches at most N + 1 cells", [*times, hint], both(0 <= span, span <= cells))

    strict_ring()
    rings_of_n_cells()
    two_violations()


def strict_ring():
    """The permits of an interval are those of its cells. The last decision of the interval counted all these cells."""
    limit, lower, tick, oldest, cells = integers("limit lower tick oldest cells")
    log = z3.Function("since", z3.IntSort(), z3.IntSort())
    in_interval = z3.Int("in_interval")
    prove(
        "intervals: a strict ring admits at most L in any interval of one window",
        [
            lower <= limit,
            tick - cells <= oldest,
            # The permits since an earlier tick are no fewer. The decision has found at most its limit in the window.
            z3.Implies(tick - cells <= oldest, log(oldest) <= log(tick - cells)),
            in_interval <= log(oldest),
            log(tick - cells) <= lower,
        ],
        in_interval <= limit,
    )


def rings_of_n_cells():
    limit, cells, first_cell, others, share, largest, quotient, rest = integers(
        "limit cells first_cell others share largest quotient rest"
    )
    # The decision of the last admission summed the newest N cells. So did that of the last admission to the first cell.
    sums = [first_cell <= limit, others <= limit]
    prove("intervals: a classic ring and a fixed window admit at most 2L in N + 1 cells", sums, first_cell + others <= 2 * limit)
    shares = [
        cells >= 1,
        limit == quotient * cells + rest,
        0 <= rest,
        rest < cells,
        largest == quotient + z3.If(rest > 0, 1, 0),
        share <= largest,
        first_cell <= share,
        others <= limit,
    ]
    prove("intervals: an even ring admits at most L and the largest share in N + 1 cells", shares, first_cell + others <= limit + largest)
    # Cell i has ⌊(i + 1)·L/N⌋ − ⌊i·L/N⌋ permits, which telescopes. With i·L = a·N + b and L = quotient·N + rest:
    before, left, after, left_after = integers("before left after left_after")
    divisions = [
        cells >= 1,
        0 <= rest,
        rest < cells,
        0 <= left,
        left < cells,
        0 <= left_after,
        left_after < cells,
        # (i + 1)·L − i·L = L
        (after * cells + left_after) - (before * cells + left) == quotient * cells + rest,
    ]
    hint = (after - before - quotient) * cells == rest + left - left_after
    prove("intervals: the share of a cell, as a product", divisions, hint)
    prove(
        "intervals: the share of a cell is L/N, rounded down or up",
        [*divisions, hint, (after - before - quotient) * cells > -cells, (after - before - quotient) * cells < 2 * cells],
        both(after - before >= quotient, after - before <= quotient + z3.If(rest > 0, 1, 0)),
    )


def two_violations():
    """An interval of one window touches at most two windows of violations, since each begins a window after the one before."""
    first, second, third, window, start = integers("first second third window start")
    prove(
        "intervals: one window touches at most two windows of violations",
        [window >= 1, second >= first + window, third >= second + window],
        z3.Not(z3.Exists([start], z3.And(start < first + window, third < start + window, start >= first))),
    )


if __name__ == "__main__":
    proofs()
