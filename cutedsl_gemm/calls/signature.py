"""What a call with an epilogue depends on, and the cache of what was made for each signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from torch import Tensor

from cutedsl_gemm.calls.call import Tile
from cutedsl_gemm.calls.results import Results
from cutedsl_gemm.inputs.operands import Value
from cutedsl_gemm.inputs.problem import WIDEST_ALIGNMENT
from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.inputs.request import Fixed, Function
from cutedsl_gemm.inputs.transforms import check_not_jit_traced
from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.kernels.epilogue.traced import function_key

Values: TypeAlias = Mapping[str, Value]  # of the operands, by name
Made = TypeVar("Made")


class Options(NamedTuple):
    """What gemm takes beside tensors; see there."""

    tile: Tile | None = None
    kernel: str | None = None
    tune: bool = False
    invariant: bool = False


DEFAULTS = Options()


def remembered(
    known: dict[Any, Made],
    make: Callable[..., Made],
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Values,
    out: Results | None,
    options: Options,
) -> Made:
    """The result of `make` for these arguments, or for earlier ones of the same signature."""
    key = function if isinstance(function, (Fixed, Epilogue)) else function_key(function)
    signature: Any = None
    if key is not None:
        try:
            signature = (
                key,
                options,
                signature_of(a),
                signature_of(b),
                tuple([(name, signature_of(each)) for name, each in operands.items()]),
                None if out is None else tuple([signature_of(each) for each in out]),
            )
            return known[signature]
        except KeyError:
            pass
        except (AttributeError, TypeError, RuntimeError):
            signature = None  # an argument is not a dense tensor: `make` raises with the reason
    check_not_jit_traced()
    made = make(a, b, function, operands, out, options)
    return made if signature is None else remember(known, signature, made)


def signature_of(value: Value) -> Any:
    """The properties of a tensor on which a call depends; of a number, its type.

    RuntimeError for a tensor without memory.
    """
    if not isinstance(value, Tensor):
        return type(value)
    address = value.data_ptr()
    if not address and (value.numel() or value.is_meta):
        raise RuntimeError
    # fmt: off
    return (
        value.shape, value.stride(), value.dtype, value.get_device(), value.is_neg(),
        address % WIDEST_ALIGNMENT,
    )
    # fmt: on
