"""The site: MyST pages, tables computed by `layouts` while it is built, no network."""

import gc
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "_ext"), str(DOCS / "live")]

gc.set_threshold(50_000, 20, 20)  # a collection walks all pages, and frees next to nothing

project = "cutedsl-gemm"
author = "the authors of cutedsl-gemm"
extensions = [
    "myst_parser",
    "layout_tables",
    "run_code",
    "wide_blocks",
    "tabular",
    "puzzles",
    "live_pages",
    "written_pages",
    "links",
    "home",
    "limits",
]
exclude_patterns = ["_build", "live", "node_modules"]
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block"]
html_theme = "furo"
html_title = "cutedsl-gemm"
html_static_path = ["_static"]
html_css_files = ["site.css", "ladder.css"]
html_favicon = "_static/icon.svg"
html_show_sphinx = html_show_copyright = False
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/playground.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
pygments_style = "tango"
pygments_dark_style = "native"
