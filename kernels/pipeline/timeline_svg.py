"""A timeline as SVG: a row of bars for each agent, in the colour of their tiles.

It has no background, and its words outside of bars have the colour of the text around it.
"""

from __future__ import annotations

from html import escape

from cutedsl_gemm.kernels.pipeline.timeline import Span, Timeline
from layouts.draw.cells import COLOURS, hex_colour
from layouts.draw.svg import FONT

# In pixels: the drawing, a bar and the step to the next row, a letter, the margin.
WIDTH, BAR, ROW, LETTER, MARGIN = 860, 22, 28, 6.2, 12


def render(timeline: Timeline) -> str:
    """`timeline` as an SVG document.

    >>> from cutedsl_gemm.kernels.pipeline.timeline import timeline
    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> timeline(pingpong().pipeline).svg()[:4]
    '<svg'
    """
    left = 2 * MARGIN + round(LETTER * max(len(name) for name, _ in timeline.rows))
    scale = (WIDTH - MARGIN - left) / timeline.end
    top, drawn = MARGIN + 24, ""
    for number, (name, spans) in enumerate(timeline.rows):
        y = top + ROW * number
        drawn += f'<text x="{MARGIN}" y="{y + 15}">{escape(name)}</text>'
        drawn += "".join(_bar(span, left, y, scale) for span in spans)
    height = top + ROW * len(timeline.rows) + MARGIN - (ROW - BAR)
    head = f"{timeline.counts}; time runs to the right, colour = tile"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}" font-size="10" '
        f'fill="currentColor" class="timeline" role="img"><title>{escape(head)}</title>'
        f'<text x="{MARGIN}" y="{MARGIN + 10}">{escape(head)}</text>{drawn}</svg>\n'
    )


def _bar(span: Span, left: int, y: int, scale: float) -> str:
    """The bar of a span, and as many of its words as fit; pointed at, it says all."""
    x, width = left + span.begin * scale, (span.end - span.begin) * scale
    words = span.words(int((width - 4) / LETTER))
    colour = hex_colour(span.tile % len(COLOURS))
    return (
        f"<g><title>{escape(span.activity)} {span.tile}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colour}" '
        f'stroke="#333"/><text x="{x + width / 2:.1f}" y="{y + 15}" text-anchor="middle" '
        f'fill="#000">{escape(words)}</text></g>'
    )
