"""What the README shows is what happens, and what pages name is there."""

import doctest
import re
import statistics
from pathlib import Path
from pkgutil import resolve_name

import pytest

from cutedsl_gemm.measure import epilogues, ladder
from cutedsl_gemm.measure.report import files, markdown, means, ratios, read, summary
from layouts.notation.expression import evaluate

ROOT = Path(__file__).parents[1]
PICTURE = (
    "compare(naive=(8,8):(8,1), padded=(8,8):(9,1), swizzled=S<3,0,3> o 0 o (8,8):(8,1), unit=128)"
)


def test_every_example_gives_what_it_says():
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried > 5
    assert failed == 0


def test_the_picture_is_what_the_library_draws():
    """To draw it anew: python -m layouts "EXPRESSION" --svg docs/picture.svg"""
    assert (ROOT / "docs" / "picture.svg").read_text() == evaluate(PICTURE).svg()
    assert PICTURE in (ROOT / "README.md").read_text()


MEASURED = ROOT / "docs" / "performance"


@pytest.mark.parametrize("file", files(MEASURED), ids=lambda file: file.stem)
def test_the_page_on_performance_has_the_tables_and_means_of_the_measured_figures(file):
    page, points = (MEASURED / "README.md").read_text(), read(file)
    width = 6 if file.stem == "weights" else len(points)  # a table for each number of rows
    tables = [markdown(points[first : first + width]) for first in range(0, len(points), width)]
    for words in (*tables, means(points)):
        assert words in page, f"docs/performance/README.md must say of {file.name}:\n{words}"


@pytest.mark.parametrize("page", ["README.md", "docs/performance/README.md"])
def test_pages_show_the_lowest_ratio_beside_each_mean(page):
    table = summary(MEASURED)
    assert table in (ROOT / page).read_text(), f"{page} must have this table:\n{table}"


def test_the_readme_has_the_table_and_means_of_the_sweep():
    page, sweep = (ROOT / "README.md").read_text(), read(MEASURED / "sweep.csv")
    assert markdown(sweep) in page
    cublas, best = map(statistics.geometric_mean, ratios(sweep).values())
    assert f"{cublas:.2f} × torch.mm, {best:.2f} × the best of the others" in page


def test_the_tables_of_the_ladder_are_those_of_the_measured_figures():
    page = (MEASURED / "README.md").read_text()
    for family, rows in ladder.read(MEASURED / "ladder.csv").items():
        table = ladder.markdown(rows)
        assert table in page, (
            f"docs/performance/README.md must have this table of {family}:\n{table}"
        )


def test_a_rung_that_gains_nothing_has_its_reason_in_the_list():
    """The page of the rung shows it, too."""
    page = (MEASURED / "README.md").read_text()
    listed = set(re.findall(r"^- \*\*(\w+)\*\*", page, re.M))
    for rows in ladder.read(MEASURED / "ladder.csv").values():
        for here, lower in ladder.below(rows).items():
            row = next(row for row in rows if row.name == here)
            assert row.speed_over(lower) > 1.01 or here in listed, f"{here}: why is it no faster?"


def test_the_table_of_layers_is_that_of_the_measured_figures():
    for file in MEASURED.glob("epilogues*.csv"):
        table = epilogues.markdown(epilogues.read(file))
        page = ROOT / "docs" / "epilogues.md"
        assert table in page.read_text(), f"{page} must have this table of {file.name}:\n{table}"


PATH = re.compile(r"`((?:layouts|kernels|cutedsl_gemm|tests|docs|bench)/[\w./-]*)`")
NAME = re.compile(r"`((?:layouts|cutedsl_gemm)(?:\.\w+)+)`")
PLACE = re.compile(r"`(\w+)` in `([\w/]+\.py)`")


WRITTEN = ROOT / "docs" / "written"  # by the build
PAGES = ["README.md", "CONTRIBUTING.md"] + [
    str(page.relative_to(ROOT))
    for page in sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs").glob("*/*.md"))
    if page.parent != WRITTEN
]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_name_that_a_page_mentions_is_there(page):
    text = (ROOT / page).read_text()
    for path in PATH.findall(text):
        assert (ROOT / path).exists(), path
    for name in NAME.findall(text):
        resolve_name(name)  # ImportError or AttributeError with the name
    for name, path in PLACE.findall(text):
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), f"{name} in {path}"
