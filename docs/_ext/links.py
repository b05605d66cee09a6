"""Links that nobody types: a source that a text cites leads there, a public name to its reference.

`SOURCES` is the one table of addresses outside the site; the directive `sources` shows it.  A
section of the PTX ISA that a page cites and the table lacks is a warning of the build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import cutedsl_gemm
import layouts

from reference_pages import addresses

PTX = "https://docs.nvidia.com/cuda/parallel-thread-execution/#"
CUTE = "https://docs.nvidia.com/cutlass/latest/media/docs/cpp/cute/"
DSL = "https://docs.nvidia.com/cutlass/latest/media/docs/pythonDSL/"


class Source(NamedTuple):
    """A work, what a text calls it (a regular expression, or nothing), and its address."""

    title: str
    cited: str
    address: str


class Section(NamedTuple):
    """A section of the PTX ISA 9.2: its number, and its anchor, which outlives the number."""

    number: str
    title: str
    anchor: str


SECTIONS = (
    Section("5.5.7", "Swizzling modes of TMA", "tensor-swizzling-modes"),
    Section("9.7.3.6", "fma", "floating-point-instructions-fma"),
    Section("9.7.9.8", "ld", "data-movement-and-conversion-instructions-ld"),
    Section("9.7.9.11", "st", "data-movement-and-conversion-instructions-st"),
    Section("9.7.9.25.3.1", "cp.async", "data-movement-and-conversion-instructions-cp-async"),
    Section(
        "9.7.14.5.1", "Fragments of mma.m8n8k4 with .f16", "warp-level-matrix-fragment-mma-884-f16"
    ),
    Section("9.7.14.5.14", "mma", "warp-level-matrix-instructions-mma"),
    Section("9.7.14.5.15", "ldmatrix", "warp-level-matrix-instructions-ldmatrix"),
    Section("9.7.14.5.16", "stmatrix", "warp-level-matrix-instructions-stmatrix"),
    Section("9.7.15.2", "Shapes of wgmma", "asynchronous-warpgroup-level-matrix-shape"),
    Section("9.7.15.5", "wgmma", "asynchronous-warpgroup-level-matrix-instructions"),
    Section(
        "9.7.15.5.1.1.1",
        "Fragments of wgmma.m64nNk16",
        "asynchronous-warpgroup-level-matrix-register-fragment-wgmma-64n16",
    ),
    Section(
        "9.7.15.5.1.2",
        "Layout of wgmma's operands in shared memory",
        "asynchronous-warpgroup-level-matrix-shared-memory-layout",
    ),
    Section(
        "9.7.15.5.1.2.2",
        "Descriptor of wgmma's operands",
        "asynchronous-warpgroup-level-matrix-shared-memory-layout-matrix-descriptor",
    ),
    Section("9.7.16", "tcgen05 and tensor memory", "tensorcore-5th-generation-instructions"),
)

SOURCES = {
    "CuTe": (
        Source("CuTe in C++: getting started", r"", f"{CUTE}00_quickstart.html"),
        Source("CuTe in C++: layouts", r"", f"{CUTE}01_layout.html"),
        Source("CuTe in C++: layout algebra", r"", f"{CUTE}02_layout_algebra.html"),
        Source("CuTe in C++: tensors", r"", f"{CUTE}03_tensor.html"),
        Source("CuTe in C++: MMA atoms", r"", f"{CUTE}0t_mma_atom.html"),
        Source("CuTe in C++: a GEMM, step by step", r"", f"{CUTE}0x_gemm_tutorial.html"),
        Source("The CuTe DSL", r"", f"{DSL}cute_dsl_general/dsl_introduction.html"),
        Source("PyCuTe, a reference in Python", r"", "https://github.com/NVlabs/CuTe"),
    ),
    "Papers": (
        Source(
            "Cris Cecka: CuTe Layout Representation and Algebra (2026), the whitepaper",
            r"[Ww]hitepaper \d[\d.]*\d",
            "https://arxiv.org/abs/2603.02298",
        ),
        Source(
            "Jay Shah: A note on the algebra of CuTe layouts (2024)",
            r"",
            "https://research.colfax-intl.com/a-note-on-the-algebra-of-cute-layouts/",
        ),
        Source(
            "Keren Zhou et al.: Linear Layouts (2025), the layouts of Triton",
            r"Triton['’]s linear layouts",
            "https://arxiv.org/abs/2505.23819",
        ),
    ),
    "PTX ISA": tuple(
        Source(
            f"{each.number}, {each.title}",
            rf"PTX ISA(?: 9\.2, section)? {re.escape(each.number)}(?!\.?\d)",
            PTX + each.anchor,
        )
        for each in SECTIONS
    ),
    "CUDA": (
        Source(
            "Best Practices Guide: coalesced access to global memory",
            r"",
            "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/"
            "index.html#coalesced-access-to-global-memory",
        ),
    ),
}

CITED = [source for group in SOURCES.values() for source in group if source.cited]
PATTERN = re.compile("|".join(f"({source.cited})" for source in CITED))
UNKNOWN = re.compile(r"PTX ISA \d+\.\d+\.\d[\d.]*\d")


class CitedSources(SphinxPostTransform):
    """Makes a link of each citation."""

    default_priority = 500

    def run(self, **_: object) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, (nodes.reference, nodes.literal, nodes.literal_block)):
                self._link(text)

    def _link(self, text: nodes.Text) -> None:
        parts: list[nodes.Node] = []
        words, end = text.astext(), 0
        for found in PATTERN.finditer(words):
            address = CITED[(found.lastindex or 1) - 1].address
            parts += [nodes.Text(words[end : found.start()])]
            parts += [nodes.reference("", found[0], refuri=address, internal=False)]
            end = found.end()
        for unknown in UNKNOWN.findall(PATTERN.sub("", words)):
            logging.getLogger(__name__).warning(
                "%s is not in SOURCES of docs/_ext/links.py", unknown, location=text.parent
            )
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(words[end:])])


class PublicNames(SphinxPostTransform):
    """Makes a link of a public name in backticks: of its first mention in each section."""

    default_priority = 501

    def run(self, **_: object) -> None:
        page = self.env.docname
        for section in self.document.findall(nodes.section):
            literals = list(_literals(section))
            known = _names(page) if literals else {}
            for literal in literals:
                address = known.pop(literal.astext().removesuffix("()"), None)
                if address and address.partition(".html")[0] != page.removeprefix("written/"):
                    link = nodes.reference(
                        "", "", refuri=_root(page) + address, internal=True, classes=["name"]
                    )
                    literal.replace_self(link)
                    link += literal


def _literals(section: nodes.section) -> Iterator[nodes.literal]:
    """The code in the text of a section, without its subsections, headings and links."""
    for child in section.children:
        if isinstance(child, (nodes.section, nodes.title)):
            continue
        for literal in child.findall(nodes.literal):
            if not isinstance(literal.parent, nodes.reference):
                yield literal


def _names(page: str) -> dict[str, str]:
    """The names that a page may use, and where their details are.

    The reference of a package uses its own names; other pages use those that one package has.
    """
    known: dict[str, str] = {}
    owner = next((package for package in _places() if page.startswith(f"written/{package}")), None)
    for package, names in _places().items():
        known |= {f"{package}.{name}": address for name, address in names.items()}
        others = {name for other in _places() if other != package for name in _places()[other]}
        if owner in (package, None):
            hidden = set() if owner else others
            known |= {name: names[name] for name in names.keys() - hidden}
    return known


@cache
def _places() -> dict[str, dict[str, str]]:
    """The address of each public name, by package."""
    return {package.__name__: addresses(package) for package in (layouts, cutedsl_gemm)}


def name_role(
    _role: str, _source: str, qualified: str, _line: int, inliner: Any, *_: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """The role `name`: a public name as `package.name`, shown without the package."""
    package, _, name = qualified.partition(".")
    page = inliner.document.settings.env.docname
    address = _root(page) + _places()[package][name]
    link = nodes.reference("", "", refuri=address, internal=True, classes=["name"])
    link += nodes.literal(name, name)
    return [link], []


def _root(page: str) -> str:
    """The path from a page to the written pages."""
    return "../" * page.count("/") + "written/"


class Sources(SphinxDirective):
    """The table of sources, as lists."""

    def run(self) -> list[nodes.Node]:
        shown: list[nodes.Node] = []
        for title, sources in SOURCES.items():
            section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(title)])
            section += nodes.bullet_list("", *map(self._item, sources))
            shown.append(section)
        return shown

    def _item(self, source: Source) -> nodes.list_item:
        link = nodes.reference("", source.title, refuri=source.address, internal=False)
        return nodes.list_item("", nodes.paragraph("", "", link))


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.add_post_transform(CitedSources)
    app.add_post_transform(PublicNames)
    app.add_role("name", name_role)
    app.add_directive("sources", Sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
