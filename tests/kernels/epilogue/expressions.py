"""Random epilogues, as source: a failing example prints as the function that a user would write.

    lambda acc, row: (F.gelu(acc + row), (acc * row).sum(dim=1))

Values stay small, and no argument is outside of a function's domain. Where a function jumps (a
comparison, a rounding), a small error before it may be a large one after it: `smooth` leaves those
out.
"""

from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from hypothesis import strategies as st

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace

UNARY = (
    *("(-{})", "torch.abs({})", "torch.tanh({})", "torch.sigmoid({})", "torch.erf({})"),
    *("F.relu({})", "F.silu({})", "F.gelu({})", "F.gelu({}, approximate='tanh')"),
    *(
        "F.softplus({})",
        "F.leaky_relu({}, 0.1)",
        "F.hardswish({})",
        "F.elu({})",
        "torch.special.ndtr({})",
    ),
    *("torch.exp(-{}.abs())", "torch.log(1 + {}.abs())", "torch.sqrt({}.abs() + 1)"),
    *("torch.rsqrt({}.square() + 1)", "{}.clamp(-2, 3)", "(torch.tanh({}) ** 3)"),
    *("(0.5 * {})", "(1 - {})", "(2 / ({}.abs() + 1))", "({} - 0.25)"),
)
BINARY = (
    *("({} + {})", "({} - {})", "(torch.tanh({}) * {})", "({} / (1 + {}.abs()))"),
    *("torch.maximum({}, {})", "torch.minimum({}, {})", "torch.lerp({}, {}, 0.25)"),
    "({}.detach() * {})",
)
JUMPS = (
    *("torch.where({0} > {1}, {0}, -{1})", "torch.where(({0} < 0) | ({1} >= 0.5), {1}, {0})"),
    *("torch.where(~({0} <= {1}), {1}.tanh(), {0})", "(({} < {}) + 0.5)", "({}.bfloat16() + {})"),
)
REDUCTIONS = "{}.sum(dim=1)", "{}.amax(dim=0)", "torch.amin({}, 1)", "torch.sum({}, dim=0)"
ROUNDED = "{}.float()", "{}.bfloat16()", "{}.half()"
OPERANDS = {
    "row": EpilogueOperand("row", ("N",)),
    "column": EpilogueOperand("column", ("M",)),
    "matrix": EpilogueOperand("matrix", ("M", "N")),
    "turned": EpilogueOperand("turned", ("M", "N"), row_major=False),
    "scalar": EpilogueOperand("scalar"),
    "alpha": EpilogueOperand("alpha", by_value=True),
}
SHAPES = {"row": "N", "column": "M1", "matrix": "MN", "turned": "MN", "scalar": "", "alpha": ""}


@dataclass(frozen=True)
class Expression:
    """An epilogue's source, and what it is called with."""

    source: str
    operands: tuple[str, ...]  # of OPERANDS
    accumulators: int = 1

    @property
    def function(self):
        return eval(self.source, {"torch": torch, "F": F})

    @property
    def epilogue(self) -> Epilogue:
        """The function, traced."""
        return trace(self.function, [OPERANDS[each] for each in self.operands], self.accumulators)

    def tensors(self, m, n, seed=0):
        """Operands by name: tensors that broadcast to (m, n), and a number."""
        extents, random = {"M": m, "N": n, "1": 1}, torch.Generator().manual_seed(seed)
        made = {}
        for name in self.operands:
            shape = [extents[mode] for mode in SHAPES[name]]
            made[name] = torch.randn(shape, generator=random)
            if name == "turned":
                made[name] = made[name].mT.contiguous().mT
            if name == "alpha":
                made[name] = float(made[name])
        return made

    def torch(self, accumulators, operands):
        """What torch computes, a tuple: of the accumulators and operands that `tensors` made."""
        made = self.function(*accumulators, **operands)
        return made if isinstance(made, tuple) else (made,)


@cache
def _values(tensors, binary):
    """Sources of a value of these tensors."""
    return st.recursive(
        st.sampled_from(tensors),
        lambda inner: st.one_of(
            st.builds(str.format, st.sampled_from(UNARY), inner),
            st.builds(str.format, st.sampled_from(binary), inner, inner),
        ),
        max_leaves=6,
    )


@st.composite
def expressions(draw, smooth=False, reductions=True, operands=tuple(OPERANDS), accumulators=1):
    """Expressions of up to three results, of up to three operands, all of which are used."""
    used = draw(st.lists(st.sampled_from(operands), max_size=3, unique=True))
    gates = ["acc"] if accumulators == 1 else ["gate", "up"]
    tensors = gates + [name for name in used if name != "alpha"]
    binary = BINARY if smooth else BINARY + JUMPS
    values = _values(tuple(tensors), binary)
    everything = " + ".join(f"{name} * {0.5 + 0.25 * i}" for i, name in enumerate(gates + used))
    results = [f"({draw(values)} + ({everything}))"]
    endings = ("{} * acc", *REDUCTIONS * reductions, *ROUNDED)
    if accumulators == 2:
        endings = endings[1:]
    for _ in range(draw(st.integers(0, 2))):
        value = f"({draw(values)} + {gates[0]})"
        results.append(draw(st.sampled_from(endings)).format(value))
    parameters = ", ".join(gates + used)
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return Expression(f"lambda {parameters}: {returned}", tuple(used), accumulators)
