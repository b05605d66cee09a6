"""The files of the live pages: Pyodide, and `layouts` and sympy as zips, copied into the site.

Pyodide comes from npm: `npm ci --prefix docs`, which `make docs` runs. Without it the site is still
built, and its live boxes say that Python did not start.

A page starts Python from a snapshot of its memory, with `layouts` or sympy imported: that takes a
second instead of six. Node makes the snapshots. Those of Python and sympy take half a minute and
stay in node_modules/.cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path
from types import ModuleType

import mpmath
import sympy
from sphinx.application import Sphinx
from sphinx.util import logging

import layouts

from playground_page import playground

SCRIPTS = (
    "python.mjs",
    "snapshot.mjs",
    "worker.mjs",
    "live.js",
    "names.js",
    "playground.js",
    "playground.css",
)
PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)


def copy(app: Sphinx, error: Exception | None) -> None:
    """Writes the playground and the folder `live` next to the pages."""
    if error is None and app.builder.format == "html":
        write(Path(app.srcdir), Path(app.outdir))


def write(source: Path, site: Path) -> None:
    """Writes the playground and the folder `live` from the docs `source` into the folder `site`."""
    live = site / "live"
    live.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        shutil.copy(source / "live" / name, live)
    template = (source / "live" / "playground.html").read_text()
    (site / "playground.html").write_text(playground(template))
    modules = source / "node_modules"
    if not (modules / "pyodide").is_dir():
        logging.getLogger(__name__).info("no Pyodide (npm ci --prefix docs): no live boxes")
        return
    (live / "pyodide").mkdir(exist_ok=True)
    for name in PYODIDE:
        shutil.copy(modules / "pyodide" / name, live / "pyodide")
    write_python(source / "live", modules, live)


def write_python(source: Path, modules: Path, live: Path) -> None:
    """Writes Python with sympy, and Python with `layouts`, into the folder `live`.

    Each is a zip of packages, and the memory of a Python that has imported them.
    """
    version = json.loads((modules / "pyodide" / "package.json").read_text())["version"]
    cache = modules / ".cache" / f"pyodide-{version}"
    cache.mkdir(parents=True, exist_ok=True)
    python = cache / "python.bin.gz"
    if not python.exists():
        snapshot(live, None, None, "", python)
    symbols = cache / f"sympy-{sympy.__version__}-{mpmath.__version__}.zip"
    if not symbols.exists():
        packed = live / "sympy.zip"
        packed.write_bytes(zipped(sympy, Path(mpmath.__file__).parent))
        snapshot(live, python, packed, "import sympy", symbols.with_suffix(".bin.gz"))
        shutil.copy(packed, symbols)
    shutil.copy(symbols, live / "sympy.zip")
    shutil.copy(symbols.with_suffix(".bin.gz"), live / "sympy.bin.gz")
    packed, sources = live / "layouts.zip", zipped(layouts, source / "answer.py")
    stamp, digest = live / "layouts.sha256", hashlib.sha256(sources).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        packed.write_bytes(sources)
        compiling = (source / "bytecode.py").read_text() + "compile_archive('/lib/layouts.zip')\n"
        prepared = f"{compiling}import answer; answer.prepare()"
        snapshot(live, python, packed, prepared, live / "layouts.bin.gz")
        stamp.write_text(digest)


def snapshot(live: Path, start: Path | None, archive: Path | None, code: str, to: Path) -> None:
    """Runs `code` after the snapshot `start`, with an archive on its path; its memory goes to `to`.

    The program imports the copy of Pyodide in `live`.
    """
    draft = to.with_name(f"{to.name}.{os.getpid()}")  # another build may be at the same work
    arguments = [live / "snapshot.mjs", start or "", archive or "", code, draft]
    try:
        subprocess.run(["node", *arguments], check=True)
        draft.replace(to)
    finally:
        draft.unlink(missing_ok=True)


def zipped(package: ModuleType, beside: Path) -> bytes:
    """A zip of a package without its tests, and of the file or package `beside` it."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in (Path(str(package.__file__)).parent, beside):
            for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
                name = file.relative_to(source.parent)
                if not {"tests", "benchmarks"} & {*name.parts}:
                    archive.write(file, name)
    return packed.getvalue()


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.connect("build-finished", copy)
    app.add_js_file("../live/live.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
