"""The fields of the words, as bits.

The promise (src/algorithm/traits.rs): a word is below 2^62, and time is in its highest bits, so a later time is a greater word.
"""

import z3

from kit import Claim

WORD = 62
BUCKET = [60, 1, 1]
PERIOD = [14, 48]
SLOTS = [42, 20]
BLOCK = [40, 1, 5, 16]


def unit_ring(unit_bits, length):
    """The widths of the fields of a unit ring: tick, marks, partial."""
    return [WORD - unit_bits - length, length, unit_bits]


# specification


def packed(widths, values):
    """The word of these values, of which the first is in the highest bits."""
    word = values[0]
    for width, value in zip(widths[1:], values[1:]):
        word = (word << width) | value
    return word


def field(widths, word, index):
    """The value of a field."""
    lower = sum(widths[index + 1 :])
    shifted = z3.LShR(word, lower) if isinstance(word, z3.BitVecRef) else word >> lower
    return shifted & ((1 << widths[index]) - 1)


# proof


def prove_fields(claim, widths):
    values = [z3.BitVec(f"value{index}", 64) for index in range(len(widths))]
    others = [z3.BitVec(f"other{index}", 64) for index in range(len(widths))]
    fit = [
        z3.ULT(value, z3.BitVecVal(1 << width, 64))
        for some in (values, others)
        for value, width in zip(some, widths, strict=True)
    ]
    word, other = packed(widths, values), packed(widths, others)
    kept = [field(widths, word, index) == value for index, value in enumerate(values)]
    later = z3.Implies(z3.ULT(values[0], others[0]), z3.ULT(word, other))
    claim.case(fit, z3.And(*kept, later, z3.ULT(word, z3.BitVecVal(1 << WORD, 64)), sum(widths) == WORD))


def proofs(lengths=range(1, WORD)):
    for name, widths in (("a bucket", BUCKET), ("a calendar", PERIOD), ("slots", SLOTS), ("a block", BLOCK)):
        with Claim(f"fields: a word of {name} has all fields below 2^62, and a later time is a greater word") as claim:
            prove_fields(claim, widths)
    with Claim("fields: so has a word of a unit ring, for every unit and every length of the string") as claim:
        for length in lengths:
            for unit_bits in range(WORD - length):
                prove_fields(claim, unit_ring(unit_bits, length))


if __name__ == "__main__":
    proofs()
