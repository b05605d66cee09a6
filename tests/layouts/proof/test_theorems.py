"""Theorems about swizzles, for all of them and for given ones."""

from hypothesis import given
from hypothesis import strategies as st

from layouts import (
    Swizzle,
    SwizzleAlignment,
    SwizzleInvolution,
    prove,
)

SWIZZLES = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)).filter(
    lambda t: t[0] == 0 or abs(t[2]) >= t[0]
)


def test_theorems_for_all_swizzles():
    for theorem in (SwizzleInvolution(), SwizzleAlignment()):
        proof = prove(theorem)
        assert proof
        assert proof.verify()
        assert all(lemma.verify() for lemma in proof.certificates)
        assert "but their sum is -1" in str(proof)


@given(SWIZZLES)
def test_theorems_for_given_ones(parameters):
    swizzle = Swizzle(*parameters)
    assert prove(SwizzleInvolution(swizzle)).verify()
    assert prove(SwizzleAlignment(swizzle)).verify()
    period = 1 << swizzle.base + swizzle.bits + abs(swizzle.shift)
    for x in range(64):
        assert swizzle(swizzle(x)) == x
        assert swizzle(x) % (1 << swizzle.base) == x % (1 << swizzle.base)
        assert swizzle(x) // swizzle.block == x // swizzle.block
        assert swizzle(x + 3 * period) == swizzle(x) + 3 * period
