"""Random shapes whose rows are multiples of 16 bytes, with a column-major B.

M, N and K are log-uniform in 64..16384, rounded to multiples of q. A shape's q is drawn from 8, 8,
16, 64 and 128, so that many leading strides are not multiples of 128 bytes.
"""

from __future__ import annotations

from functools import partial
from random import Random

from cutedsl_gemm.measure.distribution import SMALL, Classes, Population, Product, log_uniform
from cutedsl_gemm.measure.report import Shape

LEAST, MOST = 64, 16384
MULTIPLES = 8, 8, 16, 64, 128  # of which an extent is one; equally likely
MANY_ROWS = 256


def draw(count: int, seed: int) -> list[Shape]:
    """`count` random (M, N, K), the same for the same seed.

    >>> draw(2, seed=1)
    [(7032, 4424, 264), (768, 2368, 5072)]
    """
    random = Random(seed).random  # whose sequence no version of Python changes
    shapes: list[Shape] = []
    for _ in range(count):
        q = MULTIPLES[int(len(MULTIPLES) * random())]
        m, n, k = (multiple(q, LEAST, MOST, random()) for _ in range(3))
        shapes.append((m, n, k))
    return shapes


def multiple(q: int, least: int, most: int, share: float) -> int:
    """The multiple of q nearest to `log_uniform`.

    >>> multiple(8, 64, 16384, 0.5)
    1024
    """
    return max(1, round(log_uniform(least, most, share) / q)) * q


def products(count: int, seed: int) -> list[Product]:
    """`count` random products of the shapes that `draw` gives."""
    return [*map(Product, draw(count, seed))]


def line_bytes(mnk: Shape) -> int:
    """The class of the leading stride of A and B, K elements: a multiple of 128, 32 or 16 bytes."""
    return next(each for each in (128, 32, 16) if 2 * mnk[2] % each == 0)


def leads(line: int, product: Product) -> bool:
    """Whether a product is of a class of leading strides."""
    return line_bytes(product.mnk) == line


LINES = {line: f"leading strides of {line} bytes" for line in (128, 32, 16)}
# Classes overlap: a shape is in one of LINES, and may be in the others.
CLASSES: Classes = {
    "all": lambda product: True,
    **{name: partial(leads, line) for line, name in LINES.items()},
    **SMALL,
    f"M at least {MANY_ROWS}": lambda product: product.mnk[0] >= MANY_ROWS,
}
POPULATION = Population(
    "random shapes", products, count=150, seed=2, classes=CLASSES, colours=(*LINES.values(),)
)
