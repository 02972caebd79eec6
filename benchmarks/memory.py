"""Peak memory of workloads, each library in a new process.

    python -m benchmarks.memory --impl fgrad,jax,torch,numpy [--only NAME…] [--python IMPL=PATH…]

The figure is what the process needed beyond its library and the inputs: the peak of its resident
memory until the third call has returned, less what was resident before the first.  Compiling, which
happens in the first call, is part of it; that a library loads its compiler at first use is not: a
small workload runs twice before.  For fgrad `planned` is what `explain()` says: temporaries and
results.  Linux only: the peak is read from /proc.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from . import implementations, starts, workload, workloads

ROOT = Path(__file__).parent.parent
DEFAULT = ("cnn_step_256", "chain_1e7")
FIRST = "cnn_forward_1", "chain_1e3"       # the first that a library has runs before it is measured


def resident(field):
    """Bytes of VmRSS (now) or VmHWM (the most so far)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", status)[1])


def measured(name, wanted):
    """{"peak": bytes, "planned": bytes or None} of a workload, in this process."""
    implementation = implementations.IMPLEMENTATIONS[name]
    lib = implementation.load()
    style = implementation.style
    small = next(each for each in FIRST if style in workloads.find(each).makers)
    first, case = (workload.prepared(workloads.find(each), style, lib,
                                     implementations.converter(name, lib), implementation.finish)
                   for each in (small, wanted))
    for _ in range(2):                           # fgrad loads its native calls with the second
        first.function(*first.args)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")              # the peak begins anew
    before = resident("VmRSS")
    for _ in range(3):
        case.function(*case.args)
    return {"peak": resident("VmHWM") - before, "planned": planned(case)}


def planned(case):
    """Bytes of temporaries and results, as fgrad planned them; None for another library."""
    if not hasattr(case.function, "explain"):
        return None
    results = sum(leaf.nbytes for leaf in workload.leaves(case.function(*case.args)))
    found = re.search(r"([\d,]+) bytes of temporaries", str(case.function.explain()))
    return results + int(found[1].replace(",", "")) if found else None


def in_new_process(name, wanted, python, threads):
    """`measured` in a process of its own.  Raises RuntimeError with its last words."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([python, "-m", "benchmarks.memory", "--measure", name, wanted],
                              cwd=ROOT, env=implementations.environment(threads, cache),
                              capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["the process failed"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def table(names, wanted, pythons, threads):
    """Lines: a row for each workload, megabytes for each library."""
    yield "| workload | " + " | ".join([*names, "planned by fgrad"]) + " |"
    yield "| --- |" + " ---: |" * (len(names) + 1)
    for one in wanted:
        makers = workloads.find(one).makers
        cells, plan = [], None
        for name in names:
            if implementations.IMPLEMENTATIONS[name].style not in makers:
                cells.append("")
                continue
            found = in_new_process(name, one, pythons[name], threads)
            cells.append(megabytes(found["peak"]))
            plan = found["planned"] or plan
        yield f"| {one} | " + " | ".join([*cells, megabytes(plan)]) + " |"


def megabytes(count):
    return "" if count is None else f"{count / 1e6:.1f} MB"


def main(argv):
    if argv[:1] == ["--measure"]:
        print(json.dumps(measured(*argv[1:])))
        return
    parser = argparse.ArgumentParser("python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--impl", default="fgrad,jax,torch,numpy")
    parser.add_argument("--only", nargs="+", default=DEFAULT, metavar="NAME")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", nargs="+", default=[], metavar="IMPL=PATH")
    options = parser.parse_args(argv)
    names = options.impl.split(",")
    chosen = dict(pair.split("=", 1) for pair in options.python)
    for line in table(names, options.only, starts.pythons(chosen, names), options.threads):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
