"""ConflictFree: proved for a swizzled tile, and refuted by two lanes without the swizzle."""

from layouts import (
    ConflictFree,
    parse,
    prove,
)


def test_conflict_free():
    tile = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    proof = prove(ConflictFree(tile[0], 16, unit=16))
    assert proof
    assert "at every base" in str(proof)
    assert proof.verify()
    proof = prove(ConflictFree(tile.outer[0], 16, unit=16))
    assert proof.counterexample.index == (0, 1)
    assert proof.verify()
    assert str(proof).startswith("refuted: 8 lanes that access 16 bytes each at 8:64")
