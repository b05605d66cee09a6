"""Pages that the library writes while the site is built: the ladder, the plots, the reference.

They are in docs/written, which git ignores.  A new kernel or public function has its page at once.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from sphinx.application import Sphinx

import cutedsl_gemm
import layouts
from cutedsl_gemm.select.registry import KERNELS

from ladder_pages import ladder, rung
from plots import plots
from reference_pages import pages as reference


def write(app: Sphinx) -> None:
    """Writes every page that differs from the one on disk, and removes pages that are no more."""
    folder = Path(app.srcdir) / "written"
    pages = {f"rungs/{name}.md": rung(kernel) for name, kernel in KERNELS.items()}
    pages["ladder.md"] = ladder()
    pages["plots.md"] = plots(Path(app.srcdir) / "performance")
    for package in (layouts, cutedsl_gemm):
        pages |= reference(package)
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.rglob("*.md"):
        if str(path.relative_to(folder)) not in pages:
            path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    importlib.invalidate_caches()
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
