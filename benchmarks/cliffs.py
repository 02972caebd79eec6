"""Programs beside a peer: how often fgrad is slower than it, and with which programs.

    python -m benchmarks.cliffs --python jax=PATH [--first 0] [--count 200] [--kinds product,rows]
    python -m benchmarks.cliffs --python jax=PATH --everyday

They are the random ones of `workloads/programs.py`, by number, or those of `workloads/everyday.py`.
Each is compiled and run by both, the answers are compared, then both are timed in turns.  Random
programs that are slower than the peer's, or differ from them, are printed; of the others, each has
a line.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from statistics import geometric_mean, median
from typing import NamedTuple

from . import starts, workload, workloads
from .implementations import IMPLEMENTATIONS
from .run import Failed, Remote, processor
from .workloads import programs


class Outcome(NamedTuple):
    """What came of one program: seconds of a call and of the first one, fgrad's and the peer's;
    in words, what is wrong."""
    name: str
    calls: tuple[float, float] | None
    firsts: tuple[float, float] | None
    wrong: str = ""

    @property
    def ratio(self):
        """How many times as fast as the peer fgrad is."""
        return self.calls[1] / self.calls[0]


def outcome(found, workers, options):
    """One program in both processes."""
    answers, firsts = [], []
    try:
        for worker in workers:
            start = time.perf_counter()
            answers.append(worker.prepare(found.name))
            firsts.append(time.perf_counter() - start)
        if wrong := workload.disagreement(found, *answers):
            return Outcome(found.name, None, None, wrong)
        times = [[worker.measure(found.name, options.seconds) for worker in workers]
                 for _ in range(options.rounds)]
    except Failed as error:
        return Outcome(found.name, None, None, f"{workers[len(answers) % 2].name}: {error}")
    finally:
        for worker in workers:
            worker.ask("forget", found.name)
    return Outcome(found.name, tuple(map(median, zip(*times))), tuple(firsts))


def said(found, options):
    """What came of a program."""
    return found.wrong or (f"{found.ratio:.2f} times as fast: {found.calls[0] * 1e6:.1f} µs, "
                           f"{options.peer} {found.calls[1] * 1e6:.1f} µs")


def described(seed, found, options):
    """A random program with what came of it, to be read and run by hand."""
    draft = programs.program(seed, options.kinds)
    shapes = ", ".join(f"{name} {'f32' if low is None else 'i32'}{list(shape)}"
                       for name, (shape, low) in draft.inputs.items())
    return f"# {seed}, {draft.form}: {said(found, options)}\n# {shapes}\n{draft.text()}\n"


def summary(outcomes, options):
    """The lines at the end."""
    timed = sorted((each for each in outcomes if not each.wrong), key=lambda each: each.ratio)
    if not timed:
        return ["no program was timed"]
    ratios = [each.ratio for each in timed]
    below = sum(ratio < 1 for ratio in ratios)
    firsts = [each.firsts[1] / each.firsts[0] for each in timed]
    return [f"{len(timed)} programs, {options.threads} threads, {processor()}:",
            f"{geometric_mean(ratios):.2f} times as fast as {options.peer} in the geometric mean, "
            f"{ratios[len(ratios) // 20]:.2f} or more in 19 of 20; "
            f"{below} ({below / len(ratios):.1%}) slower",
            f"first calls: {geometric_mean(firsts):.2f} times as fast",
            f"{len(outcomes) - len(timed)} that failed or differ"]


def options(argv):
    parser = argparse.ArgumentParser("python -m benchmarks.cliffs", description=__doc__)
    add = parser.add_argument
    add("--everyday", action="store_true", help="programs as users write them, no random ones")
    add("--first", type=int, default=0, help="number of the first program")
    add("--count", type=int, default=200, help="how many programs")
    add("--kinds", default="", help=f"of these kinds of lines only: {','.join(programs.KINDS)}")
    add("--peer", default="jax", choices=[name for name, found in IMPLEMENTATIONS.items()
                                          if found.style == "jax"])
    add("--below", type=float, default=1.0, help="print what is less often as fast as the peer")
    add("--threads", type=int, default=1)
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=0.01, help="time for each turn")
    add("--python", nargs="+", default=[], metavar="IMPL=PATH")
    found = parser.parse_args(argv)
    found.kinds = tuple(name for name in found.kinds.split(",") if name)
    if unknown := set(found.kinds) - set(programs.KINDS):
        parser.error(f"no kind of line is named {' '.join(sorted(unknown))}; "
                     f"there are {' '.join(programs.KINDS)}")
    return found


def at_random(workers, options):
    """The outcomes of random programs; prints those that are slow, or wrong."""
    for seed in range(options.first, options.first + options.count):
        yield (found := outcome(programs.workload(seed, options.kinds), workers, options))
        if found.wrong or found.ratio < options.below:
            print(described(seed, found, options), flush=True)


def everyday(workers, options):
    """The outcomes of programs as users write them; prints a line for each."""
    for one in workloads.of("everyday"):
        yield (found := outcome(one._replace(name=f"everyday.{one.name}"), workers, options))
        print(f"{one.name}: {said(found, options)}", flush=True)


def main(argv):
    chosen = options(argv)
    names = ("fgrad", chosen.peer)
    pythons = starts.pythons(dict(pair.split("=", 1) for pair in chosen.python), names)
    with tempfile.TemporaryDirectory() as cache:
        workers = [Remote(name, pythons[name], chosen.threads, "wall", cache) for name in names]
        run = everyday if chosen.everyday else at_random
        try:
            outcomes = list(run(workers, chosen))
        finally:
            for worker in workers:
                worker.close()
    print("\n".join(summary(outcomes, chosen)))


if __name__ == "__main__":
    main(sys.argv[1:])
