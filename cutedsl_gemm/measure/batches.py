"""Batches of products: gemm compared with torch.bmm.

The number of matrices is log-uniform in 2..256; M, N and K are log-uniform in 16..4096, of batches
of at least 1e8 flops. They are multiples of 8, except in three of ten batches, whose rows TMA
cannot read or store in place. B is contiguous along N or K, equally likely.
"""

from __future__ import annotations

from random import Random

from cutedsl_gemm.measure.distribution import Classes, Population, Product, few_rows, log_uniform
from cutedsl_gemm.measure.odd_shapes import B_MAJORS, a_in_place, stored_by_tma
from cutedsl_gemm.measure.random_shapes import multiple

LEAST, MOST = 16, 4096
FEWEST, MOST_MATRICES = 2, 256
FLOPS = 1e8  # at least
ELEMENTS = 2.5e8  # of A, B and C together, at most
ODD = 0.3  # of the batches
NAMED = (
    Product((1024, 1024, 1024), "N", 32),
    Product((512, 512, 128), "N", 64),
    Product((128, 128, 128), "N", 256),
    Product((2048, 2048, 64), "N", 16),
    Product((64, 4096, 128), "N", 128),
    Product((128, 512, 128), "N", 128),  # latent attention: a head each, of 128 tokens
    Product((64, 5760, 2880), "N", 32),  # experts, of 64 tokens each
    Product((256, 8192, 5120), "N", 16),
    Product((1023, 1023, 128), "K", 64),  # attention, of an odd sequence
    Product((1023, 128, 1023), "N", 64),
)


def draw(count: int, seed: int) -> list[Product]:
    """`count` random batches, the same for the same seed.

    >>> [(each.batch, *each.mnk, each.b_major) for each in draw(2, seed=3)]
    [(6, 328, 128, 456, 'K'), (20, 1651, 218, 548, 'N')]
    """
    random = Random(seed).random  # whose sequence no version of Python changes
    drawn: list[Product] = []
    while len(drawn) < count:
        batch = round(log_uniform(FEWEST, MOST_MATRICES, random()))
        m, n, k = (multiple(8, LEAST, MOST, random()) for _ in range(3))
        if random() < ODD:
            m, n, k = (extent - int(8 * random()) for extent in (m, n, k))
        elements = batch * (m * n + m * k + n * k)
        if 2 * batch * m * n * k >= FLOPS and elements < ELEMENTS:
            drawn.append(Product((m, n, k), "K" if random() < 0.5 else "N", batch))
    return drawn


def in_place(product: Product) -> bool:
    """Whether TMA reads and stores all matrices where they are."""
    return a_in_place(product) and stored_by_tma(product)


def mostly_b(product: Product) -> bool:
    """Whether B has more elements than A and C together, as the weights of experts do."""
    m, n, k = product.mnk
    return n * k > m * (n + k)


# Classes overlap.
CLASSES: Classes = {
    "all": lambda product: True,
    "rows of multiples of 16 bytes": in_place,
    "other rows": lambda product: not in_place(product),
    **B_MAJORS,
    "B larger than A and C": mostly_b,
    "M or N at most 128": few_rows,
}
POPULATION = Population(
    "random batches",
    draw,
    count=100,
    seed=4,
    classes=CLASSES,
    colours=(*B_MAJORS,),
    named=NAMED,
)
