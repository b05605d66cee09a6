"""What the live pages need, copied into the site: Pyodide, and `layouts` as a zip.

Pyodide comes from npm (`npm ci --prefix docs`, as `make docs` does); where it is missing the site
is built all the same, and its live boxes say that Python did not start.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

import layouts
from layouts.expression import evaluate
from layouts.shown import picture

DEFAULT = "S<3,3,3> o 0 o (8,64):(64,1)"  # of playground.html
PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)


def copy(app: Sphinx, error: Exception | None) -> None:
    """The playground and the folder `live`, beside the pages."""
    if error is not None or app.builder.format != "html":
        return
    source, site = Path(app.srcdir), Path(app.outdir)
    live = site / "live"
    live.mkdir(exist_ok=True)
    for name in ("worker.mjs", "live.js", "playground.js"):
        shutil.copy(source / "live" / name, live)
    (site / "playground.html").write_text(playground(source / "live" / "playground.html"))
    pack(source / "live" / "answer.py", live / "layouts.zip")
    found = source / "node_modules" / "pyodide"
    if not found.is_dir():
        logging.getLogger(__name__).info("no Pyodide (npm ci --prefix docs): no live boxes")
        return
    (live / "pyodide").mkdir(exist_ok=True)
    for name in PYODIDE:
        shutil.copy(found / name, live / "pyodide")


def playground(template: Path) -> str:
    """The page with the table of its first expression, and the accesses to choose from."""
    options = "".join(f"<option>{name}</option>" for name in layouts.INSTRUCTIONS)
    seen = picture(evaluate(DEFAULT))
    assert seen is not None
    page = template.read_text()
    for place, text in (("accesses", options), ("default table", seen.html())):
        mark = f"<!-- {place} -->"
        assert mark in page, mark
        page = page.replace(mark, text)
    return page


def pack(answer: Path, path: Path) -> None:
    """The package `layouts` and answer.py, as Pyodide unpacks them."""
    package = Path(layouts.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(answer, answer.name)
        for file in sorted(package.rglob("*.py")):
            packed.write(file, Path("layouts") / file.relative_to(package))


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.connect("build-finished", copy)
    app.add_js_file("../live/live.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
