"""Curves of a training run as an SVG file: one panel per metric, training and validation together.

Standard library only; relies on `viz.py` for round numbers and `io/files.py` for writing.
"""

from __future__ import annotations

import math
from html import escape

from ..errors import ArgumentError
from ..io.files import check_suffix, write_whole
from ..viz import round_numbers

PANEL = 360, 220           # width and height of a panel, in pixels
ROOM = 56, 28, 16, 36      # around its plot: left, top, right, bottom
COLOURS = ("#1f6fb2", "#d1495b")                 # training, validation
PREFIX = "validation "


def save_curves(path, history):
    """Draws the rows of `Trained.history`, one number per name and epoch, and writes the SVG file.

    history: list of {"loss": …, "validation loss": …, …}; "validation x" is drawn in the panel of
    x.  Values that are no finite numbers leave a gap.  Raises ArgumentError for an empty history,
    and MissingFileError when the folder does not exist.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "curves.svg")
    ...     save_curves(path, [{"loss": 2.0, "validation loss": 2.5}, {"loss": 1.0}])
    ...     path.read_text()[:4]
    '<svg'
    """
    if not history:
        raise ArgumentError("there are no epochs to draw.", given="an empty history")
    names = dict.fromkeys(name for row in history for name in row)
    panels = list(dict.fromkeys(name.removeprefix(PREFIX) for name in names))
    width, height = PANEL
    across = width * len(panels)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>']
    for k, name in enumerate(panels):
        lines = [[row.get(full, math.nan) for row in history] for full in (name, PREFIX + name)]
        parts.append(f'<g transform="translate({k * width},0)">{panel(name, lines)}</g>')
    check_suffix(path, ".svg")
    write_whole(path, ["\n".join([*parts, "</svg>\n"]).encode()])


def panel(name, lines):
    """The SVG of one panel: its title, axes, and a line each for training and validation."""
    left, top, right, bottom = ROOM
    across, down = PANEL[0] - left - right, PANEL[1] - top - bottom
    finite = [v for line in lines for v in line if math.isfinite(v)]
    ticks = round_numbers(min(finite, default=0.0), max(finite, default=1.0))
    low, high, epochs = ticks[0], ticks[-1], len(lines[0])

    def place(epoch, value):
        x = left + across * (epoch - 1) / max(epochs - 1, 1)
        return f"{x:.1f},{top + down * (high - value) / (high - low):.1f}"

    out = [f'<text x="{left}" y="{top - 12}" font-weight="bold">{escape(name)}</text>']
    for value in ticks:
        y = top + down * (high - value) / (high - low)
        ends = f'x1="{left}" x2="{left + across}" y1="{y:.1f}" y2="{y:.1f}"'
        out.append(f'<line {ends} stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for epoch in dict.fromkeys((1, epochs)):
        x = place(epoch, low).split(",")[0]
        out.append(f'<text x="{x}" y="{top + down + 16}" text-anchor="middle">{epoch}</text>')
    middle, bottom = left + across / 2, top + down + 28
    out.append(f'<text x="{middle}" y="{bottom}" text-anchor="middle">epoch</text>')
    for k, (line, colour, legend) in enumerate(zip(lines, COLOURS, ("training", "validation"))):
        if any(map(math.isfinite, line)):
            out.append(f'<text x="{left + across - 70 * (1 - k)}" y="{top - 12}" text-anchor="end" '
                       f'fill="{colour}">{legend}</text>')
            out += [drawn([place(e, v) for e, v in piece], colour) for piece in pieces(line)]
    return "\n".join(out)


def drawn(points, colour):
    """A line through the points; a dot for a single one."""
    if len(points) == 1:
        x, y = points[0].split(",")
        return f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'
    return (f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" '
            'stroke-width="1.8"/>')


def pieces(line):
    """[(epoch, value), …] of each run of finite values.

    >>> pieces([1.0, math.nan, 2.0, 3.0])
    [[(1, 1.0)], [(3, 2.0), (4, 3.0)]]
    """
    out = [[]]
    for epoch, value in enumerate(line, 1):
        if math.isfinite(value):
            out[-1].append((epoch, value))
        elif out[-1]:
            out.append([])
    return [piece for piece in out if piece]
