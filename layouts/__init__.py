"""CuTe's layout algebra in pure Python: layouts, swizzles, and the operations on them.

>>> from layouts import Layout, Swizzle, composition
>>> tile = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
>>> print(tile, tile(1, 0))
S<3,3,3> o 0 o (8,64):(64,1) 72

Its packages, each of which imports only from those above it:

    values       what a layout is made of, and what it is
    algebra      layouts from layouts
    notation     text to layouts
    proof        statements about layouts, and how they are decided
    hardware     instructions, fragments, banks, sectors, swizzle synthesis
    explanation  one operation, step by step
    draw         pictures: text, HTML, SVG, LaTeX
"""

from importlib import import_module

from . import algebra, values
from .algebra import *
from .errors import LayoutError as LayoutError
from .values import *

TYPE_CHECKING = False  # type checkers take it for typing's, whose import costs as much as the rest
if TYPE_CHECKING:
    from .draw import *
    from .explanation import *
    from .hardware import *
    from .notation import *
    from .proof import *

__version__ = "0.1.0"

#: The packages that load when one of their names is first used.
_LAZY = ("notation", "proof", "hardware", "draw", "explanation")


def __getattr__(name: str) -> object:
    """A name of a package that loads lazily: `import layouts` takes milliseconds."""
    if name == "__all__":
        return __dir__()
    if name.startswith("__"):
        raise AttributeError(f"module 'layouts' has no attribute {name!r}")
    for package in _LAZY:
        module = import_module(f".{package}", __name__)
        if name in module.__all__:
            found = globals()[name] = getattr(module, name)
            return found
    raise AttributeError(f"module 'layouts' has no attribute {name!r}")


def __dir__() -> list[str]:
    packages = (values, algebra, *(import_module(f".{package}", __name__) for package in _LAZY))
    return sorted(["LayoutError", *(name for package in packages for name in package.__all__)])
