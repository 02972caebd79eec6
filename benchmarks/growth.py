"""Throughput over sizes, as a table and an SVG plot: no cliffs, or where they are.

    python -m benchmarks.growth --impl fgrad,jax,torch,numpy [--only matmul …] [--threads 1]

Workers, turns and medians are those of `run.py`; the curves are those of `workloads/growth.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from math import ceil, floor, log10
from pathlib import Path
from statistics import median
from xml.sax.saxutils import escape

from . import starts
from .chart import COLOURS
from .implementations import IMPLEMENTATIONS
from .run import Failed, Remote, processor
from .workloads.growth import CURVES

HERE = Path(__file__).parent
PANEL, HIGH, LEFT, TOP = 360, 220, 60, 50        # pixels
LINES = ("#4c8bf5", *COLOURS)


def throughput(workload, seconds, unit):
    """Billions of bytes, or of operations, per second."""
    amount = workload.flops if unit == "GFLOP/s" else workload.reads + workload.writes
    return amount / seconds / 1e9


def measured(workers, workloads, unit, rounds, seconds):
    """{name: [throughput at each size, None where it failed]}."""
    curves = {name: [] for name in workers}
    for workload in workloads:
        running = [name for name in workers
                   if name == "limit" or IMPLEMENTATIONS[name].style in workload.makers]
        times = {name: [] for name in running}
        for number in range(rounds):
            for name in running:
                try:
                    if number == 0:
                        workers[name].prepare(workload.name)
                    times[name].append(workers[name].measure(workload.name, seconds))
                except Failed:
                    break
        for name in workers:
            found = times.get(name)
            curves[name].append(throughput(workload, median(found), unit) if found else None)
    return curves


def table(title, sizes, unit, curves):
    """A Markdown table of one family of curves."""
    lines = [f"## {title}, {unit}", "", "| size | " + " | ".join(curves) + " |",
             "| ---: |" + " ---: |" * len(curves)]
    for k, size in enumerate(sizes):
        cells = ("" if curve[k] is None else f"{curve[k]:.3g}" for curve in curves.values())
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def plot(families):
    """The SVG: a panel for each (title, sizes, unit, curves), both axes logarithmic."""
    panels = [line for k, family in enumerate(families)
              for line in panel(*family, TOP + k * (HIGH + 60))]
    names = list(families[0][3])
    legend = [f'<text x="{LEFT + 80 * k}" y="20" fill="{colour(name, names)}">{escape(name)}</text>'
              for k, name in enumerate(names)]
    height = TOP + len(families) * (HIGH + 60)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + PANEL + 40}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>', *legend, *panels, "</svg>", ""])


def colour(name, names):
    return "#999" if name == "limit" else LINES[names.index(name) % len(LINES)]


def panel(title, sizes, unit, curves, top):
    """The lines of one panel."""
    values = [v for curve in curves.values() for v in curve if v]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    left, right = log10(sizes[0]), log10(sizes[-1])

    def at(size, value):
        return (LEFT + PANEL * (log10(size) - left) / (right - left),
                top + HIGH * (high - log10(value)) / max(high - low, 1))
    yield f'<text x="{LEFT}" y="{top - 8}" font-size="13">{escape(title)}, {unit}</text>'
    for power in range(low, high + 1):
        y = at(sizes[0], 10.0**power)[1]
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + PANEL}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for power in range(ceil(left), floor(right) + 1):
        x = at(10.0**power, 10.0**low)[0]
        yield f'<text x="{x:.1f}" y="{top + HIGH + 16}" text-anchor="middle">{10**power:,}</text>'
    for name, curve in curves.items():
        points = " ".join("{:.1f},{:.1f}".format(*at(size, value))
                          for size, value in zip(sizes, curve) if value)
        dashes = ' stroke-dasharray="4 3"' if name == "limit" else ""
        yield (f'<polyline points="{points}" fill="none" stroke-width="2"{dashes} '
               f'stroke="{colour(name, list(curves))}"/>')


def options(argv):
    parser = argparse.ArgumentParser("python -m benchmarks.growth", description=__doc__)
    add = parser.add_argument
    add("--impl", default="fgrad,jax,torch,numpy")
    add("--only", nargs="+", default=list(CURVES), choices=list(CURVES))
    add("--threads", type=int, default=1)
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=0.03)
    add("--clock", choices=["wall", "cpu"], default="wall")
    add("--python", nargs="+", default=[], metavar="IMPL=PATH")
    add("--note", default="", help="a sentence for GROWTH.md, about the machine say")
    add("--out", type=Path, default=HERE, help="folder for GROWTH.md and growth.svg")
    return parser.parse_args(argv)


def main(argv):
    chosen = options(argv)
    names = [*chosen.impl.split(","), "limit"]
    pythons = starts.pythons(dict(pair.split("=", 1) for pair in chosen.python), names)
    families = []
    with tempfile.TemporaryDirectory() as cache:
        workers = {name: Remote(name, pythons[name], chosen.threads, chosen.clock, cache)
                   for name in names}
        try:
            for title in chosen.only:
                curve, sizes, unit = CURVES[title]
                found = measured(workers, curve, unit, chosen.rounds, chosen.seconds)
                families.append((title, sizes, unit, found))
                print(table(*families[-1]), flush=True)
        finally:
            for worker in workers.values():
                worker.close()
    threads = "1 thread" if chosen.threads == 1 else f"{chosen.threads} threads"
    head = ("# Throughput over sizes\n\nGenerated by `python -m benchmarks.growth`: f32, "
            f"{threads}, {processor()}. {chosen.note}\n\n![Throughput](growth.svg)\n")
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "GROWTH.md").write_text("\n".join([head, *(table(*f) for f in families)]))
    (chosen.out / "growth.svg").write_text(plot(families))


if __name__ == "__main__":
    main(sys.argv[1:])
