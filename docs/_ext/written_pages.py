"""Pages that the library writes while the site is built: the ladder, the plots, the reference.

They are in docs/written, which git ignores.  A new kernel or public function has its page at once.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from sphinx.application import Sphinx

import cutedsl_gemm
import layouts
from cutedsl_gemm.measure.report import files, plot, read
from cutedsl_gemm.select.registry import KERNELS

from ladder_pages import ladder, rung
from reference_pages import pages as reference

# The arguments of bench, if they are not --shapes and the name of the CSV.
ARGUMENTS = {"sustained": "--sustained", "weights": "--sustained --shapes weights"}


def write(app: Sphinx) -> None:
    """Writes every page that differs from the one on disk, and removes pages that are no more."""
    folder = Path(app.srcdir) / "written"
    pages = {f"rungs/{name}.md": rung(kernel) for name, kernel in KERNELS.items()}
    pages["ladder.md"] = ladder()
    pages["plots.md"] = plots(Path(app.srcdir) / "performance", folder)
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


def plots(measured: Path, folder: Path) -> str:
    """The page of plots, one for each CSV in docs/performance."""
    parts = [
        "# Performance plots",
        "Data and method: [Performance](../performance/README.md).",
    ]
    folder.mkdir(exist_ok=True)
    for file in files(measured):
        title = f"TFLOP/s, bench {ARGUMENTS.get(file.stem, f'--shapes {file.stem}')}"
        plot(read(file), title, folder / f"{file.stem}.svg")
        parts.append(f"![{file.stem}]({file.stem}.svg)")
    return "\n\n".join(parts) + "\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    importlib.invalidate_caches()
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
