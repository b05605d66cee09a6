"""Shapes whose rows are not multiples of 16 bytes: TMA cannot read or store them in place.

M, N and K are log-uniform in 64..8192, of products of at least 1e9 flops; N or K is not a multiple
of 8. B is contiguous along N or K, equally likely. gemm copies the operands that TMA cannot read,
and threads store the rows of C that TMA cannot.
"""

from __future__ import annotations

from random import Random

from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from cutedsl_gemm.measure.distribution import SMALL, Classes, Population, Product, log_uniform

LEAST, MOST = 64, 8192
FLOPS = 1e9  # at least
ELEMENTS = 1e8  # of A, B and C together, at most
NAMED = (
    Product((2047, 2047, 2047), "N"),
    Product((2047, 2047, 2047), "K"),
    Product((1000, 1000, 4097), "N"),
    Product((4096, 50257, 768), "N"),  # the logits of GPT-2
    Product((2668, 4419, 79), "N"),
)


def draw(count: int, seed: int) -> list[Product]:
    """`count` random products, the same for the same seed.

    >>> [(*each.mnk, each.b_major) for each in draw(2, seed=3)]
    [(200, 8021, 627, 'N'), (1393, 4319, 810, 'N')]
    """
    random = Random(seed).random  # whose sequence no version of Python changes
    drawn: list[Product] = []
    while len(drawn) < count:
        m, n, k = (round(log_uniform(LEAST, MOST, random())) for _ in range(3))
        odd = n % PER_VECTOR or k % PER_VECTOR
        if odd and 2 * m * n * k >= FLOPS and m * n + m * k + n * k < ELEMENTS:
            drawn.append(Product((m, n, k), "K" if random() < 0.5 else "N"))
    return drawn


def stored_by_tma(product: Product) -> bool:
    """Whether the rows of C are multiples of 16 bytes."""
    return product.mnk[1] % PER_VECTOR == 0


def a_in_place(product: Product) -> bool:
    """Whether the rows of A are multiples of 16 bytes."""
    return product.mnk[2] % PER_VECTOR == 0


B_MAJORS: Classes = {
    "B contiguous along K": lambda product: product.b_major == "K",
    "B contiguous along N": lambda product: product.b_major == "N",
}
# Classes overlap.
CLASSES: Classes = {
    "all": lambda product: True,
    **B_MAJORS,
    "A read in place": a_in_place,
    "A copied": lambda product: not a_in_place(product),
    "C stored by TMA": stored_by_tma,
    "C stored by threads": lambda product: not stored_by_tma(product),
    **SMALL,
}
POPULATION = Population(
    "random odd shapes",
    draw,
    count=50,
    seed=3,
    classes=CLASSES,
    colours=(*B_MAJORS,),
    named=NAMED,
)
