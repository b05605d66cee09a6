"""The writer for LaTeX: a standalone document that needs TikZ alone, one line per cell."""

from __future__ import annotations

from .cells import COLOURS, Panel, Table

__all__ = ["render"]

PREAMBLE = r"""\documentclass[border=4pt]{standalone}
\usepackage[T1]{fontenc}
\usepackage{tikz}
%(colours)s
\newcommand\cell[4]{\fill[#3] (#1,-#2) rectangle +(1,-1); \node at (#1+.5,-#2-.5) {#4};}
\newcommand\cross[3]{\draw[#3] (#1) -- (#2);}
\begin{document}
\begin{tikzpicture}[x=%(width)smm, y=5mm, font=\ttfamily\scriptsize\frenchspacing, inner sep=0]
"""

#: Number of nested modes that end at a line → its style.
LINES = ("black!25", "line width=0.9pt", "line width=1.6pt")

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "∘": r"$\circ$",
    **{sign: f"\\{sign}" for sign in "_%#&{}$"},
}


def render(table: Table) -> str:
    """`table` as a LaTeX document, its panels side by side."""
    colours = [
        f"\\definecolor{{colour{colour}}}{{RGB}}{{{red},{green},{blue}}}"
        for colour, (red, green, blue) in enumerate(COLOURS)
    ]
    digits = max(len(words) for panel in table.panels for row in panel.cells for words, _ in row)
    width = round(2.5 + 1.5 * max(digits, 2), 1)
    lines = [PREAMBLE % {"colours": "\n".join(colours), "width": width}]
    left = 0
    for panel in table.panels:
        lines += _panel(panel, left)
        left += max(len(panel.column_ends), round(1.6 * len(panel.title) / width) + 1) + 2
    lines += _legend(table)
    return "\n".join([*lines, r"\end{tikzpicture}", r"\end{document}", ""])


def _legend(table: Table) -> list[str]:
    up = 3.5 + max(len(panel.notes) for panel in table.panels)
    legend = _escaped(table.legend)
    if table.colours:
        boxes = (f"\\colorbox{{{_colour(c)}}}{{\\strut {c}}}" for c in table.swatches)
        legend += f"; {_escaped(table.colours)} {''.join(boxes)}"
    return [f"\\node[anchor=west] at (0,{up}) {{{legend}}};"]


def _panel(panel: Panel, left: int) -> list[str]:
    rows, columns = len(panel.cells), len(panel.column_ends)
    heads = (panel.title, *panel.notes)
    lines = [f"\\begin{{scope}}[shift={{({left},0)}}]"]
    lines += [
        f"\\node[anchor=west] at (0,{1.5 + len(heads) - 1 - at}) {{{_escaped(head)}}};"
        for at, head in enumerate(heads)
    ]
    lines += [f"\\node[gray] at ({at}+.5,.5) {{{at}}};" for at in range(columns)]
    lines += [f"\\node[gray,anchor=east] at (-.2,-{at}-.5) {{{at}}};" for at in range(rows)]
    lines += [
        f"\\cell{{{column}}}{{{row}}}{{{_colour(colour)}}}{{{_escaped(words)}}}"
        for row, cells in enumerate(panel.cells)
        for column, (words, colour) in enumerate(cells)
    ]
    drawn = [
        (end, f"{column},0", f"{column},-{rows}")
        for column, end in enumerate((0, *panel.column_ends))
    ] + [(end, f"0,-{row}", f"{columns},-{row}") for row, end in enumerate((0, *panel.row_ends))]
    for end, start, stop in sorted(drawn):  # thick lines over thin ones
        lines.append(f"\\cross{{{start}}}{{{stop}}}{{{LINES[min(end, 2)]}}}")
    return [*lines, r"\end{scope}"]


def _colour(colour: int | None) -> str:
    return "white" if colour is None else f"colour{colour}"


def _escaped(words: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in words)
