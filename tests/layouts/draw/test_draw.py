"""Pictures: one model of cells, four writers."""

import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import numpy
import pytest

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    Table,
    compare,
    composition,
    explain,
    local_tile,
    make_tensor,
    mma,
    stmatrix,
    symbols,
    table,
    table_tv,
    wavefronts,
    wgmma_accumulator,
)
from layouts.draw import summary
from layouts.draw.cells import COLOURS
from layouts.draw.html import style_sheet
from layouts.draw.operation import operation
from layouts.values.stride import E

ROWS = Layout((8, 64), (64, 1))
PADDED = Layout((8, 64), (72, 1))
TILE = ComposedLayout(Swizzle(3, 3, 3), 0, ROWS, unit=16)
NESTED = Layout(((2, 2, 2), ((2, 2), 2)), ((1, 2, 4), ((8, 16), 32)))
PICTURES = {
    "tile": table(TILE),
    "nested": table(NESTED),
    "one mode": table(Layout(8, 3)),
    "three modes": table(Layout((2, 4, 3))),
    "compared": compare(naive=ROWS, padded=PADDED, swizzled=TILE),
    "threads": table_tv(wgmma_accumulator(16), (64, 16)),
    "coordinates": table(Layout((4, 8), (E(1), E(0)))),
}


def offsets(panel):
    return [[int(words) for words, _ in row] for row in panel.cells]


def without_colours(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def numbers(text):
    """The numbers of a table in text, row by row, without its headers."""
    lines = [re.split("[│┃]", line, maxsplit=1) for line in without_colours(text).splitlines()]
    rows = [line[1] for line in lines if len(line) == 2]
    return [[int(n) for n in re.findall(r"\d+", row)] for row in rows]


# ------------------------------------------------------------------------------- the cells


@pytest.mark.parametrize("layout", [Layout((4, 8), (8, 1)), NESTED, TILE])
def test_a_table_has_every_offset(layout):
    (panel,) = table(layout).panels
    rows, columns = len(panel.cells), len(panel.cells[0])
    assert offsets(panel) == [[layout(i, j) for j in range(columns)] for i in range(rows)]
    assert (rows, columns) == (8 if layout is not panel and rows == 8 else 4, columns)


def test_one_mode_goes_across():
    assert offsets(table(Layout(8, 3)).panels[0]) == [[0, 3, 6, 9, 12, 15, 18, 21]]
    assert offsets(table(Layout(())).panels[0]) == [[0]]


def test_further_modes_have_a_panel_for_each_index():
    layout = Layout((2, 3, (2, 2)), (1, 2, (6, 100)))
    panels = table(layout).panels
    assert [panel.title for panel in panels] == [f"{layout} at (_,_,{k})" for k in range(4)]
    assert offsets(panels[3]) == [[layout(i, j, 3) for j in range(3)] for i in range(2)]
    many = table(Layout((2, 2, 20))).panels
    assert len(many) == 8
    assert {panel.notes for panel in many} == {("8 of 20 panels",)}


def test_cells_are_coloured_by_their_16_byte_group_of_banks():
    (panel,) = table(TILE).panels
    for row, cells in enumerate(panel.cells):
        assert [colour for _, colour in cells] == [TILE(row, c) * 2 // 16 % 8 for c in range(64)]
        assert {colour for _, colour in cells} == set(range(8))


def test_banks_is_the_bytes_of_one_colour():
    (cells,) = table(Layout(8), unit=32, banks=4).panels[0].cells
    assert [colour for _, colour in cells] == [*range(8)]
    assert "byte / 4 mod 8" in table(Layout(8), banks=4).colours
    assert "offset mod 8" in table(Layout(8), banks=4, unit=32).colours  # a colour an element


def test_the_legend_names_the_unit():
    assert table(TILE).legend == "offsets in elements of 16 bits"
    assert table(Layout(4), unit=8).legend == "offsets in bytes"
    assert table(Layout(4), unit=32).legend == "offsets in elements of 32 bits"
    byte_legend = "byte offsets; the layout has offsets in elements of 16 bits"
    assert table(Layout(4, 3), show="byte").legend == byte_legend


def test_offsets_alone_assume_no_unit_and_no_banks():
    plain = table(Layout((4, 8), (8, 1)))
    assert (plain.legend, plain.colours) == ("offsets", "colour = offset mod 8:")
    assert [colour for _, colour in plain.panels[0].cells[1]] == [*range(8)]
    for asked in (table(TILE), table(ROWS, unit=16), table(ROWS, banks=16), compare(ROWS)):
        assert asked.legend == "offsets in elements of 16 bits"
        assert asked.colours == "colour = group of 4 banks:"


def test_the_legend_shows_the_colours_in_use():
    assert table(Layout(5)).swatches == range(5)
    assert table(TILE).swatches == range(8)
    assert PICTURES["coordinates"].swatches == range(0)


def test_cells_can_show_bytes_and_banks():
    assert offsets(table(Layout(4, 33), show="byte").panels[0]) == [[0, 66, 132, 198]]
    assert offsets(table(Layout(4, 33), show="bank").panels[0]) == [[0, 16, 1, 17]]


def test_outer_modes_end_with_thicker_lines():
    (panel,) = table(NESTED).panels
    assert panel.row_ends == (0, 1, 0, 2, 0, 1, 0, 0)
    assert panel.column_ends == (0, 1, 0, 2, 0, 1, 0, 0)
    assert table(TILE).panels[0].column_ends == (0,) * 64


def test_a_note_says_which_part_of_a_large_layout_is_drawn():
    (panel,) = table(Layout((200, 4096))).panels
    assert (len(panel.cells), len(panel.cells[0])) == (128, 128)
    assert panel.notes == ("128 x 128 of 200 x 4096 cells",)
    assert len(table(Layout((200, 2)), limit=None).panels[0].cells) == 200


@pytest.mark.parametrize(
    ("picture", "limit", "notes"),
    [
        (table(Layout((64, 64, 64))), 128, ("4 of 64 panels",)),
        (table(Layout((64, 64, 64)), limit=16), 16, ("1 of 64 panels", "16 x 16 of 64 x 64 cells")),
        (compare(*3 * [Layout((4096, 4096))]), 128, ("64 x 64 of 4096 x 4096 cells",)),
        (table(Layout((2,) * 12)), 128, ("8 of 1024 panels",)),
        (table(Layout((2, 2, 10**12))), 128, ("8 of 1000000000000 panels",)),
    ],
    ids=lambda given: str(given) if isinstance(given, tuple) else "",
)
def test_all_panels_together_draw_at_most_limit_squared_cells(picture, limit, notes):
    cells = sum(len(row) for panel in picture.panels for row in panel.cells)
    assert 0 < cells <= limit * limit
    assert all(panel.notes[-len(notes) :] == notes for panel in picture.panels)


@pytest.mark.parametrize("limit", [0, -1, 100000, 1.5, "all"])
def test_an_impossible_limit_raises(limit):
    with pytest.raises(LayoutError, match=f"limit {limit}: it must be an integer from 1 to 1024"):
        table(Layout((4, 8)), limit=limit)


def test_a_table_names_its_layouts():
    assert PICTURES["compared"].layouts == (("naive", ROWS), ("padded", PADDED), ("swizzled", TILE))
    assert compare(ROWS, unit=128).unit == 128
    assert table(TILE).layouts == ((str(TILE), TILE),)
    assert PICTURES["threads"].layouts == ()


def test_coordinates_and_symbols_have_no_colour():
    assert PICTURES["coordinates"].panels[0].cells[1][2] == ("(2,1)", None)
    assert PICTURES["coordinates"].legend == "coordinates"
    assert table(Layout((2, 2), (symbols("m"), 1))).panels[0].cells[1][1] == ("m + 1", None)


def test_compare_counts_the_wavefronts_of_a_column():
    naive, padded, swizzled = PICTURES["compared"].panels
    assert naive.title == "naive: (8,64):(64,1)"
    assert naive.notes == ("8 × 16 bytes down a column:", "8 wavefronts instead of 1")
    assert padded.notes == ("8 × 16 bytes down a column:", "1 wavefront")
    assert swizzled.notes == padded.notes


@pytest.mark.parametrize(
    ("layouts", "unit", "lanes", "width"),
    [
        ([Layout((32, 32), (32, 1)), Layout((32, 32), (33, 1))], 32, 32, 4),
        ([Layout((8, 8), (8, 1)), Layout((8, 8), (9, 1))], None, 8, 2),
        ([Layout((8, 8), (8, 1)), Layout((4, 8), (8, 1))], None, 4, 16),
        ([Layout((8, 64), (64, 1)), Layout(64)], None, 8, 16),  # no columns, no access
        ([Layout((8, 8), (8, 1)), Layout((8, 8), (9, 1))], 8, 8, 1),
    ],
)
def test_compare_makes_the_same_access_to_all(layouts, unit, lanes, width):
    for layout, panel in zip(layouts, compare(*layouts, unit=unit).panels, strict=True):
        if len(layout) != 2:
            assert panel.notes == ()
            continue
        at = [layout(row, 0) * (unit or 16) // 8 for row in range(lanes)]
        wanted = wavefronts(at, width).counted()
        read = "1 byte" if width == 1 else f"{width} bytes"
        assert panel.notes[:2] == (f"{lanes} × {read} down a column:", wanted)
        alone = compare(layout, unit=unit).panels[0].notes[0]
        narrow = f"× {read} " in alone and width < 16
        assert panel.notes[2:] == (f"rows are aligned to {read} only",) * narrow


def test_compare_needs_one_unit():
    bytes_ = ComposedLayout(Swizzle(3, 4, 3), 0, ROWS, unit=8)
    both = "offsets in bytes and offsets in elements of 16 bits; convert them to one unit"
    for unit in (None, 8, 16):
        with pytest.raises(LayoutError, match=both):
            compare(TILE, bytes_, unit=unit)
    assert compare(ROWS, bytes_).legend == "offsets in bytes"
    with pytest.raises(LayoutError, match=r"unit 16 bits: .* has offsets in bytes"):
        compare(ROWS, bytes_, unit=16)
    with pytest.raises(LayoutError, match="takes layouts"):
        compare()


def test_table_tv_shows_the_thread_and_value_of_each_element():
    (panel,) = PICTURES["threads"].panels
    layout = wgmma_accumulator(16)
    for thread, value in [(0, 0), (5, 1), (37, 2), (127, 7)]:
        column, row = divmod(layout(thread, value), 64)
        assert panel.cells[row][column] == (f"T{thread} V{value}", thread % 8)


def test_table_tv_counts_further_threads_of_an_element():
    cells = table_tv(Layout((4, 1), (0, 0)), (1, 2)).panels[0].cells
    assert cells == ((("T0 V0 +3", 0), ("", None)),)


def test_row_major_atoms_are_drawn_over_their_own_tile():
    tile = table_tv(stmatrix(1).fragment, (8, 8)).panels[0]
    assert tile.cells[1][0] == ("T0 V1", 0)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: table(3), "must be a Layout"),
        (lambda: table(Layout((symbols("m"), 2))), "the extent m is a symbol"),
        (lambda: table(ROWS, unit=0), "unit"),
        (lambda: table(ROWS, unit=1.5), "unit"),
        (lambda: table(ROWS, banks=0), "banks"),
        (lambda: table(ROWS, show="colour"), "one of offset, byte, bank"),
        (lambda: table_tv(Layout(4), (2, 2)), "two modes"),
        (lambda: table_tv(ROWS, 512), "two modes"),
        (lambda: table_tv(ROWS, (8, 32)), "thread 4, value 0 holds element 256"),
    ],
)
def test_values_that_cannot_be_drawn_raise(draw, words):
    with pytest.raises(LayoutError, match=words):
        draw()


# --------------------------------------------------------------------------------- text


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("layout", [NESTED, TILE, Layout((4, 8), (8, 1))])
def test_text_has_every_offset(layout, colour):
    picture = table(layout)
    assert numbers(picture.text(colour=colour)) == offsets(picture.panels[0])


def test_text_draws_where_modes_end():
    assert table(Layout(((2, 2), 2))).text(colour=False).splitlines()[3:] == [
        "     0  1",
        "   ┌──────",
        " 0 │ 0  4",
        " 1 │ 1  5",
        "   ├──────",
        " 2 │ 2  6",
        " 3 │ 3  7",
    ]


@pytest.mark.parametrize("width", [1, 40, 80, 100, 200])
@pytest.mark.parametrize("name", sorted(PICTURES))
def test_text_fits_the_width_if_a_column_does(name, width):
    picture = PICTURES[name]
    plain = picture.text(colour=False, width=width)
    coloured = without_colours(picture.text(colour=True, width=width)).splitlines()
    assert [line.rstrip() for line in coloured[3:]] == plain.splitlines()[3:]
    body = [line for line in plain.splitlines() if re.match(r"[ \d]*[│┃┌]", line)]
    assert width == 1 or max(map(len, body)) <= width
    assert sum(len(row) for panel in picture.panels for row in panel.cells) <= len(
        re.findall(r"\d+", plain)
    )


def test_a_wide_table_is_split_into_equal_blocks():
    text = table(ROWS).text(colour=False, width=100)
    assert re.findall("columns .*", text) == [
        f"columns {c} to {c + 15} of 64" for c in (0, 16, 32, 48)
    ]
    assert "columns" not in table(ROWS).text(colour=False)


def test_panels_are_side_by_side_if_they_fit():
    beside = compare(Layout(4), Layout(4, 2), Layout(4, 3))
    assert "4:1" in beside.text(width=200).splitlines()[2]
    assert "4:3" in beside.text(width=200).splitlines()[2]
    assert "4:3" not in beside.text(width=30).splitlines()[2]


def test_only_a_terminal_without_no_color_gets_colours(monkeypatch):
    assert "\x1b" not in str(table(TILE))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    assert "\x1b" in str(table(TILE))
    assert "columns 0 to 15 of 64" in str(table(TILE))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in str(table(TILE))


def test_black_text_is_readable_on_every_colour():
    assert len(set(COLOURS)) == 8
    for colour in COLOURS:
        red, green, blue = ((c / 255) ** 2.2 for c in colour)
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert (luminance + 0.05) / 0.05 > 7  # WCAG AAA


# ------------------------------------------------------------------------- HTML, SVG, LaTeX


class Cells(HTMLParser):
    """The words of the cells, and every tag."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.tags, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, words):
        if self.open[-1] == "td":
            self.cells.append(words)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_html_has_every_cell_and_only_inline_styles(name):
    picture = PICTURES[name]
    page = Cells(picture.html())
    assert page.open == []
    assert page.cells == [w for panel in picture.panels for row in panel.cells for w, _ in row if w]
    assert all(set(attributes) <= {"style"} for _, attributes in page.tags)
    assert {tag for tag, _ in page.tags} <= {"div", "span", "table", "tr", "th", "td"}


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_html_of_a_page_has_every_cell_and_classes_of_the_style_sheet(name):
    picture = PICTURES[name]
    page = Cells(picture.html(page=True))
    assert page.open == []
    assert page.cells == Cells(picture.html()).cells
    ruled = set(re.findall(r"\.([a-z]+\d?)[ {:]", style_sheet()))
    used = {c for _, attributes in page.tags for c in attributes.get("class", "").split()}
    assert used - {"note"} <= ruled
    panels = [attributes for _, attributes in page.tags if attributes.get("class") == "panel"]
    for panel, shown in zip(picture.panels, panels, strict=True):
        assert json.loads(shown["data-shape"]) == as_lists(panel.shape)
        assert json.loads(shown["data-at"]) == list(panel.at)


def as_lists(shape):
    return [*map(as_lists, shape)] if isinstance(shape, tuple) else shape


def test_the_cells_of_a_page_name_the_elements_that_they_stand_for():
    picture = operation(
        explain(composition, Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))).views()
    )
    page = Cells(picture.html(page=True))
    stand_for = [attributes.get("data-e") for tag, attributes in page.tags if tag == "td"]
    assert stand_for[:6] == ["0", "2", "4", "6", "8", "10"]
    assert len(stand_for) == 12 + 12 + 12


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_svg_is_well_formed_and_has_every_cell(name):
    picture = PICTURES[name]
    root = ElementTree.fromstring(picture.svg())
    shown = [node.text for node in root.iter() if node.get("data-o") is not None]
    expected = [w for panel in picture.panels for row in panel.cells for w, _ in row]
    assert [words or "" for words in shown] == expected
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter():
        if node.get("x") is not None:
            assert 0 <= float(node.get("x")) <= width
            assert 0 <= float(node.get("y")) <= height


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_latex_has_every_cell_and_balanced_braces(name):
    picture = PICTURES[name]
    text = picture.latex()
    cells = re.findall(r"^\\cell\{\d+\}\{\d+\}\{\w+\}\{(.*)\}$", text, re.M)
    expected = [w for panel in picture.panels for row in panel.cells for w, _ in row]
    assert cells == expected
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin") == text.count(r"\end")


def test_latex_escapes_special_characters():
    latex = compare(**{"a_b%": Layout(2)}).latex()
    assert r"a\_b\%: 2:1" in latex
    assert r"S\textless{}3,3,3\textgreater{} o 0" in table(TILE).latex()


def test_names_are_escaped_in_html_and_svg():
    picture = compare(**{"<b>&": Layout(2)})
    assert "&lt;b&gt;&amp;: 2:1" in picture.html()
    assert ElementTree.fromstring(picture.svg()) is not None


def test_a_notebook_shows_the_table_of_at_most_64_by_64_cells():
    assert TILE._repr_html_() == table(TILE).html()
    assert ROWS._repr_html_() == table(ROWS).html()
    large = Layout((128, 128))._repr_html_()
    assert "64 x 64 of 128 x 128 cells" in large
    assert len(large) < 600_000
    assert Swizzle(3, 3, 3)._repr_html_() == table(Swizzle(3, 3, 3)).html()
    assert Layout((symbols("m"), 2))._repr_html_() is None
    assert isinstance(table(TILE), Table)
    assert table(TILE)._repr_html_() == table(TILE).html()


@pytest.mark.parametrize(
    "swizzle", [Swizzle(3, 3, 3), Swizzle(2, 0, -3), Swizzle(0, 4, 3)], ids=str
)
def test_the_table_of_a_swizzle_is_the_one_that_the_command_line_draws(swizzle):
    assert table(swizzle) == summary.answer(str(swizzle)).picture()


@pytest.mark.parametrize("draw", [table, compare, lambda atom: table_tv(atom, (4, 4))])
def test_the_table_of_an_atom_says_that_print_draws_it(draw):
    with pytest.raises(LayoutError, match=r"table of mma\.m16n8k16, .*: print\(atom\) draws it"):
        draw(mma("m16n8k16", "bf16"))


def test_pictures_need_only_the_standard_library():
    script = (
        "import sys; sys.path.insert(0, '.')\n"
        "from layouts import Layout, Swizzle, compare, parse\n"
        "picture = compare(Swizzle(3, 3, 3) @ Layout((8, 64), (64, 1)))\n"
        "picture.text(), picture.html(), picture.svg(), picture.latex(), parse('(4,8):(8,1)')\n"
        "print([name for name in ('numpy', 'sympy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_writer_takes_milliseconds():
    layout = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16)
    for write in (table, lambda x: x.text(colour=True), Table.html, Table.svg, Table.latex):
        value = layout if write is table else table(layout)
        start = time.perf_counter()
        write(value)
        assert time.perf_counter() - start < 0.25  # a hundredth of a second, on an idle machine


def test_the_table_of_a_tensor_shows_its_elements():
    tensor = make_tensor(numpy.arange(8) / 4, Swizzle(1, 0, 2) @ Layout((2, 4), (4, 1)))
    assert str(table(tensor)) == dedent(
        """\
        float64[0] o S<1,0,2> o 0 o (2,4):(4,1)
        elements of float64

                0     1     2     3
           ┌────────────────────────
         0 │    0  0.25   0.5  0.75
         1 │ 1.25     1  1.75   1.5"""
    )
    assert "0.75" in tensor._repr_html_()


def test_the_table_of_a_ragged_tile_is_empty_beyond_the_data():
    tile = local_tile(make_tensor(numpy.arange(20).reshape(4, 5)), (3, 4), (1, 1))
    assert [words for words, _ in table(tile).panels[0].cells[0]] == ["19", "", "", ""]
    assert [words for words, _ in table(tile).panels[0].cells[1]] == [""] * 4
