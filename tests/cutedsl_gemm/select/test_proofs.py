"""The plans that ship are proved: their statements, and what the algebra does to their layouts."""

from itertools import cycle, product

import pytest
from hypothesis import settings

import layouts as L
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES, plans
from layouts import ComposedLayout, Layout, LayoutError, postcondition, prove, size

#: The operations by which kernels, executors and docs take such layouts apart, with operands.
OPERATIONS = (
    (L.coalesce,),
    (L.flatten,),
    (L.right_inverse,),
    (L.left_inverse,),
    (L.nullspace,),
    (L.zipped_divide, (8, 8)),
    (L.flat_divide, (None, 16)),
    (L.local_tile, (8, 8), (1, 2)),
    (L.recast, 16, 8),
    (L.recast, 16, 32),
    (L.tile_to_shape, (512, 256)),
)


def shipped():
    """Every plan in CI; otherwise one for every fifth candidate, the majors in turn.

    How many blocks split K changes no layout: two stand for all.
    """
    if settings().max_examples >= 100:
        return [plan for plan in plans() if plan.splits <= 2]
    problems = [
        Problem.dense(4096, 4096, 4096, majors=majors) for majors in product(("K", "MN"), repeat=2)
    ]
    return [
        each.plan(problem)
        for each, problem in zip(CANDIDATES[::5], cycle(problems), strict=False)
        if each.serves(problem.majors)
    ]


@pytest.fixture(scope="module")
def proofs():
    """The proofs of these plans, each statement once."""
    return {proof.statement: proof for plan in shipped() for proof in plan.proofs()}


def test_every_statement_of_every_plan_that_ships_is_proved_and_verifies(proofs):
    assert len(proofs) > len(CANDIDATES) / 10
    for statement, proof in proofs.items():
        assert proof, str(proof)
        assert proof.verify(), str(statement)


def test_operations_on_the_layouts_of_these_plans_return_what_they_promise(proofs):
    layouts = {field for statement in proofs for field in statement._fields()}
    layouts = {x for x in layouts if isinstance(x, (Layout, ComposedLayout))}
    layouts = {x for x in layouts if isinstance(size(x), int)}  # not those of any number of tiles
    most = 6144 if settings().max_examples >= 100 else 0  # these are compared index by index
    layouts = {x for x in layouts if size(x) <= most or size(x) & (size(x) - 1) == 0}
    proved = 0
    for layout in layouts:
        for operation, *operands in OPERATIONS:
            try:
                statement = postcondition(operation, layout, *operands)
            except LayoutError:  # a tile of another shape, or of no elements of 16 bits
                continue
            proof = prove(statement)
            assert proof, str(proof)
            assert proof.verify(), f"{operation.__name__} of {layout}, {size(layout)} elements"
            proved += 1
    assert proved > 3 * len(layouts)
