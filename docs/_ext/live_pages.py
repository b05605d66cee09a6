"""The files of the live pages: Pyodide, and `layouts` and sympy as zips, copied into the site.

Pyodide comes from npm: `npm ci --prefix docs`, which `make docs` runs. Without it the site is still
built, and its live boxes say that Python did not start.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from types import ModuleType

import mpmath
import sympy
from sphinx.application import Sphinx
from sphinx.util import logging

import layouts
from layouts.draw.summary import picture
from layouts.notation.expression import evaluate

DEFAULT = "S<3,3,3> o 0 o (8,64):(64,1)"  # the first expression of playground.html
PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)


def copy(app: Sphinx, error: Exception | None) -> None:
    """Writes the playground and the folder `live` next to the pages."""
    if error is not None or app.builder.format != "html":
        return
    source, site = Path(app.srcdir), Path(app.outdir)
    live = site / "live"
    live.mkdir(exist_ok=True)
    for name in ("worker.mjs", "live.js", "playground.js"):
        shutil.copy(source / "live" / name, live)
    (site / "playground.html").write_text(playground(source / "live" / "playground.html"))
    pack(live / "layouts.zip", layouts, source / "live" / "answer.py")
    pack(live / "sympy.zip", sympy, Path(mpmath.__file__).parent)
    found = source / "node_modules" / "pyodide"
    if not found.is_dir():
        logging.getLogger(__name__).info("no Pyodide (npm ci --prefix docs): no live boxes")
        return
    (live / "pyodide").mkdir(exist_ok=True)
    for name in PYODIDE:
        shutil.copy(found / name, live / "pyodide")


def playground(template: Path) -> str:
    """The page, with the table of its first expression and the list of instructions."""
    options = "".join(f"<option>{name}</option>" for name in layouts.INSTRUCTIONS)
    table = picture(evaluate(DEFAULT))
    assert table is not None
    page = template.read_text()
    for place, text in (("accesses", options), ("default table", table.html())):
        mark = f"<!-- {place} -->"
        assert mark in page, mark
        page = page.replace(mark, text)
    return page


def pack(path: Path, package: ModuleType, beside: Path) -> None:
    """Zips a package without its tests, and the file or package `beside` it."""
    sources = Path(str(package.__file__)).parent, beside
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sources:
            for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
                name = file.relative_to(source.parent)
                if not {"tests", "benchmarks"} & {*name.parts}:
                    archive.write(file, name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.connect("build-finished", copy)
    app.add_js_file("../live/live.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
