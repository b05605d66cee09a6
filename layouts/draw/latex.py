"""The writer for LaTeX: a standalone document that needs TikZ alone, one short line a cell."""

from __future__ import annotations

from .cells import TINTS, Panel, Table

__all__ = ["written"]

PREAMBLE = r"""\documentclass[border=4pt]{standalone}
\usepackage[T1]{fontenc}
\usepackage{tikz}
%(colours)s
\newcommand\cell[4]{\fill[#3] (#1,-#2) rectangle +(1,-1); \node at (#1+.5,-#2-.5) {#4};}
\newcommand\cross[3]{\draw[#3] (#1) -- (#2);}
\begin{document}
\begin{tikzpicture}[x=%(width)smm, y=5mm, font=\ttfamily\scriptsize\frenchspacing, inner sep=0]
"""

#: How a line is drawn by the number of nested modes that end there.
LINES = ("black!25", "line width=0.9pt", "line width=1.6pt")

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{sign: f"\\{sign}" for sign in "_%#&{}$"},
}


def written(table: Table) -> str:
    """`table` as a LaTeX document, its panels side by side."""
    colours = [
        f"\\definecolor{{hue{hue}}}{{RGB}}{{{red},{green},{blue}}}"
        for hue, (red, green, blue) in enumerate(TINTS)
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
    swatches = "".join(f"\\colorbox{{hue{hue}}}{{\\strut {hue}}}" for hue in range(len(TINTS)))
    hues = f"; {_escaped(table.hues)} {swatches}" if table.hues else ""
    words = f"{_escaped(table.legend)}{hues}"
    return [f"\\node[anchor=west] at (0,{up}) {{{words}}};"]


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
        f"\\cell{{{column}}}{{{row}}}{{{_colour(hue)}}}{{{_escaped(words)}}}"
        for row, cells in enumerate(panel.cells)
        for column, (words, hue) in enumerate(cells)
    ]
    drawn = [
        (end, f"{column},0", f"{column},-{rows}")
        for column, end in enumerate((0, *panel.column_ends))
    ] + [(end, f"0,-{row}", f"{columns},-{row}") for row, end in enumerate((0, *panel.row_ends))]
    for end, start, stop in sorted(drawn):  # the thick ones over the thin ones
        lines.append(f"\\cross{{{start}}}{{{stop}}}{{{LINES[min(end, 2)]}}}")
    return [*lines, r"\end{scope}"]


def _colour(hue: int | None) -> str:
    return "white" if hue is None else f"hue{hue}"


def _escaped(words: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in words)
