"""The expected contents of a page, computed from its JSON report."""

import re
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal

NBSP = "\u00a0"


def number(figure):
    return f"{figure:,}"


def percent(part, whole):
    if part == 0 or whole == 0:
        return f"0{NBSP}%"
    if part == whole:
        return f"100{NBSP}%"
    share = Decimal(part) * 100 / Decimal(whole)
    fine = share.quantize(Decimal("0.01"), ROUND_HALF_UP)
    if fine == 0:
        return f"<{NBSP}0.01{NBSP}%"
    if fine < 10:
        return f"{fine}{NBSP}%"
    coarse = share.quantize(Decimal("0.1"), ROUND_HALF_UP)
    return f">{NBSP}99.9{NBSP}%" if coarse >= 100 else f"{coarse}{NBSP}%"


def moment(ms):
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S")


def figures(text):
    return [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*", text)]


def count_at(points, ms):
    """The count at a time: the last one that began at or before it."""
    return next((count for at, count in reversed(points) if at <= ms), 0)


def one_per_cent(tried):
    """The lowest limit from which on at most 1 % is denied, with the number of denials. None if no limit does."""
    fits = []
    for limit, denied in reversed(list(zip(tried["limits"], tried["denied"]))):
        if Decimal(denied) / tried["requests"] > Decimal("0.01"):
            break
        fits.append((limit, denied))
    return min(fits, default=None)
