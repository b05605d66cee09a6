"""The built site has no broken link, loads nothing from outside; wrong pages fail the build."""

import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.to, self.loaded, self.anchors = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.anchors.add(attrs["id"])
        if tag == "a" and attrs.get("href"):
            self.to.append(attrs["href"])
        if tag in ("script", "link", "img"):
            self.loaded += [attrs[name] for name in ("src", "href") if attrs.get(name)]


def test_every_link_leads_somewhere(folder):
    pages = {path: Links(path) for path in folder.rglob("*.html")}
    assert len(pages) > 30
    for path, page in pages.items():
        for link in page.to + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path}: {link}"
            if parts.fragment and target in pages and target.name != "playground.html":
                assert unquote(parts.fragment) in pages[target].anchors, f"{path}: {link}"


def test_every_call_in_the_table_of_names_works():
    """The second column of coming-from, called on a matrix and two layouts that compose."""
    names = {}
    exec(
        "import numpy\nfrom layouts import *\n"
        "layout = A = Layout((4, 8), (8, 1)); B = Layout((2, 4), (2, 4))",
        names,
    )
    page = (ROOT / "docs" / "coming-from.md").read_text()
    cells = [row.split(" | ")[1] for row in page.splitlines() if row.startswith("| ")][1:]
    calls = [call for cell in cells for call in re.findall(r"`([^`]+)`", cell)]
    tried = [eval(call, dict(names)) for call in calls if "cutedsl_gemm" not in call]
    assert len(tried) > 40


def test_a_tiled_mma_and_a_tiled_copy_draw_themselves(folder):
    page = (folder / "tiled.html").read_text()
    assert "C, M x N: " in page
    assert "destination: " in page


def test_pages_load_nothing_from_other_hosts(folder):
    for path in folder.rglob("*.html"):
        for link in Links(path).loaded:
            assert not urlsplit(link).netloc, f"{path}: {link}"
    for path in [*folder.rglob("*.css"), *folder.rglob("live/*.js")]:
        assert not re.search(r"(url|fetch)\([\"']?https?:", path.read_text()), path


def test_no_directive_is_left_as_text(folder):
    for path in folder.rglob("*.html"):
        assert not re.search("(```|~~~){", path.read_text()), path


BLOCK = re.compile(
    r'(?:<div class="wide" style="--columns:(\d+)">\n?)?'
    r'<div class="([^"]*highlight-[^"]*)"><div class="highlight"><pre>(.*?)</pre>',
    re.S,
)


def test_wide_blocks_say_how_wide_they_are(folder):
    """The style sheet then chooses letters that let the lines fit."""
    wide = 0
    for path in folder.rglob("*.html"):
        for said, classes, text in BLOCK.findall(path.read_text()):
            lines = unescape(re.sub("<[^>]*>", "", text)).splitlines()
            columns = max(map(len, lines), default=0)
            wraps = "output" in classes and "columns" not in classes
            assert (said == str(columns)) == (columns > 88 and not wraps), f"{path}: {text}"
            wide += bool(said)
    assert wide > 30


PUZZLE = "```{puzzle} 4.\n:solution: %s\n:wrong: %s\n\nsize(answer) == 4 :: not 4\n```"
# Of each page: its text, and the message.
WRONG = {
    "layout": ("```{layout} (4,8):(8,1\n```", "layout: "),
    "run": ("```{run}\n1 / 0\n```", "run: ZeroDivisionError"),
    "raises": ("```{run}\n:raises:\n1\n```", "this must raise"),
    "solution": (PUZZLE % ("5:1", "3"), "5:1 is not a solution: .*not 4"),
    "wrong": (PUZZLE % ("4:1", "4:2"), "4:2 is wrong, and no condition refuses it"),
    "source": ("As in PTX ISA 9.7.99.1, mma.", "PTX ISA 9.7.99.1 is not in SOURCES"),
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What the build of all wrong pages says: they have nothing else to warn of."""
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    folder = tmp_path_factory.mktemp("wrong")
    extensions = "myst_parser", "layout_tables", "run_code", "puzzles", "links"
    (folder / "conf.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'docs' / '_ext')!r}]\n"
        f"extensions = {list(extensions)}\n"
    )
    (folder / "index.md").write_text("# Pages\n\n```{toctree}\n:glob:\n\nwrong/*\n```\n")
    (folder / "wrong").mkdir()
    for name, (page, _) in WRONG.items():
        (folder / "wrong" / f"{name}.md").write_text(f"# Page\n\n{page}\n")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", ".", "out"]
    run = subprocess.run(build, cwd=folder, capture_output=True, text=True)
    assert run.returncode != 0
    return run.stderr


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_directive_fails_the_build_with_its_place(refused, name):
    _, message = WRONG[name]
    # -W fails the build for an error as for a warning.
    assert re.search(rf"{name}.md:3: (ERROR|WARNING): .*{message}", refused), refused
