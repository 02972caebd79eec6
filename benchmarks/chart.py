"""Results as an SVG bar chart: how many times as fast as the others, on a logarithmic axis."""

from __future__ import annotations

from math import ceil, floor, log10
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH, TOP = 18, 250, 520, 64         # pixels
LETTER = 6.5                                     # of a name, at most
COLOURS = ("#d95f02", "#7570b3", "#1b9e77", "#e7298a", "#66a61e", "#a6761d")
FASTER, SLOWER = "#4c8bf5", "#c0392b"


def chart(results):
    """The chart's text: a bar per workload, and a dot per peer."""
    shown = [w for w in results.workloads if results.speed(w, results.best_peer(w))]
    speeds = [s for w in shown for p in results.names[1:] if (s := results.speed(w, p))] or [1.0]
    low, high = min(floor(log10(min(speeds))), -1), max(ceil(log10(max(speeds))), 1)

    def x(speed):
        return LEFT + WIDTH * (log10(speed) - low) / (high - low)

    height = TOP + ROW * len(shown) + 20
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 40}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        *legend(results), *axis(range(low, high + 1), x, height),
        *(line for k, w in enumerate(shown) for line in bar(results, w, TOP + ROW * k, x)),
        "</svg>", ""])


def legend(results):
    """The title, and the colour of each peer's dot."""
    title = (f"{results.subject}: times as fast as the best other (bar), as each (dots); "
             f"threads: {results.threads}")
    lines, at = [f'<text x="10" y="16" font-size="13">{escape(title)}</text>'], 16
    for peer, colour in zip(results.names[1:], COLOURS):
        lines += [f'<circle cx="{at:g}" cy="32" r="4" fill="{colour}"/>',
                  f'<text x="{at + 8:g}" y="36">{escape(peer)}</text>']
        at += 36 + LETTER * len(peer)
    return lines


def axis(powers, x, height):
    """A line at every power of ten."""
    for power in powers:
        at = x(10.0**power)
        colour = "#333" if power == 0 else "#ddd"
        yield (f'<line x1="{at:.1f}" y1="{TOP - 6}" x2="{at:.1f}" y2="{height - 16}" '
               f'stroke="{colour}"/>')
        yield f'<text x="{at:.1f}" y="{TOP - 10}" text-anchor="middle">{10.0**power:g}</text>'


def bar(results, workload, y, x):
    """One workload: its name, its bar from 1, its dots."""
    speed = results.speed(workload, results.best_peer(workload))
    left, right = sorted((x(1.0), x(speed)))
    colour = FASTER if speed >= 1 else SLOWER
    yield f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(workload)}</text>'
    yield (f'<rect x="{left:.1f}" y="{y + 3}" width="{right - left:.1f}" height="{ROW - 7}" '
           f'fill="{colour}"/>')
    for peer, dot in zip(results.names[1:], COLOURS):
        if found := results.speed(workload, peer):
            yield (f'<circle cx="{x(found):.1f}" cy="{y + 8.5}" r="3.5" fill="{dot}" '
                   'stroke="white"/>')
