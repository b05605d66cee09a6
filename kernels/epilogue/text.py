"""An epilogue as one line of JSON, and back: what a torch operator's schema carries."""

from __future__ import annotations

import json
from functools import lru_cache

from cutedsl_gemm.kernels.epilogue.expression import (
    Epilogue,
    EpilogueError,
    EpilogueOperand,
    Instruction,
    Result,
)

REMEMBERED = 4096  # epilogues


@lru_cache(REMEMBERED)
def to_text(epilogue: Epilogue) -> str:
    """The epilogue as text. Equal epilogues have equal texts.

    >>> from cutedsl_gemm.kernels.epilogue.expression import PLAIN
    >>> to_text(PLAIN)
    '[[["acc", [], 0]], [], [[0, null, null, null]], 1]'
    """
    program = [[each.operation, each.arguments, each.value] for each in epilogue.program]
    operands = [list(vars(each).values()) for each in epilogue.operands]
    results = [list(vars(each).values()) for each in epilogue.results]
    return json.dumps([program, operands, results, epilogue.accumulators])


@lru_cache(REMEMBERED)
def from_text(text: str) -> Epilogue:
    """The epilogue of a text of `to_text`.

    EpilogueError if it is the text of none.

    >>> from cutedsl_gemm.kernels.epilogue.expression import PLAIN
    >>> from_text(to_text(PLAIN)) == PLAIN
    True
    """
    try:
        program, operands, results, accumulators = json.loads(text)
        epilogue = Epilogue(
            tuple(Instruction(name, tuple(given), value) for name, given, value in program),
            tuple(EpilogueOperand(name, tuple(modes), *rest) for name, modes, *rest in operands),
            tuple(Result(*fields) for fields in results),
            accumulators,
        )
    except (TypeError, ValueError) as reason:
        raise EpilogueError(
            f"{text!r:.60} is not the text of an epilogue: {reason}; it must be one of to_text"
        ) from None
    return epilogue.check()
